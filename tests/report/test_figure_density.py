"""Our density is a density on [−1, 1], and what a slow one gives."""

import math

import numpy as np
import pytest

from exegete.report.density import NARROWEST, Values, bandwidth, density, density_curves, reflected_density
from tests.report.agreement_frames import agreement_rows

VALUES = {
    "spread": np.clip(np.random.default_rng(1).normal(0.4, 0.3, 200), -1, 1),
    "at the edge": np.array([1.0] * 50 + [-1.0] * 3 + [0.2]),
    "all the same": np.full(7, 0.3),
    "one": np.array([-1.0]),
}


def slow_density(values: Values, x: float, h: float) -> float:
    """Each kernel cut at ±1, and what was cut folded back, again and again."""
    total = 0.0
    for value in values:
        for image in (value, 2 - value, -2 - value, value + 4, value - 4, 6 - value, -6 - value):
            total += math.exp(-((x - image) ** 2) / (2 * h * h)) / (h * math.sqrt(2 * math.pi))
    return total / len(values)


@pytest.mark.parametrize("name", VALUES)
def test_it_integrates_to_one(name: str) -> None:
    at = np.linspace(-1, 1, 4001)
    assert np.trapezoid(reflected_density(VALUES[name], at), at) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("width", [None, 0.4])
def test_it_is_what_a_slow_one_gives(name: str, width: float | None) -> None:
    values, at = VALUES[name], np.linspace(-1, 1, 9)
    h = width or bandwidth(values, np.ones(len(values)))
    assert reflected_density(values, at, width=width) == pytest.approx(
        [slow_density(values, x, h) for x in at], abs=1e-9
    )


def test_counted_values_weigh_as_often_as_they_occur() -> None:
    at = np.linspace(-1, 1, 21)
    counted = reflected_density(np.array([0.1, 0.5, -0.3]), at, np.array([3.0, 1.0, 2.0]))
    assert counted == pytest.approx(reflected_density(np.array([0.1, 0.1, 0.1, 0.5, -0.3, -0.3]), at))


def test_bandwidth_is_silvermans_and_never_nothing() -> None:
    values = VALUES["spread"]
    assert bandwidth(np.full(9, 0.5), np.ones(9)) == NARROWEST
    low, high = np.quantile(values, [0.25, 0.75])
    assert bandwidth(values, np.ones(200)) == pytest.approx(
        0.9 * min(values.std(), (high - low) / 1.34) * 200**-0.2, rel=0.05
    )


def test_drawn_curves_integrate_to_one_and_leave_noise_out() -> None:
    table = density_curves(agreement_rows())
    assert set(table["panel"]) == {"tanh, softmax", "tanh, sparsemax"}
    drawn = table.drop_nulls("pair")
    assert not drawn["pair"].str.contains("random").any()
    for _, curve in drawn.group_by("panel", "pair"):
        assert np.trapezoid(curve["y"], curve["x"]) == pytest.approx(1, abs=2e-3)


def test_undefined_values_give_a_sentence() -> None:
    rows = agreement_rows()
    for empty in (rows.head(0), rows.filter(rows["value"].is_null())):
        assert "nothing to show" in str(density(empty).to_dict())
