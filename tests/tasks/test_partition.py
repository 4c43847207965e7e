"""Which texts are in which split: by columns, held against cutting and taking text by text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exegete.base.errors import ExegeteError
from exegete.tasks.partition import TextColumns, first_by_place, number_classes, with_all_splits, within_lengths
from exegete.tasks.settings import LengthFilter
from exegete.tasks.splits import PROPORTIONS, by_place

place = st.floats(0, 1, exclude_max=True)
SHARES = (PROPORTIONS, {"train": 0.9, "dev": 0.1})


def columns(places: list[float]) -> TextColumns:
    rows = [(at, place, at % 7, at % 3) for at, place in enumerate(places)]
    return np.array(rows, [("at", "i8"), ("place", "f8"), ("longest", "i8"), ("label", "i8")])


@given(st.lists(place), st.integers(0, 10), st.integers(0, 10))
def test_a_sample_has_the_smallest_places_in_order_and_is_nested(places: list[float], few: int, more: int) -> None:
    small, large = (first_by_place(columns(places), n)["at"].tolist() for n in (few, few + more))
    assert len(small) == min(few, len(places))
    assert small == sorted(small)
    assert set(small) <= set(large)
    assert sorted(places[at] for at in small) == sorted(places)[: len(small)]
    assert first_by_place(columns(places), None).tolist() == columns(places).tolist()


@given(
    st.lists(st.floats(0, 1, exclude_max=True), min_size=1), st.sampled_from([PROPORTIONS, {"train": 0.9, "dev": 0.1}])
)
def test_missing_splits_are_cut_as_text_by_text(places: list[float], proportions: dict[str, float]) -> None:
    there = {"train": columns(places)} | ({} if "test" in proportions else {"test": columns([0.5])})
    slow = by_place(list(enumerate(places)), lambda item: item[1], proportions)
    if not all(slow.values()):
        with pytest.raises(ExegeteError, match="no text is left for"):
            with_all_splits("texts", there, [])
        return
    whole = with_all_splits("texts", there, [])
    assert {split: whole[split]["at"].tolist() for split in slow} == {
        split: [at for at, _ in kept] for split, kept in slow.items()
    }


def test_texts_out_of_bounds_are_counted() -> None:
    notes: list[str] = []
    kept = within_lengths("dev", columns([0.1] * 14), LengthFilter(2, 4), notes)
    assert kept["longest"].tolist() == [2, 3, 4, 2, 3, 4]
    assert notes == ["8 texts were left out of dev by the length filter."]
    with pytest.raises(ExegeteError, match="widen min_length"):
        within_lengths("dev", columns([0.1] * 3), LengthFilter(9), notes)


def test_classes_get_numbers_in_order_and_unused_ones_none() -> None:
    splits = {"train": columns([0.1] * 6)}
    classes, numbers = number_classes(splits, {"10.0": 0, "9": 1, "2": 2, "unused": 3}, ["7"])
    assert (classes, numbers) == (("2", "7", "9", "10"), {"10.0": 3, "9": 2, "2": 0, "7": 1})
    assert splits["train"]["label"].tolist() == [3, 2, 0, 3, 2, 0]
