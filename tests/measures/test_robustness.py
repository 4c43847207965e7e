"""Infidelity and maximal sensitivity: again, slowly; captum as oracle; and everything undone afterwards."""

import pytest
import torch
from captum.metrics import sensitivity_max as captum_sensitivity

from exegete.importance.contract import Scores, Target
from exegete.importance.erasure import Removal, erased
from exegete.importance.gradient import Gradient
from exegete.importance.leave_one_out import LeaveOneOut
from exegete.importance.random import RandomImportance
from exegete.importance.sharing import sharing
from exegete.measures.robustness import _subsets, infidelity, sensitivity_max, shaken
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example
from tests.measures.test_faithfulness import REMOVALS, additive, predicted, scores
from tests.small import LETTERS, SPECS, batch_of, small_model, texts

EXAMPLES = texts(6, seed=3, longest=5)


@pytest.mark.parametrize("by", REMOVALS)
def test_infidelity_recomputed_slowly(by: Removal) -> None:
    model = small_model(SPECS[0], EXAMPLES)
    batch = batch_of(model, EXAMPLES)
    label, given = model.trace(batch).logits.argmax(-1), scores(EXAMPLES)
    found = infidelity(model, batch, given, label, by, draws=7)
    real = ~given.isnan()
    chosen = _subsets(batch, real, 7).view(6, 7, -1)
    for i, e in enumerate(EXAMPLES):
        whole = predicted(model, e, [], by)[label[i]]
        pairs = []
        for member in chosen[i]:
            gone = member.nonzero()[:, 0].tolist()
            assert 1 <= len(gone) <= len(e)
            change = whole - predicted(model, e, gone, by)[label[i]]
            pairs.append((given[i, gone].sum().item(), change.item()))
        square = sum(a * a for a, _ in pairs)
        beta = sum(a * d for a, d in pairs) / square if square else 1.0
        assert found[i].item() == pytest.approx(sum((beta * a - d) ** 2 for a, d in pairs) / 7, abs=1e-5)


def test_scores_that_add_up_have_no_infidelity() -> None:
    weights = {letter: 0.3 * i - 1 for i, letter in enumerate(LETTERS)}
    model = additive(weights)
    batch = batch_of(model, EXAMPLES)
    label = model.trace(batch).logits.argmax(-1)
    width = batch.tokens.shape[1]
    exact = torch.tensor([[weights[w] for w in e.words] + [torch.nan] * (width - len(e)) for e in EXAMPLES])
    assert infidelity(model, batch, exact, label).max() < 1e-9
    assert infidelity(model, batch, -7 * exact, label).max() < 1e-9  # blind to scale, and to a turned sign
    assert infidelity(model, batch, exact.abs(), label).max() > 1e-3


def test_infidelity_alone_or_in_a_batch() -> None:
    model = small_model(SPECS[0], EXAMPLES)
    batch, given = batch_of(model, EXAMPLES), scores(EXAMPLES)
    label = model.trace(batch).logits.argmax(-1)
    together = infidelity(model, batch, given, label)
    state = torch.random.get_rng_state()
    for i, e in enumerate(EXAMPLES):
        alone = infidelity(model, batch_of(model, [e]), given[i : i + 1, : len(e)], label[i : i + 1])
        assert alone.item() == pytest.approx(together[i].item(), abs=1e-6)
    assert torch.equal(state, torch.random.get_rng_state())  # nothing is drawn from the global generator


def test_subsets_have_every_size_equally_often() -> None:
    model = small_model(SPECS[4], EXAMPLES)
    batch = batch_of(model, [Example(4, (tuple("abcde"),), 0)])
    members = _subsets(batch, torch.ones(1, 5, dtype=torch.bool), 4000)
    counts = members.sum(1).long().bincount(minlength=6) / 4000
    assert counts.tolist() == pytest.approx([0, 0.2, 0.2, 0.2, 0.2, 0.2], abs=0.03)
    assert members.mean(0).tolist() == pytest.approx([0.6] * 5, abs=0.03)


def test_sensitivity_is_captums() -> None:
    """Captum's formula with our noise: the gradient of a text of different words, so that a word is one place."""
    model = small_model(SPECS[0], EXAMPLES)
    (e,) = (e for e in texts(200, seed=9, longest=6) if len(e) == 6 and len(set(e.words)) == 6 and e.id < 60)
    batch = batch_of(model, [e])
    still = model.embed(batch).detach()
    noises = []
    for draw in range(4):
        with shaken(model, 0.1, draw):
            noises.append(model.embed(batch).detach() - still)
    assert 0.09 < torch.cat(noises).abs().max() <= 0.1

    def explain(inputs: tuple[torch.Tensor] | torch.Tensor) -> tuple[torch.Tensor]:
        embedded = inputs[0] if isinstance(inputs, tuple) else inputs
        return (torch.cat([_gradient(model, batch, x[None]) for x in embedded]),)

    theirs = captum_sensitivity(explain, still, lambda x: x + torch.cat(noises), n_perturb_samples=4)
    ours = sensitivity_max(Gradient(), model, batch, draws=4, radius=0.1)
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-4)
    assert ours.item() > 0


def _gradient(model: Predictor, batch: Batch, embedded: torch.Tensor) -> torch.Tensor:
    c = int(model.trace(batch).logits.argmax())
    with torch.enable_grad():
        embedded = embedded.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(model.trace(batch, embedded=embedded).logits[0, c], embedded)
    return (gradient * embedded.detach()).sum(-1).abs()


def test_sensitivity_of_methods_that_write_texts_anew() -> None:
    model = small_model(SPECS[0], EXAMPLES)
    batch = batch_of(model, EXAMPLES)
    with sharing():  # predictions that are kept must not answer for the shaken model
        erased(model, batch, torch.arange(6), torch.zeros_like(batch.words), "delete")
        found = sensitivity_max(LeaveOneOut(of="logit"), model, batch, draws=2)
    assert (found > 0).all()
    again = sensitivity_max(LeaveOneOut(of="logit"), model, batch, draws=2)
    torch.testing.assert_close(found, again, rtol=1e-4, atol=1e-6)  # whole texts are run another way
    alone = sensitivity_max(LeaveOneOut(of="logit"), model, batch_of(model, EXAMPLES[2:3]), draws=2)
    assert alone.item() == pytest.approx(found[2].item(), abs=1e-4)
    assert sensitivity_max(RandomImportance(), model, batch, draws=2).tolist() == [0.0] * 6


def test_scores_of_zero_have_no_relative_change() -> None:
    def nothing(model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        return Scores(torch.zeros(batch.tokens.shape), False, Target(batch.label))

    model = small_model(SPECS[4], EXAMPLES)
    assert sensitivity_max(nothing, model, batch_of(model, EXAMPLES), draws=1).isnan().all()


def test_shaking_is_undone() -> None:
    model = small_model(SPECS[0], EXAMPLES)
    batch = batch_of(model, EXAMPLES)
    before, inside = model.embed(batch), vars(model).copy()

    def fail() -> None:
        with shaken(model, 0.5, 0), shaken(model, 0.5, 1):
            assert not torch.equal(model.embed(batch), before)
            assert torch.equal(model.embed(batch)[~batch.present], before[~batch.present])
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        fail()
    assert torch.equal(model.embed(batch), before)
    assert vars(model).keys() == inside.keys()
