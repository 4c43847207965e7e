"""Checks: all-zero scores don't pass without a sentence, NaN and stray numbers don't pass at all."""

import pytest
import torch

from exegete.base.errors import ExegeteError
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.checks import complaints, finite
from exegete.importance.contract import Quantity, Scores, Target
from exegete.models.ours.classifier import PoolingClassifier
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example
from tests.small import SPECS, batch_of, small_model, texts


def subject(wrap: bool = False) -> tuple[PoolingClassifier, Batch]:
    examples = texts(5)
    model = small_model(SPECS[0], examples, wrap)
    return model, batch_of(model, examples)


def scores(batch: Batch, of: Quantity = "logit") -> Scores:
    values = torch.where(batch.words, torch.arange(1.0, 1 + batch.tokens.shape[1]), torch.nan)
    return Scores(values, signed=True, target=Target(batch.label, of=of))


@pytest.mark.parametrize(
    ("of", "reason"),
    [("probability", "explain the logit"), ("logit", "doesn't depend on any word"), ("loss", "doesn't")],
)
def test_a_text_whose_words_all_score_zero_is_complained_about(of: Quantity, reason: str) -> None:
    _, batch = subject(wrap=True)
    found = scores(batch, of)
    found.values[2, batch.words[2]] = 0.0
    found.values[3, batch.words[3].nonzero()[0]] = 0.0  # one zero among others is fine
    said = complaints(found, batch)
    assert [i for i, sentence in enumerate(said) if sentence] == [2]
    assert reason in str(said[2])
    assert "example 2" in str(said[2])


def test_a_text_without_words_has_no_complaint() -> None:
    examples = (Example(0, ((),), 0), *texts(1))
    model = small_model(SPECS[0], examples)
    batch = batch_of(model, examples)
    assert complaints(scores(batch), batch) == [None, None]
    finite("mine", scores(batch), batch)


def test_a_saturated_probability_is_found_and_the_logit_is_the_remedy() -> None:
    model, batch = subject()
    with torch.no_grad():
        model.decoder.bias.fill_(2000.0)
    probability, logit = (
        IMPORTANCES.make(f"gradient_x_input:of={of}")(model, batch) for of in ("probability", "logit")
    )
    assert all("saturated" in str(sentence) for sentence in complaints(probability, batch))
    assert complaints(logit, batch) == [None] * 5


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_a_word_without_a_finite_score_is_an_error(bad: float) -> None:
    _, batch = subject()
    found = scores(batch)
    finite("mine", found, batch)
    found.values[1, 0] = bad
    with pytest.raises(ExegeteError, match=r"^mine gave a word of example 1 no finite score: [^.]*$"):
        finite("mine", found, batch)


@pytest.mark.parametrize("stray", [0.0, torch.inf])
def test_a_score_where_no_word_is_is_an_error(stray: float) -> None:
    _, batch = subject(wrap=True)
    found = scores(batch)
    found.values[3, 0] = stray  # the start symbol
    with pytest.raises(ExegeteError, match="mine scored something in example 3 that is no word"):
        finite("mine", found, batch)


def test_scores_of_another_shape_are_an_error() -> None:
    _, batch = subject()
    found = scores(batch)
    with pytest.raises(ExegeteError, match="one score per token"):
        finite("mine", found._replace(values=found.values[:, 1:]), batch)
