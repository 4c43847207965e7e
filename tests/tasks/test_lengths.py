"""Length filter: inclusive bounds by default, Jain & Wallace's strict ones on demand."""

import pytest

from exegete.tasks.settings import LengthFilter

TEXTS = ["x" * n for n in (1, 2, 2, 3, 5, 5)]


@pytest.mark.parametrize(
    ("lengths", "kept"),
    [
        (LengthFilter(), [1, 2, 2, 3, 5, 5]),
        (LengthFilter(2), [2, 2, 3, 5, 5]),
        (LengthFilter(None, 3), [1, 2, 2, 3]),
        (LengthFilter(2, 3), [2, 2, 3]),
        (LengthFilter(legacy=True), [2, 2, 3]),  # both extremes go, unasked
        (LengthFilter(2, legacy=True), [3]),  # above 2, and below the longest
        (LengthFilter(None, 5, legacy=True), [2, 2, 3]),
        (LengthFilter(1, 9, legacy=True), [2, 2, 3, 5, 5]),
    ],
)
def test_bounds(lengths: LengthFilter, kept: list[int]) -> None:
    found, dropped = lengths(TEXTS)
    assert [len(text) for text in found] == kept
    assert dropped == len(TEXTS) - len(kept)


def test_nothing_in_nothing_out() -> None:
    assert LengthFilter(legacy=True)([]) == ([], 0)
