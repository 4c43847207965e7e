"""KernelSHAP: against Shapley values from their definition, captum, and values known by hand."""

from itertools import permutations

import pytest
import torch

from exegete.importance.contract import Target
from exegete.importance.erasure import Removal, erased
from exegete.importance.kernel_shap import KernelShap
from exegete.importance.leave_one_out import LeaveOneOut
from exegete.importance.lime import Lime
from exegete.importance.sharing import sharing
from exegete.models.ours.classifier import PoolingClassifier
from exegete.tasks.example import Example
from tests.importance.additive import Additive, batch_of_ids
from tests.importance.test_erasure import counted, run
from tests.small import SPECS, batch_of, small_model, texts


def worths(model: PoolingClassifier, e: Example, by: Removal, c: int) -> list[float]:
    """f_c of every subset of the words, numbered by its bits."""
    n = len(e)
    kept = torch.tensor([[bool(z >> t & 1) for t in range(n)] for z in range(2**n)])
    logits = erased(model, batch_of(model, [e]), torch.zeros(2**n, dtype=torch.int64), ~kept, by)
    return [float(x) for x in logits[:, c]]


def shapley(f: list[float], n: int) -> list[float]:
    """The mean gain from adding a word, over all orders of adding."""
    gains, orders = [0.0] * n, list(permutations(range(n)))
    for order in orders:
        so_far = 0
        for t in order:
            gains[t] += f[so_far | 1 << t] - f[so_far]
            so_far |= 1 << t
    return [gain / len(orders) for gain in gains]


@pytest.mark.parametrize("by", ["delete", "zero", "unknown"])
def test_exact_shapley_values_of_short_texts(by: Removal) -> None:
    examples = [Example(n, (tuple("cabbed"[:n]),), 0) for n in range(1, 7)]
    model = small_model(SPECS[0], texts(9))
    scores = KernelShap(62, removal=by)(model, batch_of(model, examples))
    for i, e in enumerate(examples):
        expected = shapley(worths(model, e, by, int(scores.target.label[i])), len(e))
        assert scores.values[i, : len(e)].tolist() == pytest.approx(expected, abs=1e-6)
    assert scores.signed
    assert scores.cost is not None
    assert scores.cost.forward.tolist() == [max(0, 2 ** len(e) - 2) + 2 for e in examples]


@pytest.mark.parametrize("samples", [2, 6, 16, 40, 200])
def test_the_values_sum_to_the_gain_whatever_the_budget(samples: int) -> None:
    examples = texts(8, longest=20)
    model = small_model(SPECS[3], examples)
    batch = batch_of(model, examples)
    scores = KernelShap(samples)(model, batch)
    every, c = torch.arange(8), scores.target.label
    gain = [
        erased(model, batch, every, gone, "delete")[every, c] for gone in (torch.zeros_like(batch.words), batch.words)
    ]
    assert torch.allclose(scores.values.nansum(-1), gain[0] - gain[1], atol=1e-9)
    assert scores.error is not None
    assert scores.error.max() < 1e-9
    assert torch.equal(scores.values.isnan(), ~batch.words)


@pytest.mark.parametrize("samples", [14, 30, 1000])
def test_words_of_an_additive_model_get_their_values_and_a_bonus_is_halved(samples: int) -> None:
    values = torch.tensor([0, 0, 0, 0, 1.5, -2.0, 0.25, 0.0, 3.0, 1.0, 7.0])
    batch, target = batch_of_ids([[4, 5, 6, 7, 8, 9, 10]]), Target(torch.ones(1).long())
    assert torch.allclose(
        KernelShap(samples)(Additive(values), batch, target).values, values.double()[batch.tokens], atol=1e-8
    )
    if samples == 1000:
        shared = KernelShap(samples)(Additive(values, bonus=4.0), batch, target).values[0]
        assert shared.tolist() == pytest.approx([3.5, 0.0, 0.25, 0.0, 3.0, 1.0, 7.0])


def test_a_sample_comes_near_the_exact_values_and_nearer_with_a_larger_budget() -> None:
    model = small_model(SPECS[0], texts(9))
    words = tuple("abcdefghij")
    exact = KernelShap(2**10 - 2)(model, batch_of(model, [Example(0, (words,), 0)])).values[0]
    many = batch_of(model, [Example(i, (words,), 0) for i in range(25)])
    with sharing():
        drawn = {samples: KernelShap(samples)(model, many).values for samples in (40, 400)}
    off = {samples: float((values - exact).square().mean().sqrt()) for samples, values in drawn.items()}
    assert 0 < off[400] < 0.5 * off[40]
    assert off[400] < 0.08 * float(exact.abs().mean())
    bias, spread = (drawn[400].mean(0) - exact).abs(), drawn[400].std(0) / 25**0.5
    assert (bias < 4 * spread).all()


def test_fewer_samples_than_words_give_the_solution_nearest_to_equal_shares() -> None:
    values = torch.linspace(-1, 2, 34)
    batch, target = batch_of_ids([list(range(4, 34))]), Target(torch.ones(1).long())
    game = KernelShap(6)(Additive(values), batch, target)
    equal = values[4:].double().mean()
    truth = values[4:].double() - equal
    off = game.values[0] - equal
    assert float(off.sum()) == pytest.approx(0, abs=1e-9)
    assert 0 < off.norm() < truth.norm()  # a projection of the truth on what the coalitions tell
    assert float(off @ (truth - off)) == pytest.approx(0, abs=1e-8)


@pytest.mark.slow
def test_captums_kernel_shap_gives_the_same_within_sampling_error() -> None:
    from captum.attr import KernelShap as Theirs

    e = Example(3, (tuple("abcdefghijab"),), 0)
    model = small_model(SPECS[0], texts(9))
    batch = batch_of(model, [e])
    scores = KernelShap(1000, removal="zero")(model, batch)
    c = int(scores.target.label[0])

    def logit(embedded: torch.Tensor) -> torch.Tensor:
        return model.trace(batch, embedded=embedded).logits[:, c]

    embedded = model.embed(batch).detach()
    torch.manual_seed(0)
    mask = torch.arange(12)[None, :, None].expand_as(embedded)
    theirs = Theirs(logit).attribute(embedded, feature_mask=mask, n_samples=1000)[0, :, 0].double()
    assert (scores.values[0] - theirs).abs().mean() < 0.15 * theirs.abs().mean()


def test_lime_and_kernel_shap_run_each_text_once(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = texts(5, longest=14)
    model = small_model(SPECS[4], examples)
    batch, seen = batch_of(model, examples), counted(model, monkeypatch)
    with sharing():
        shap = KernelShap(100)(model, batch)
        before = run(seen)
        lime = Lime(100)(model, batch)
        LeaveOneOut()(model, batch)
        assert run(seen) == before
    monkeypatch.undo()
    for found, alone in ((lime, Lime(100)), (shap, KernelShap(100))):
        torch.testing.assert_close(found.values, alone(model, batch).values, atol=1e-6, rtol=0, equal_nan=True)


@pytest.mark.slow
@pytest.mark.parametrize("method", [KernelShap(200), Lime(200)])
def test_a_text_of_five_thousand_words(method: KernelShap | Lime) -> None:
    examples = texts(9)
    model = small_model(SPECS[4], examples)
    draw = torch.Generator().manual_seed(0)
    words = tuple("abcdefghij"[i] for i in torch.randint(10, (5000,), generator=draw).tolist())
    values = method(model, batch_of(model, [Example(0, (words,), 0)])).values
    assert values.isfinite().all()
    assert float(values.abs().max()) > 0
