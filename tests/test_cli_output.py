"""What surrounds a command may be poor: an output without our letters or without room, a place that can't be made."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.studied import reviews


def command(*words: str, stdout: int | None = None, **environment: str) -> "subprocess.CompletedProcess[str]":
    """A command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "exegete", *words],
        stdout=subprocess.PIPE if stdout is None else stdout,
        stderr=subprocess.PIPE,
        env=os.environ | environment,
        check=False,
        text=True,
    )


def one_sentence(done: "subprocess.CompletedProcess[str]") -> str:
    assert "Traceback" not in done.stderr
    return done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize("kind", ["measures", "importances"])
def test_an_output_without_our_letters_gets_others(kind: str) -> None:
    done = command("ls", kind, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.isascii()


def test_json_is_whole_in_any_encoding() -> None:
    plain, ascii_only = (command("ls", "measures", "--json", PYTHONIOENCODING=name) for name in ("utf8", "ascii"))
    assert json.loads(plain.stdout) == json.loads(ascii_only.stdout)
    assert "τ" in plain.stdout
    assert ascii_only.stdout.isascii()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
@pytest.mark.parametrize("words", [["ls"], ["ls", "--json"], ["--help"]])
def test_an_output_without_room_is_one_sentence(words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = command(*words, stdout=full.fileno())
    assert done.returncode == 1
    assert one_sentence(done).startswith("error: the output can't be written (No space left on device)")


@pytest.mark.slow
@pytest.mark.parametrize("out", ["file/run", "/proc/run", "n" * 300])
@pytest.mark.parametrize("name", ["audit", "train"])
def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path, name: str, out: str) -> None:
    (tmp_path / "file").touch()
    place = out if out.startswith("/") else str(tmp_path / out)
    words = ["--task", f"file:{reviews(tmp_path / 'reviews.csv')}:text=review,label=sentiment", "--out", place]
    done = command(name, *words, "--model", "average:size=4", "--quiet")
    assert done.returncode == 1
    assert one_sentence(done).startswith("error: can't ")
    assert "choose another" in one_sentence(done)


@pytest.mark.slow
def test_a_model_larger_than_any_memory_is_one_sentence(tmp_path: Path) -> None:
    words = ["--task", f"file:{reviews(tmp_path / 'reviews.csv')}:text=review,label=sentiment"]
    for size in ("99999999999", "9" * 22):
        done = command("train", *words, "--model", f"average:size={size}", "--out", str(tmp_path / size))
        assert done.returncode == 1
        assert one_sentence(done).startswith("error: not enough memory: use a smaller model")


def test_a_cache_that_is_no_folder_is_told_first(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = command("ls", EXEGETE_CACHE=str(tmp_path / "file"))
    assert done.returncode == 2
    assert "EXEGETE_CACHE" in one_sentence(done)
