"""Aligning: scores of words recomputed slowly, the step and the word that are explained, links and ties."""

from itertools import product
from typing import Any

import pytest
import torch

from exegete.experiments.alignment.links import AlignmentTarget, align, links_of, of_words, steps_of
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import Scores, Target, on_words
from exegete.models.contract import Predictor
from exegete.models.ours.next_word import next_word
from exegete.tasks.batching import Batch, collate
from exegete.tasks.example import Example
from tests.experiments.aligned_pairs import FEW, SENTENCES, TASK, TRANSFORMER, translator
from tests.models.small_translation import BAHDANAU, LUONG


class Told:
    """An importance whose scores of pieces are given: by sentence and step."""

    def __init__(self, scores: dict[tuple[int, int], list[float]]) -> None:
        self.scores = scores

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        assert target is not None
        values = torch.zeros(batch.tokens.shape, dtype=torch.float64)
        for i, number in enumerate(batch.ids.tolist()):
            values[i, batch.words[i]] = torch.tensor(self.scores[divmod(number, 1000)], dtype=torch.float64)
        return Scores(on_words(values, batch), signed=True, target=target)


# Scores of words.


@pytest.mark.parametrize(("pieces", "expected"), [("sum", [[1, 3], [1, 7]]), ("max", [[5, 3], [3, 7]])])
def test_pieces_become_words(pieces: Any, expected: list[list[float]]) -> None:
    """Source: the words {0, 1} and {2}; target: {0} and {1, 2}, whose rows are averaged."""
    scores = torch.tensor([[5.0, -4.0, 3.0], [2.0, -6.0, 4.0], [2.0, 4.0, 10.0]], dtype=torch.float64)
    assert of_words(scores, SENTENCES[0], pieces).tolist() == expected


def test_the_scores_that_were_told_come_back() -> None:
    told = {
        (e.id, step): [100.0 * e.id + 10 * step + i for i in range(len(e.texts[0]))]
        for e in SENTENCES
        for step in range(len(e.texts[1]))
    }
    found = align(translator(), TASK, SENTENCES, {"told": Told(told)}, AlignmentTarget(pieces="max"))
    assert found.signed == {"told": True}
    assert found.scores["told"][0].tolist() == [[301, 302], [(311 + 321) / 2, (312 + 322) / 2]]
    assert found.scores["told"][1].tolist() == [[400]]
    assert found.scores["told"][2].tolist() == [[700 + 10 * step + i for i in range(4)] for step in range(3)]


@pytest.mark.parametrize(
    ("spec", "site"), [(BAHDANAU, None), (LUONG, None), (TRANSFORMER, None), (TRANSFORMER, "cross.0")]
)
def test_attention_is_that_of_the_step_that_writes_the_word(spec: str, site: str | None) -> None:
    """From one trace of the whole reference: the query that has read the words before, mean over heads."""
    model = translator(spec)
    name = "attention" if site is None else f"attention:site={site}"
    found = align(model, TASK, SENTENCES, {name: IMPORTANCES.make(name)}, AlignmentTarget()).scores[name]
    for e, matrix in zip(SENTENCES, found, strict=True):
        trace = model.trace(collate([e], model.vocabulary))
        weights = trace.attention[site or model.sites[-1]][0].mean(0).double()  # [step, key], with wrappers
        steps, length = len(e.texts[1]), len(e.texts[0])
        expected = of_words(weights[:steps, 1 : length + 1], e, "sum")
        torch.testing.assert_close(matrix, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("of", ["logit", "probability"])
def test_the_reference_is_explained_and_not_the_models_own_choice(of: Any) -> None:
    """Occlusion again: one piece's embedding zeroed, the change of the reference's next piece."""
    model = translator()
    found = align(model, TASK, SENTENCES, {"o": IMPORTANCES.make("occlusion")}, AlignmentTarget(of=of)).scores["o"]
    view = next_word(model)

    def value(prefix: Example, zeroed: int | None, label: int) -> float:
        batch = collate([prefix], model.vocabulary)
        embedded = model.embed(batch).clone()
        if zeroed is not None:
            embedded[0, 1 + zeroed] = 0
        logits = view.trace(batch, embedded=embedded).logits[0].double()
        return float(logits[label] if of == "logit" else logits.softmax(-1)[label])

    strayed = 0
    for e, matrix in zip(SENTENCES, found, strict=True):
        source, target = e.texts
        expected = torch.zeros(len(target), len(source), dtype=torch.float64)
        for step, i in product(range(len(target)), range(len(source))):
            prefix, label = Example(0, (source, target[:step]), 0), model.vocabulary.rows(target)[step]
            with torch.no_grad():
                expected[step, i] = value(prefix, None, label) - value(prefix, i, label)
                strayed += int(view.trace(collate([prefix], model.vocabulary)).logits.argmax()) != label
        torch.testing.assert_close(matrix, of_words(expected, e, "sum"), atol=1e-5, rtol=1e-4)
    assert strayed  # else this can't tell the two apart


def test_a_sentence_is_scored_the_same_alone() -> None:
    model = translator()
    made = {name: IMPORTANCES.make(name) for name in FEW}
    every = align(model, TASK, SENTENCES, made, AlignmentTarget())
    for i, e in enumerate(SENTENCES):
        alone = align(model, TASK, [e], made, AlignmentTarget())
        for name in FEW:
            torch.testing.assert_close(alone.scores[name][0], every.scores[name][i], atol=1e-5, rtol=1e-4)
        assert alone.right[0] == every.right[i]


def test_every_piece_is_a_step_and_the_end_is_none() -> None:
    model = translator()
    steps = steps_of(TASK, SENTENCES, model)
    assert [e.id for e in steps] == [3000, 3001, 3002, 4000, 7000, 7001, 7002]
    assert [e.texts[1] for e in steps[:3]] == [(), ("▁das",), ("▁das", "▁ha")]
    assert [e.label for e in steps[:3]] == model.vocabulary.rows(("▁das", "▁ha", "us"))


# Links.


def test_links_are_the_highest() -> None:
    scores = torch.tensor([[0.1, -3.0, 0.2], [-1.0, -2.0, -3.0]])
    assert links_of(scores, 0, 5) == ([2, 0], 0)
    assert links_of(torch.zeros(0, 3), 0, 5) == ([], 0)


def test_ties_have_no_favourite() -> None:
    scores = torch.tensor([[1.0, 0.0, 1.0]])
    found = [links_of(scores, 0, sentence) for sentence in range(100)]
    assert {tied for _, tied in found} == {1}
    first = sum(links == [0] for links, _ in found)
    assert first + sum(links == [2] for links, _ in found) == 100
    assert 30 < first < 70
    assert links_of(scores, 0, 9) == links_of(scores, 0, 9)
    assert [links_of(scores, 1, s) for s in range(100)] != found
