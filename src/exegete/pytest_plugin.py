"""A pytest plugin: attention that stops being faithful breaks a test.

    def test_attention(assert_attention):
        assert_attention("checkpoints/mine", "file:reviews.csv", holds=("faithful", "used"))

It comes with the package: pytest finds it by its entry point.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from exegete.audits.scorecard import Audit

AssertAttention = Callable[..., "Audit"]


@pytest.fixture
def assert_attention(tmp_path: Path) -> AssertAttention:
    """One assertion: these tests of the audit do not fail; with `strict`, they hold."""

    def check(
        model: str, task: str, holds: Sequence[str] = ("faithful",), *, quick: bool = True, strict: bool = False
    ) -> "Audit":
        from exegete import audit
        from exegete.audits.gate import AuditFailedError, named_tests
        from exegete.audits.gate import check as checked

        names = named_tests(",".join(holds))
        found = audit(model, task, out=tmp_path / "audit", quick=quick)
        failed, doubts = "", []
        try:
            doubts = checked(found, names)
        except AuditFailedError as failure:
            failed = str(failure)
        if failed or (strict and doubts):  # not while it is handled: its message would be printed twice
            pytest.fail(failed or "; ".join(doubts), pytrace=False)
        return found

    return check
