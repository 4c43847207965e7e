"""The how-to page's importance, as it stands there, in a small study on a made-up file."""

import random
import shutil
from pathlib import Path

import polars as pl
import pytest

from exegete.runs.engine.local import LocalEngine
from exegete.runs.run import run_study
from exegete.runs.study import load_study
from tests.docs.pages import ROOT

NAME = "first_letter:flip=true"
FILM = ("the", "a", "film", "story", "scene", "actor", "music", "plot", "ending", "camera")
FEELING = {"negative": ("dull", "bad", "slow"), "positive": ("fine", "good", "warm")}


def _review(label: str, draw: random.Random) -> str:
    words = [draw.choice(FILM) for _ in range(draw.randint(3, 9))]
    words.insert(draw.randrange(len(words)), draw.choice(FEELING[label]))
    return " ".join(words)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of the page's study on 60 short texts."""
    folder = tmp_path_factory.mktemp("own_importance")
    draw = random.Random(0)
    lines = [f"{_review(label, draw)},{label}\n" for _ in range(30) for label in FEELING]
    (folder / "reviews.csv").write_text("".join(["review,sentiment\n", *lines]), encoding="utf8")
    for name in ("first_letter.py", "first_letter.toml"):
        shutil.copy(ROOT / "examples" / name, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("exegete.page.theme.save", lambda chart, folder, name: None)  # figures are looked at elsewhere
        return run_study(load_study("first_letter.toml"), folder / "run", engine=LocalEngine(1))


def test_rows_have_the_new_importance(run: Path) -> None:
    rows = pl.read_parquet(run / "tables" / "agreement.parquet")
    pairs = {(first, second) for first, second in rows.select("first", "second").unique().iter_rows()}
    assert {("attention", NAME), ("gradient", NAME), ("random", NAME)} <= pairs


def test_its_scores_are_places_in_the_alphabet(run: Path) -> None:
    [texts] = run.glob("stages/predict-*/part-00000.parquet")
    parts = [pl.read_parquet(path) for path in run.glob("stages/score-*/part-00000.parquet")]
    [scores] = [part for part in parts if part["scores"].explode().max() == -1]  # flipped: a is −1, z is −26
    joined = pl.read_parquet(texts).join(scores, on="example")
    for words, values in joined.select("words", "scores").iter_rows():
        assert values == [float(ord("a") - 1 - ord(word[0])) for word in words]
