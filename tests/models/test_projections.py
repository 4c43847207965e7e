"""Projections: against their definitions as optimisation problems, against scipy, masked, and with exact gradients."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.models.projections import Entmax, Projection, Softmax, Sparsegen, Sparsemax

ALL: list[Projection] = [
    Softmax(),
    Sparsemax(),
    Sparsegen(0.5),
    Sparsegen(-3.0),
    Entmax(),
    Entmax(1.3),
    Entmax(2),
    Entmax(1.7, learned=True),
]
scores_of = st.lists(st.floats(-4, 4), min_size=1, max_size=7)


def quadratic_programme(z: NDArray[np.float64], lam: float) -> NDArray[np.float64]:
    """argmin_p ‖p − z‖² − λ‖p‖² on the simplex, by a general solver."""
    n = len(z)
    found: Any = minimize(  # type: ignore[call-overload]
        lambda p: ((p - z) ** 2).sum() - lam * (p**2).sum(),
        np.full(n, 1 / n),
        jac=lambda p: 2 * (p - z) - 2 * lam * p,
        bounds=[(0, 1)] * n,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1, "jac": lambda p: np.ones(n)},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return np.asarray(found.x)


def on_all(project: Projection, z: Tensor) -> Tensor:
    result: Tensor = project(z, torch.ones_like(z, dtype=torch.bool))
    return result


@settings(max_examples=30, deadline=None)
@given(scores_of, st.sampled_from([0.0, 0.5, -3.0]))
def test_sparsegen_solves_its_quadratic_programme(z: list[float], lam: float) -> None:
    got = on_all(Sparsegen(lam), torch.tensor(z, dtype=torch.float64)).numpy()
    assert np.abs(got - quadratic_programme(np.array(z), lam)).max() < 1e-4


def test_sparsegen_at_zero_is_sparsemax_and_its_limits_are_uniform_and_one_hot() -> None:
    z = torch.tensor([0.3, -0.1, 0.25], dtype=torch.float64)
    assert torch.equal(on_all(Sparsegen(0.0), z), on_all(Sparsemax(), z))
    assert on_all(Sparsegen(-1e6), z).sub(1 / 3).abs().max() < 1e-5
    assert on_all(Sparsegen(0.999), z).tolist() == [1, 0, 0]


@settings(max_examples=30, deadline=None)
@given(scores_of, st.sampled_from([1.3, 1.5, 1.8]))
def test_entmax_meets_its_optimality_condition(z: list[float], alpha: float) -> None:
    """p_i = [(α − 1) z_i − τ]_+^{1/(α−1)}: the τ of each supported entry is the same (Peters et al. 2019, eq. 5)."""
    scores = torch.tensor(z, dtype=torch.float64)
    p = on_all(Entmax(alpha), scores)
    tau = (alpha - 1) * scores - p ** (alpha - 1)
    supported = p > 1e-9
    assert abs(float(p.sum()) - 1) < 1e-6
    assert tau[supported].max() - tau[supported].min() < 1e-4
    least = 1e-9 ** (alpha - 1)  # how far above τ an entry may be whose p counts as nothing here
    assert ((alpha - 1) * scores[~supported] <= tau[supported].mean() + least + 1e-4).all()


@pytest.mark.parametrize("project", ALL, ids=repr)
def test_masked_keys_get_nothing_and_change_nothing(project: Projection) -> None:
    torch.manual_seed(0)
    real = torch.randn(5, 4, dtype=torch.float64)
    padded = torch.cat(
        [torch.randn(5, 2, dtype=torch.float64) * 50, real, torch.full((5, 1), 1e4, dtype=torch.float64)], 1
    )
    mask = torch.tensor([False] * 2 + [True] * 4 + [False])
    weights = project(padded, mask)
    assert torch.equal(weights[:, ~mask], torch.zeros(5, 3, dtype=torch.float64))
    assert (weights[:, mask] - on_all(project, real)).abs().max() < 1e-9
    assert (weights.sum(-1) - 1).abs().max() < 1e-9
    assert torch.equal(project(padded, torch.zeros(7, dtype=torch.bool)), torch.zeros_like(padded))


@pytest.mark.parametrize("project", ALL, ids=repr)
def test_gradients_are_exact(project: Projection) -> None:
    torch.manual_seed(3)
    z = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([True, True, False, True, True])
    project = project.double()
    assert torch.autograd.gradcheck(lambda z: project(z, mask), (z,), atol=1e-4)


def test_learned_alpha_has_its_own_gradient() -> None:
    project = Entmax(1.5, learned=True).double()
    z = torch.tensor([1.0, 0.4, -0.3], dtype=torch.float64)
    assert project.raw is not None

    def first(raw: float) -> float:
        with torch.no_grad():
            assert project.raw is not None
            project.raw.fill_(raw)
            return float(on_all(project, z)[0])

    at, step = 0.2, 1e-4
    numeric = (first(at + step) - first(at - step)) / (2 * step)
    first(at)
    on_all(project, z)[0].backward()
    assert project.raw.grad is not None
    assert float(project.raw.grad) == pytest.approx(numeric, rel=1e-3)


def test_impossible_dials_are_refused() -> None:
    with pytest.raises(UsageError, match="lam < 1"):
        Sparsegen(1.0)
    with pytest.raises(UsageError, match="alpha"):
        Entmax(1.0)
