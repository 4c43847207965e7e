"""LIME: the fit against scikit-learn, the design against Ribeiro's sampler and captum, coefficients known by hand."""

import math

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

from exegete.base.errors import UsageError
from exegete.importance.coalitions import coalitions
from exegete.importance.contract import Target
from exegete.importance.erasure import Removal, erased
from exegete.importance.lime import Lime
from exegete.models.ours.classifier import PoolingClassifier
from exegete.tasks.example import Example
from tests.importance.additive import Additive, batch_of_ids
from tests.small import SPECS, batch_of, small_model, texts


def pi(kept: int, n: int, width: float) -> float:
    """The kernel of the authors' text explainer, from the cosine of the two vectors itself."""
    cosine = kept / math.sqrt(kept * n) if kept else 0.0
    return math.sqrt(math.exp(-((100 * (1 - cosine)) ** 2) / width**2))


def logit_of(model: PoolingClassifier, e: Example, kept: np.ndarray, by: Removal, c: int) -> np.ndarray:
    batch = batch_of(model, [e])
    gone = torch.from_numpy(~kept)
    return erased(model, batch, torch.zeros(len(kept), dtype=torch.int64), gone, by)[:, c].numpy()


@pytest.mark.parametrize(("samples", "width", "alpha"), [(60, 25.0, 1.0), (8, 10.0, 0.3)])
@pytest.mark.parametrize("by", ["delete", "zero", "unknown"])
def test_the_fit_is_scikit_learns_ridge_on_the_same_coalitions(
    by: Removal, samples: int, width: float, alpha: float
) -> None:
    """With 8 samples some texts have more words than samples: the dual form."""
    examples = texts(4, longest=16)
    model = small_model(SPECS[0], examples)
    batch = batch_of(model, examples)
    scores = Lime(samples, removal=by, width=width, alpha=alpha)(model, batch)
    kept, share = (column.numpy() for column in coalitions(batch, samples, 0))
    assert scores.signed
    for i, e in enumerate(examples):
        n, used = len(e), share[i] > 0
        z = np.concatenate([np.ones((1, n)), np.zeros((1, n)), kept[i, used, :n]]).astype(bool)
        often = np.concatenate([[1, samples / n], samples / n * share[i, used]])
        weights = often * [pi(int(k), n, width) for k in z.sum(-1)]
        y = logit_of(model, e, z, by, int(scores.target.label[i]))
        expected = Ridge(alpha=alpha).fit(z, y, sample_weight=weights).coef_
        assert scores.values[i, :n].numpy() == pytest.approx(expected, abs=1e-6)
        assert scores.cost is not None
        assert int(scores.cost.forward[i]) == len(z)


def ribeiro(model: PoolingClassifier, e: Example, draws: int, samples: int, c: int) -> np.ndarray:
    """The published way: sizes uniform on 1 … T, words uniform; so many draws, weighed as if they were `samples`."""
    n, draw = len(e), np.random.default_rng(0)
    kept = np.ones((draws, n), dtype=bool)
    for row in kept[1:]:
        row[draw.choice(n, draw.integers(1, n + 1), replace=False)] = False
    weights = np.array([pi(int(k), n, 25) for k in kept.sum(-1)]) * np.where(np.arange(draws), samples / draws, 1)
    return np.asarray(Ridge(alpha=1.0).fit(kept, logit_of(model, e, kept, "delete", c), sample_weight=weights).coef_)


def test_the_shared_design_agrees_with_ribeiros_sampler() -> None:
    e = Example(3, (tuple("abcdefghijab"),), 0)
    model = small_model(SPECS[0], texts(9))
    scores = Lime(1000)(model, batch_of(model, [e]))
    published = ribeiro(model, e, 3000, 1000, int(scores.target.label[0]))
    scale = np.abs(published).mean()
    assert scores.values[0].numpy() == pytest.approx(published, abs=0.12 * scale)
    one_thousand = ribeiro(model, e, 1000, 1000, int(scores.target.label[0]))
    assert np.abs(scores.values[0].numpy() - published).mean() < 1.5 * np.abs(one_thousand - published).mean()


@pytest.mark.slow
def test_captums_lime_gives_the_same_within_sampling_error() -> None:
    from captum._utils.models.linear_model import SkLearnRidge
    from captum.attr import LimeBase

    e = Example(3, (tuple("abcdefghijab"),), 0)
    model = small_model(SPECS[0], texts(9))
    scores = Lime(1000)(model, batch_of(model, [e]))
    c, n, draw = int(scores.target.label[0]), len(e), torch.Generator().manual_seed(0)

    def perturb(text: torch.Tensor, **_: object) -> torch.Tensor:
        size = int(torch.randint(1, n + 1, (1,), generator=draw))
        kept = torch.ones(1, n)
        kept[0, torch.randperm(n, generator=draw)[:size]] = 0
        return kept

    explainer = LimeBase(
        lambda z: torch.from_numpy(logit_of(model, e, z.bool().numpy(), "delete", c)),
        SkLearnRidge(alpha=1.0),
        lambda _a, _b, z, **_c: torch.tensor(pi(int(z.sum()), n, 25)),
        perturb,
        perturb_interpretable_space=True,
        from_interp_rep_transform=lambda z, _x, **_k: z,
        to_interp_rep_transform=None,
    )
    theirs = explainer.attribute(torch.ones(1, n), n_samples=500)[0].double()
    assert (scores.values[0] - theirs).abs().mean() < 0.15 * theirs.abs().mean()


def test_coefficients_of_a_linear_model_are_its_values() -> None:
    values = torch.tensor([0, 0, 0, 0, 1.5, -2.0, 0.25, 0.0, 3.0])
    batch = batch_of_ids([[4, 5, 6, 7, 8], [8, 8, 5, 6, 4], [5, 4, 5, 4, 5]])
    target = Target(torch.ones(3, dtype=torch.int64))
    for samples in (10, 25, 100):
        scores = Lime(samples, alpha=1e-9)(Additive(values), batch, target)
        assert torch.allclose(scores.values, values.double()[batch.tokens], atol=1e-6)


def test_few_samples_are_right_in_the_mean() -> None:
    """The mean over 400 keys against a ridge on what Ribeiro's sampler expects: all 2^6 subsets, each size alike."""
    values = torch.tensor([0, 0, 0, 0, 1.5, -2.0, 0.25, 0.7, 3.0, -1.0])
    tokens, bonus, samples = [4, 5, 6, 7, 8, 9], 2.0, 40
    target = Target(torch.ones(400, dtype=torch.int64))
    drawn = Lime(samples)(Additive(values, bonus), batch_of_ids([tokens] * 400), target).values
    z = np.array([[z >> t & 1 for t in range(6)] for z in range(2**6)])
    y = z @ values[4:].double().numpy() + bonus * z[:, 0] * z[:, 1]
    often = [samples / 6 / math.comb(6, k) if k < 6 else 1 for k in z.sum(-1)]
    weights = np.array(often) * [pi(int(k), 6, 25) for k in z.sum(-1)]
    exact = torch.from_numpy(Ridge(alpha=1.0).fit(z, y, sample_weight=weights).coef_)
    spread = drawn.std(0) / 20
    assert (spread > 0).all()
    # A ridge is not linear in its sums, so unbiased sums leave a bias of second order.
    assert ((drawn.mean(0) - exact).abs() < 4 * spread + 0.02 * exact.abs().mean()).all()


@pytest.mark.parametrize("n", [1, 2])
def test_the_shortest_texts_have_coefficients_too(n: int) -> None:
    values = torch.tensor([0, 0, 0, 0, 1.5, -2.0])
    scores = Lime(alpha=1e-9)(Additive(values), batch_of_ids([[4, 5][:n]]), Target(torch.ones(1).long()))
    assert scores.values[0].tolist() == pytest.approx([1.5, -2.0][:n], abs=1e-4)


@pytest.mark.parametrize("settings", [{"samples": 1}, {"width": 0.0}, {"alpha": -1.0}])
def test_settings_that_give_no_fit_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="need"):
        Lime(**settings)  # type: ignore[arg-type]
