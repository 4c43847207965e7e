"""The how-to page's importance, as it stands there, in a small study on a made-up file."""

from pathlib import Path

import polars as pl
import pytest

from tests.docs.plugin_runs import run_of

NAME = "first_letter:flip=true"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of the page's study on 60 short texts."""
    return run_of("first_letter", tmp_path_factory.mktemp("own_importance"))


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
