"""Every defect in the table of `tests/README.md` has a test that would find it again: it is there, by its name."""

import re

from tests.docs.pages import ROOT

TABLE = (ROOT / "tests" / "README.md").read_text(encoding="utf8").partition("\n## ")[2]


def test_the_tests_of_old_defects_are_there() -> None:
    there = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf8"), re.MULTILINE)
    }
    rows = re.findall(r"^\| (.+) \| (`test_.+`) \|$", TABLE, re.MULTILINE)
    assert len(rows) >= 40
    assert {name for _, names in rows for name in re.findall(r"`(test_\w+)`", names)} - there == set()
