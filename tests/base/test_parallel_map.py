"""Work that is shared is the work that one process does: its results in order, its first error, whoever dies."""

import os
from collections.abc import Iterator
from contextlib import closing
from itertools import count, islice
from multiprocessing import parent_process

import pytest

from exegete.base.errors import UsageError
from exegete.base.parallel_map import AHEAD, map_in_parallel
from exegete.base.processes import at_most, cores, hands


def tripled(number: int) -> int:
    return 3 * number


def where(_: int) -> int:
    return os.getpid()


def refused_seven(number: int) -> int:
    if number == 7:
        raise UsageError("not seven")
    return number


def deadly(number: int) -> int:
    if number == 3 and parent_process() is not None:
        os._exit(9)
    return -number


def hands_here(_: int) -> int:
    return hands()


@pytest.mark.parametrize("many", [1, 2])
def test_results_are_in_order(many: int) -> None:
    assert list(map_in_parallel(tripled, range(40), many)) == [(n, 3 * n) for n in range(40)]


def test_others_do_it() -> None:
    pids = {pid for _, pid in map_in_parallel(where, range(20), 2)}
    assert os.getpid() not in pids


@pytest.mark.parametrize("many", [1, 2])
def test_the_first_error_is_that_of_one_process(many: int) -> None:
    def items() -> Iterator[int]:
        yield from range(9)
        raise ValueError("the items end badly")

    work = map_in_parallel(refused_seven, items(), many)
    assert [item for item, _ in islice(work, 7)] == list(range(7))
    with pytest.raises(UsageError, match="not seven"):
        next(work)
    with pytest.raises(ValueError, match="end badly"):
        list(map_in_parallel(tripled, items(), many))


def test_what_a_dead_process_had_is_done_here() -> None:
    assert list(map_in_parallel(deadly, range(12), 2)) == [(n, -n) for n in range(12)]


def test_few_things_are_on_their_way() -> None:
    begun: list[int] = []
    endless = (begun.append(n) or n for n in count())  # type: ignore[func-returns-value]
    with closing(map_in_parallel(tripled, endless, 2)) as work:
        assert [found for _, found in islice(work, 5)] == [0, 3, 6, 9, 12]
    assert len(begun) <= 5 + 2 * AHEAD + 1


def test_who_helps_has_no_helpers() -> None:
    assert hands() == cores()
    with at_most(1):
        assert hands() == 1
    assert [found for _, found in map_in_parallel(hands_here, range(3), 2)] == [1, 1, 1]
