"""What the report says of the data: a table of every task that was checked, and nothing of older runs."""

from pathlib import Path

from exegete.answers.pages.build import _checks
from exegete.base.files import write_json

SPLITS = [
    {"split": "train", "texts": 80, "words": 7.5, "classes": 2, "rarest": 30, "repeated": 3, "shared": 0},
    {"split": "test", "texts": 10, "words": 7.0, "classes": 2, "rarest": 5, "repeated": 0, "shared": 4},
]


def test_every_task_that_was_checked_has_a_table(tmp_path: Path) -> None:
    check = {"splits": SPLITS, "warnings": []}
    data = {"mine": check, "mine:planted=token": check, "of_before": None}
    cells = [{"task": task, "model": "bilstm", "data": {"check": check}} for task, check in data.items()]
    older = {"task": "older", "model": "bilstm", "data": {"notes": []}}
    write_json(tmp_path / "manifest.json", {"cells": [*cells, older]})
    (table,) = _checks(tmp_path)
    assert table.title == "The texts of mine"
    assert table.cells()[1] == ["test", "10", "7.000", "2", "5", "0", "40.0 %"]
