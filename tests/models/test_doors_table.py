"""The table of doors: what is kept of it holds today, and nothing in it is wrong."""

from pathlib import Path

import polars as pl
import pytest

from exegete.models.huggingface.architectures import ARCHITECTURES
from tests.models.doors_table import HEADS, ONE, heads, one

KEPT = Path(__file__).parents[2] / "results" / "doors" / "doors.csv"
SOME = ("bert", "gpt2", "deberta-v2")  # with every kind of head; all others with one


def kept() -> dict[tuple[str, str], str]:
    return {(row["architecture"], row["case"]): row["outcome"] for row in pl.read_csv(KEPT).iter_rows(named=True)}


def test_the_kept_table_is_whole_and_nothing_in_it_is_wrong() -> None:
    cases = {(architecture, case) for architecture in ARCHITECTURES for case in HEADS}
    assert set(kept()) == cases | {("bert", case) for case in ONE}
    assert set(kept().values()) == {"right", "sentence"}


@pytest.mark.slow
def test_what_people_do_to_a_model_is_as_kept() -> None:
    assert {(door.architecture, door.case): door.outcome for door in one()}.items() <= kept().items()


@pytest.mark.slow
def test_every_architecture_is_as_kept() -> None:
    asked = {name: list(HEADS) if name in SOME else ["two default labels"] for name in ARCHITECTURES}
    assert {(door.architecture, door.case): door.outcome for door in heads(asked)}.items() <= kept().items()
