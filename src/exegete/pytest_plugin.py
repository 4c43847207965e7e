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
    from exegete.answers.scorecard import Audit

AssertAttention = Callable[..., "Audit"]


@pytest.fixture
def assert_attention(tmp_path: Path) -> AssertAttention:
    """One assertion: these tests of the audit hold; without `strict`, those that can't tell may pass.

    Where a `grade` is named, "partly" or "strong", attention surely goes that far; tests are then asked if they are
    named, too.
    """

    def check(
        model: str,
        task: str,
        holds: Sequence[str] | None = None,
        *,
        grade: str | None = None,
        quick: bool = True,
        strict: bool = True,
    ) -> "Audit":
        from exegete import audit
        from exegete.answers.gate import AuditFailedError, named_tests
        from exegete.answers.gate import check_gate as checked
        from exegete.answers.request import AuditRequest, study_for

        out = tmp_path / "audit"
        asked = list(holds if holds is not None else () if grade else ("reads", "ranks"))
        wanted = ",".join([*asked, *([f"grade<{grade}"] if grade else [])])
        names = named_tests(wanted, study_for(AuditRequest(model, task, quick=quick), out))
        found, failed = audit(model, task, out=out, quick=quick), ""
        try:
            checked(found, names, strict)
        except AuditFailedError as failure:
            failed = str(failure)
        if failed:  # not while it is handled: its message would be printed twice
            pytest.fail(failed, pytrace=False)
        return found

    return check
