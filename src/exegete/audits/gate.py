"""Failing: an audit as a check that a build can stop at."""

from collections.abc import Sequence

from exegete.audits.scorecard import Audit, Criteria, Test
from exegete.base.errors import ExegeteError, UsageError, unknown


class AuditFailedError(ExegeteError):
    """A test that had to hold fails."""


def named_tests(written: str) -> tuple[str, ...]:
    """Tests by name, separated by commas."""
    known = [name for name in Criteria.model_fields if name != "version"]
    names = tuple(filter(None, (name.strip() for name in written.split(","))))
    if not names:
        raise UsageError("name at least one test to fail on, as in --fail-on faithful,known_answer")
    for name in names:
        if name not in known:
            raise unknown("test", name, known)
    return names


def check(found: Audit, names: Sequence[str]) -> list[str]:
    """Raise if a named test fails for any model; sentences on those that could not tell, which is no failure."""
    asked = {name: [test for test in found.tests if test.name == name] for name in names}
    for name, tests in asked.items():
        if not tests:
            raise UsageError(f"this audit does not ask '{name}': take a study that does, or leave it out")
    failed = [test for tests in asked.values() for test in tests if test.verdict == "fails"]
    if failed:
        raise AuditFailedError("; ".join(map(_said, failed)))
    return [_said(test) for tests in asked.values() for test in tests if test.verdict != "holds"]


def _said(test: Test) -> str:
    low, high = test.interval
    number = (
        ""
        if test.statistic is None or low is None or high is None
        else f" ({test.statistic:.3f} [{low:.3f}, {high:.3f}])"
    )
    why = test.doubt or f"holds if {test.criterion}"
    return f"{test.name} {test.verdict} for {test.model} on {test.task}{number}: {why}"
