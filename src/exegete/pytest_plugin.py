"""A pytest plugin: attention that stops being faithful breaks a test.

    def test_attention(assert_attention):
        assert_attention("checkpoints/mine", "file:reviews.csv", holds=("reads", "ranks"))

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
    """One assertion: these tests of the audit hold; without `strict`, those that can't tell may pass."""

    def check(
        model: str, task: str, holds: Sequence[str] = ("reads", "ranks"), *, quick: bool = True, strict: bool = True
    ) -> "Audit":
        from exegete import audit
        from exegete.audits.audit import Wanted
        from exegete.audits.gate import AuditFailedError, named_tests
        from exegete.audits.gate import check as checked

        out = tmp_path / "audit"
        names = named_tests(",".join(holds), Wanted(model, task, quick=quick).named(out))
        found, failed = audit(model, task, out=out, quick=quick), ""
        try:
            checked(found, names, strict)
        except AuditFailedError as failure:
            failed = str(failure)
        if failed:  # not while it is handled: its message would be printed twice
            pytest.fail(failed, pytrace=False)
        return found

    return check
