"""Fair coins, against scipy's."""

import pytest
from scipy import stats

from exegete.measures.proportions import fair_quantile, sign_p


@pytest.mark.parametrize("level", [0.005, 0.025, 0.05])
def test_quantiles_are_scipys(level: float) -> None:
    sizes = [*range(1, 300), 1000, 5000]
    assert [fair_quantile(level, n) for n in sizes] == [int(stats.binom.ppf(level, n, 0.5)) for n in sizes]


@pytest.mark.parametrize("n", [1, 2, 7, 20, 171])
def test_the_sign_test_is_scipys(n: int) -> None:
    for above in range(n + 1):
        assert sign_p(above, n - above) == pytest.approx(stats.binomtest(above, n).pvalue, rel=1e-12)


def test_no_signs_tell_nothing() -> None:
    assert sign_p(0, 0) == 1.0
