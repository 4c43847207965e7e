"""Criteria come from the declarations, and a declaration that decides otherwise needs another version."""

import hashlib
import json
from pathlib import Path

import pytest

from exegete.answers.criteria import VERSION, VERSIONS, load_criteria
from exegete.base.errors import UsageError
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.tests import all_tests, built_in_tests

DECIDING = (
    "name", "criterion", "margin", "partly", "experiments", "statistic", "within", "bound", "about", "kind", "goals",
)  # fmt: skip


def fingerprint() -> str:
    said = [{field: getattr(test, field) for field in DECIDING} for test in built_in_tests().values()]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


def test_what_decides_a_verdict_has_a_version() -> None:
    assert VERSIONS[VERSION] == fingerprint(), (
        f"a test's declaration decides otherwise than before: add {VERSION + 1}: '{fingerprint()}' to VERSIONS"
    )


def test_criteria_are_what_tests_declare() -> None:
    criteria = load_criteria()
    assert criteria.version == VERSION
    for name, test in all_tests().items():
        found = criteria[name]
        assert (found.question, found.margin, found.paper) == (test.question, test.margin, test.source)
        assert str(found) == test.criterion.format(margin=test.margin)


def test_declarations_are_whole() -> None:
    for test in built_in_tests().values():
        assert set(test.experiments) <= set(EXPERIMENTS)
        assert not test.says or {"holds", "fails", "cannot tell"} <= set(test.says)
        assert test.measures
        assert test.remark
    standing = [test.experiments[0] for test in built_in_tests().values() if test.words]
    assert sorted(standing) == sorted(
        {test.experiments[0] for test in built_in_tests().values()}
    )  # one stands for each


def test_partly_lies_below_the_margin(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("version = 9\n[ranks]\nmargin = 0.4\n")
    with pytest.raises(UsageError, match=r"partly is 0.5, and must be less than the margin, 0.4"):
        load_criteria(file)
    file.write_text("version = 9\n[ranks]\nmargin = 0.4\npartly = 0.3\n")
    assert load_criteria(file)["ranks"].partly == 0.3
