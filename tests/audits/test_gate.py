"""An audit as a check: which verdicts stop a build, and the pytest plugin that asks for it."""

from pathlib import Path
from unittest.mock import patch

import pytest

from exegete.audits.gate import AuditFailedError, check, named_tests
from exegete.audits.scorecard import Audit
from exegete.base.errors import UsageError
from exegete.page.section import Verdict as Line

pytest_plugins = ["pytester"]


def line(name: str, verdict: str) -> Line:
    return Line(name, "t", "m", "?", 0.1, 9, (0.0, 0.2), 0.95, 0.0, "it does", verdict, "this checkpoint", "p")  # type: ignore[arg-type]


def found(**verdicts: str) -> Audit:
    return Audit("", tuple(line(name, verdict) for name, verdict in verdicts.items()), 4)


def test_tests_are_named_with_commas() -> None:
    assert named_tests("faithful, known_answer") == ("faithful", "known_answer")
    with pytest.raises(UsageError, match="faithful"):
        named_tests("faithfull")
    with pytest.raises(UsageError, match="at least one"):
        named_tests(" , ")


def test_a_failure_is_a_failure_and_a_doubt_is_none() -> None:
    audit = found(faithful="fails", used="holds", unique="cannot tell", needed="not testable")
    with pytest.raises(
        AuditFailedError, match=r"faithful fails for m on t \(0.100 \[0.000, 0.200\]\): holds if it does"
    ):
        check(audit, ["used", "faithful"])
    assert check(audit, ["used"]) == []
    assert [said.split(" for")[0] for said in check(audit, ["unique", "needed"])] == [
        "unique cannot tell",
        "needed not testable",
    ]
    with pytest.raises(UsageError, match="does not ask 'stable'"):
        check(audit, ["stable"])


@pytest.mark.parametrize(
    ("verdict", "strict", "passed"),
    [("holds", True, 1), ("fails", False, 0), ("cannot tell", False, 1), ("cannot tell", True, 0)],
)
def test_the_plugin_turns_verdicts_into_test_results(
    pytester: pytest.Pytester, verdict: str, strict: bool, passed: int
) -> None:
    pytester.makepyfile(
        f"""
        def test_attention(assert_attention):
            audit = assert_attention("checkpoint", "file:reviews.csv", holds=("faithful",), strict={strict})
            assert audit.tests
        """
    )
    with patch("exegete.audit", return_value=found(faithful=verdict)) as asked:
        result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=passed, failed=1 - passed)
    assert asked.call_args.args == ("checkpoint", "file:reviews.csv")
    assert isinstance(asked.call_args.kwargs["out"], Path)
