"""Failing: an audit as a check that a build can stop at."""

from collections.abc import Sequence

from exegete.audits.scorecard import Audit
from exegete.base.errors import ExegeteError, UsageError, unknown
from exegete.experiments.tests import declared
from exegete.page.section import Verdict


class AuditFailedError(ExegeteError):
    """A test that had to hold fails."""


def named_tests(written: str) -> tuple[str, ...]:
    """Tests by name, separated by commas."""
    names = tuple(filter(None, (name.strip() for name in written.split(","))))
    if not names:
        raise UsageError("name at least one test to fail on, as in --fail-on faithful,known_answer")
    for name in names:
        if name not in declared():
            raise unknown("test", name, declared())
    return names


def check(found: Audit, names: Sequence[str]) -> list[str]:
    """Raise if a named test fails for any model; sentences on those that could not tell, which is no failure."""
    asked = {name: [test for test in found.tests if test.name == name] for name in names}
    for name, lines in asked.items():
        if not lines:
            raise UsageError(f"this audit does not ask '{name}': take a study that does, or leave it out")
    failed = [line for lines in asked.values() for line in lines if line.verdict == "fails"]
    if failed:
        raise AuditFailedError("; ".join(map(_said, failed)))
    return [_said(line) for lines in asked.values() for line in lines if line.verdict != "holds"]


def _said(line: Verdict) -> str:
    low, high = line.bounds or (None, None)
    number = "" if line.statistic is None or low is None else f" ({line.statistic:.3f} [{low:.3f}, {high:.3f}])"
    why = line.doubt or f"holds if {line.criterion}"
    return f"{line.name} {line.verdict} for {line.model} on {line.task}{number}: {why}"
