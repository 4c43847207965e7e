"""The debate's questions on a Transformer: the state Jacobian by hand, and who can be asked."""

import polars as pl
import pytest
import torch
from torch import Tensor

from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.common.contract import Subject, unsuited
from exegete.experiments.dispersion.experiment import Dispersion
from exegete.experiments.dispersion.state_jacobian import word_shares
from exegete.experiments.importance_sets.experiment import ImportanceSets
from exegete.experiments.permutation.experiment import Permutation
from exegete.experiments.single_weight.experiment import SingleWeight
from exegete.importance.catalogue import IMPORTANCES
from exegete.models.ours.transformer import Transformer
from exegete.tasks.example import Example, Task
from tests.small import TRANSFORMERS, batch_of, small_model, texts
from tests.subjects import subject_of

EXAMPLES = (*texts(12, longest=6), Example(90, (("a",),), 0))
TASK = Task("small", ("no", "yes"), {"test": EXAMPLES}, "made up")


def transformer(wrap: bool = False, spec: str = TRANSFORMERS[0]) -> Transformer:
    model = small_model(spec, EXAMPLES, wrap)
    assert isinstance(model, Transformer)
    return model


def subject(model: Transformer, importances: tuple[str, ...] = ()) -> Subject:
    batch = batch_of(model, EXAMPLES)
    scores = {}
    for name in importances:
        values = IMPORTANCES.make(name)(model, batch).values
        rows = [row[own] for row, own in zip(values, batch.words, strict=True)]
        scores[name] = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=torch.nan).double()
    return subject_of(model, TASK, scores=scores)


@pytest.mark.parametrize("wrap", [False, True])
def test_which_words_a_state_is_made_of_by_finite_differences(wrap: bool) -> None:
    """‖∂‖h_p‖ / ∂e_i‖, coordinate by coordinate, over the words, normalised for every state."""
    model = transformer(wrap).double()
    e = max(EXAMPLES, key=len)
    batch = batch_of(model, [e])
    words, base = batch.words[0].nonzero()[:, 0].tolist(), model.embed(batch).detach()

    @torch.no_grad()
    def lengths(embedded: Tensor) -> Tensor:
        found: Tensor = model.encode(batch, embedded=embedded).states[0, words].norm(dim=-1)  # [state]
        return found

    expected = torch.zeros(len(e), len(e), dtype=torch.float64)
    for i, token in enumerate(words):
        slopes = []
        for d in range(base.shape[2]):
            step = torch.zeros_like(base)
            step[0, token, d] = 1e-6
            slopes.append((lengths(base + step) - lengths(base - step)) / 2e-6)
        expected[:, i] = torch.stack(slopes).norm(dim=0)
    expected /= expected.sum(-1, keepdim=True)
    torch.testing.assert_close(word_shares(model.float(), batch)[0], expected, atol=1e-5, rtol=1e-4)
    assert float(expected.diagonal().mean()) < 0.99  # states do mix words, so that the numbers mean something


def test_dispersion_of_a_transformer() -> None:
    model, ask = transformer(wrap=True), Dispersion()
    assert unsuited(ask, TASK, model) is None
    rows = ask.rows(subject(model, ask.importances))
    several = rows.filter(pl.col("n") > 1)
    for column in ("entropy_attention", "entropy_gradient_inputs", "entropy_gradient_on_states", "own_share"):
        assert several[column].is_not_null().all(), column
        assert several[column].is_between(0, 1.0001).all(), column


@pytest.mark.parametrize("ask", [Permutation(draws=5), SingleWeight(), ImportanceSets()])
def test_what_rewrites_the_pool_runs(ask: Permutation | SingleWeight | ImportanceSets) -> None:
    model = transformer(spec=TRANSFORMERS[2])
    assert unsuited(ask, TASK, model) is None
    rows = ask.rows(subject(model, ask.importances))
    assert set(rows["example"]) == {e.id for e in EXAMPLES}


def test_who_cannot_be_asked_says_why() -> None:
    model = transformer()
    asked = ("gating", "diagnostic", "adversary_search", "seed_stability", "reliance", "necessity", "decision_flips")
    refused = {name: unsuited(EXPERIMENTS.make(name), TASK, model) for name in asked}
    assert {name for name, why in refused.items() if why} == {"gating", "diagnostic"}
    assert "transformer has several" in str(refused["gating"])
    assert "in several places" in str(refused["diagnostic"])
