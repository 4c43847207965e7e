"""Whole files only: after an error nothing half-written is left, and what was there stays."""

import errno
from pathlib import Path

import pytest
from polars.exceptions import ComputeError
from safetensors import SafetensorError

from exegete.base.errors import ExegeteError
from exegete.base.files import read_json, whole_file, whole_folder, write_json, write_text


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    write_text(path, "old")

    def half() -> None:
        with whole_file(path) as beside:
            beside.write_text("ne")
            raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        half()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["table.csv"]


@pytest.mark.parametrize(
    ("number", "sentence"),
    [(errno.ENOSPC, "no space left"), (errno.EACCES, "may not write"), (errno.ENOTDIR, "something else")],
)
def test_what_a_disk_says_is_one_sentence(tmp_path: Path, number: int, sentence: str) -> None:
    with pytest.raises(ExegeteError, match=sentence), whole_file(tmp_path / "x"):
        raise OSError(number, "said the disk")
    assert list(tmp_path.iterdir()) == []


def test_what_libraries_make_of_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    for error in (SafetensorError("I/O error: No space left on device (os error 28)"), ComputeError("os error 28")):
        with pytest.raises(ExegeteError, match="no space left"), whole_file(tmp_path / "x"):
            raise error
    with pytest.raises(ComputeError), whole_file(tmp_path / "x"):
        raise ComputeError("something else")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:

    def half() -> None:
        with whole_folder(tmp_path / "model") as beside:
            (beside / "a").write_text("a")
            raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        half()
    assert list(tmp_path.iterdir()) == []
    with whole_folder(tmp_path / "model") as beside:
        (beside / "a").write_text("a")
    assert (tmp_path / "model" / "a").read_text() == "a"


def test_json_holds_no_nan_and_reads_back(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "x.json", {"mean": float("nan")})
    write_json(tmp_path / "x.json", {"τ": 0.5})
    assert read_json(tmp_path / "x.json", "run") == {"τ": 0.5}
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(ExegeteError, match="can't be read as a run"):
        read_json(tmp_path / "x.json", "run")


def test_a_path_under_a_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExegeteError, match="something else under that name"):
        write_text(tmp_path / "file" / "x", "words")
