"""Splits by hash: stable, in proportion, one split for equal texts."""

from hypothesis import given
from hypothesis import strategies as st

from exegete.tasks.splits import by_place, place

TEXTS = [f"text number {i}" for i in range(20_000)]


def test_places_are_the_same_in_every_version() -> None:
    """Written down once: if one of these changes, every published split has changed."""
    assert f"{place(['a good film .']):.6f}" == "0.330844"
    assert f"{place(['a good film .'], seed=7):.6f}" == "0.576085"


@given(st.text(), st.integers(0, 3))
def test_places_are_in_the_unit_interval_and_ignore_white_space(text: str, seed: int) -> None:
    where = place([text], seed)
    assert 0 <= where < 1
    assert place([f"\n {text} \t"], seed) == where


def test_texts_of_a_pair_are_kept_apart() -> None:
    assert place(["a b", "c"]) != place(["a", "b c"])


def test_proportions() -> None:
    splits = by_place(TEXTS, lambda text: place([text]))
    assert {name: round(len(found) / len(TEXTS), 2) for name, found in splits.items()} == {
        "train": 0.8,
        "dev": 0.1,
        "test": 0.1,
    }
    halves = by_place(TEXTS, lambda text: place([text]), {"left": 0.5, "right": 0.5})
    assert abs(len(halves["left"]) - len(halves["right"])) < 500
    assert sorted(halves["left"] + halves["right"]) == sorted(TEXTS)


def test_equal_texts_land_in_one_split() -> None:
    splits = by_place([*TEXTS[:500], *TEXTS[:500]], lambda text: place([text]))
    for found in splits.values():
        assert all(found.count(text) == 2 for text in found)


def test_rounding_loses_nothing() -> None:
    assert by_place([0.9999], float, {"a": 0.3, "b": 0.3, "c": 0.3}) == {"a": [], "b": [], "c": [0.9999]}
