"""Small files for the tests of tasks."""

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any] | str]) -> Path:
    """One object a line, gzipped where the name says so; a string is written as it is, for malformed lines."""
    lines = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(lines.encode()) if path.suffix == ".gz" else lines.encode())
    return path


def labelled(count: int, prefix: str = "text") -> list[dict[str, Any]]:
    """Different texts of two classes in turn."""
    return [{"text": f"{prefix} number {i}", "label": str(i % 2)} for i in range(count)]


def data_set(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch, **splits: Iterable[Mapping[str, Any] | str]
) -> Path:
    """A data folder with one data set, named by EXEGETE_DATA."""
    for split, rows in splits.items():
        write_jsonl(folder / name / f"{split}.jsonl.gz", rows)
    monkeypatch.setenv("EXEGETE_DATA", str(folder))
    return folder / name
