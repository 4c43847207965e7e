"""HardKuma: probabilities against numeric integration of the density, samples against their frequencies."""

import pytest
import torch
from scipy.integrate import quad

from exegete.base.noise import uniform
from exegete.models.ours.hardkuma import HardKuma, shape_for

SHAPES = ((0.5, 0.5), (0.1, 1.1), (2.0, 5.0), (5.0, 1.0), (1.0, 1.0), (0.8, 9.0))
LOW, HIGH = -0.1, 1.1


def density(x: float, a: float, b: float) -> float:
    """Kumaraswamy's density a b x^(a−1) (1 − x^a)^(b−1)."""
    return float(a * b * x ** (a - 1) * (1 - x**a) ** (b - 1))


def made(a: float, b: float) -> HardKuma:
    return HardKuma(torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64))


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_probabilities_are_integrals_of_the_density(a: float, b: float) -> None:
    shut, opened = (0 - LOW) / (HIGH - LOW), (1 - LOW) / (HIGH - LOW)
    between = quad(density, shut, opened, args=(a, b), epsabs=1e-12)[0]  # away from the density's poles
    gate = made(a, b)
    assert 1 - gate.off.item() - gate.on.item() == pytest.approx(between, abs=1e-9)
    assert gate.selected.item() == pytest.approx(1 - gate.off.item(), abs=1e-12)
    half = quad(density, shut, (0.5 - LOW) / (HIGH - LOW), args=(a, b), epsabs=1e-12)[0]
    assert gate.cdf(torch.tensor(0.5).double()).item() - gate.off.item() == pytest.approx(half, abs=1e-9)
    assert gate.cdf(torch.tensor(0.0).double()).item() == pytest.approx(gate.off.item(), abs=1e-12)


@pytest.mark.parametrize(("a", "b"), SHAPES[2:5])
def test_the_ends_hold_what_lies_beyond_them(a: float, b: float) -> None:
    gate = made(a, b)
    assert gate.off.item() == pytest.approx(quad(density, 0, 1 / 12, args=(a, b))[0], abs=1e-8)
    assert gate.on.item() == pytest.approx(quad(density, 11 / 12, 1, args=(a, b))[0], abs=1e-8)
    mean = quad(lambda x: x * density(x, a, b), 0, 1)[0]
    assert gate.mean.item() == pytest.approx(min(1, max(0, LOW + (HIGH - LOW) * mean)), abs=1e-7)


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_samples_come_as_often_as_the_probabilities_say(a: float, b: float) -> None:
    n = 20_000
    gate = HardKuma(torch.full((n,), a).double(), torch.full((n,), b).double())
    z = gate.sample(uniform(0, torch.arange(n)))
    error = 4 * 0.5 / n**0.5
    for share, probability in (
        ((z == 0), gate.off),
        ((z == 1), gate.on),
        ((z > 0), gate.selected),
        ((z <= 0.3), gate.cdf(torch.tensor(0.3).double())),
    ):
        assert share.double().mean().item() == pytest.approx(probability.mean().item(), abs=error)
    assert bool(((z >= 0) & (z <= 1)).all())


def test_a_sample_is_the_inverse_of_the_distribution() -> None:
    u = torch.linspace(0.001, 0.999, 50).double()
    gate = made(1.3, 0.7)
    z = gate.sample(u)
    inside = (z > 0) & (z < 1)
    assert inside.sum() > 10
    assert torch.allclose(gate.cdf(z[inside]), u[inside], atol=1e-12)


def test_gradients_of_samples_probabilities_and_mean() -> None:
    a = torch.tensor([0.5, 1.2, 2.0, 0.9]).double().requires_grad_()
    b = torch.tensor([0.6, 1.5, 4.0, 1.1]).double().requires_grad_()
    u = torch.tensor([0.4, 0.5, 0.6, 0.3]).double()
    assert bool(((HardKuma(a, b).sample(u) > 0) & (HardKuma(a, b).sample(u) < 1)).all())
    assert torch.autograd.gradcheck(lambda a, b: HardKuma(a, b).sample(u), (a, b))
    assert torch.autograd.gradcheck(lambda a, b: HardKuma(a, b).selected, (a, b))
    assert torch.autograd.gradcheck(lambda a, b: HardKuma(a, b).mean, (a, b))


def test_the_choice_is_the_most_probable_case() -> None:
    assert made(0.1, 3.0).choice.item() == 0  # nearly all below
    assert made(8.0, 0.2).choice.item() == 1  # nearly all above
    middle = made(2.0, 2.0)
    assert 0 < middle.choice.item() < 1
    assert middle.choice.item() == middle.mean.item()


def test_extreme_shapes_and_noise_stay_finite() -> None:
    a = torch.tensor([0.01, 0.01, 100.0, 100.0], requires_grad=True)
    b = torch.tensor([0.01, 100.0, 0.01, 100.0], requires_grad=True)
    for u in (1e-6, 0.5, 1 - 1e-6):
        gate = HardKuma(a, b)
        total = gate.sample(torch.full((4,), u)).sum() + gate.selected.sum() + gate.choice.sum()
        gradients = torch.autograd.grad(total, (a, b))
        assert bool(total.isfinite())
        assert all(bool(g.isfinite().all()) for g in gradients), (u, gradients)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.9])
def test_a_shape_for_a_share(share: float) -> None:
    assert made(0.3, shape_for(share, 0.3)).selected.item() == pytest.approx(share)
