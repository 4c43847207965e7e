"""A warm worker: it keeps what it made, answers in order, says what is wrong, can be given up, and starts again."""

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from exegete.base.errors import ExegeteError, UsageError
from exegete.runs.engine.warm import DIED, Answerer, GivenUp, Reply, Tell, Warm

WAIT = 60


def make(tell: Tell, name: str) -> Answerer:
    """Keeps a list of what it was asked."""
    tell({"making": name})
    if name == "wrong":
        raise UsageError("there is no such thing")
    asked: list[str] = []

    def answer(question: str, arguments: dict[str, Any], tell: Tell) -> Reply:
        asked.append(question)
        if question == "fail":
            raise ExegeteError("that failed")
        if question == "die":
            os._exit(1)
        if question == "break":
            raise KeyError("a defect")
        for step in range(arguments.get("steps", 0)):
            tell({"step": step})
            time.sleep(0.01)
        return {"asked": asked, "process": os.getpid()}

    return answer


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    kept = Warm("tests.runs.test_warm:make", "thing")
    kept.made.result(WAIT)
    yield kept
    kept.close()


def test_it_keeps_what_it_made_in_another_process(warm: Warm) -> None:
    (_, first), (_, second) = warm.ask("one", {}), warm.ask("two", {})
    assert first.result(WAIT)["asked"] == ["one"]
    assert second.result(WAIT)["asked"] == ["one", "two"]
    assert first.result()["process"] == second.result()["process"] != os.getpid()


def test_it_tells_how_far_it_is(warm: Warm) -> None:
    told: list[Any] = []
    warm.ask("steps", {"steps": 3}, told.append)[1].result(WAIT)
    assert told == [{"step": 0}, {"step": 1}, {"step": 2}]


def test_what_is_wrong_comes_through_and_it_lives_on(warm: Warm) -> None:
    with pytest.raises(ExegeteError, match="that failed"):
        warm.ask("fail", {})[1].result(WAIT)
    with pytest.raises(RuntimeError, match="a defect"):
        warm.ask("break", {})[1].result(WAIT)
    assert warm.ask("after", {})[1].result(WAIT)["asked"][-1] == "after"


def test_a_question_can_be_given_up_on_its_way_and_before(warm: Warm) -> None:
    long, found = warm.ask("long", {"steps": 10_000})
    later, never = warm.ask("never", {})
    warm.give_up(later)
    warm.give_up(long)
    for each in (found, never):
        with pytest.raises(GivenUp):
            each.result(WAIT)
    assert "never" not in warm.ask("last", {})[1].result(WAIT)["asked"]
    assert warm.waiting == 0


def test_a_worker_that_died_says_so_and_starts_again(warm: Warm) -> None:
    with pytest.raises(ExegeteError, match="died"):
        warm.ask("die", {})[1].result(WAIT)
    assert warm.ask("again", {})[1].result(WAIT)["asked"] == ["again"]
    assert "started anew" in DIED


def test_what_can_not_be_made_says_why() -> None:
    told: list[Any] = []
    warm = Warm("tests.runs.test_warm:make", "wrong", told=told.append)
    with pytest.raises(UsageError, match="no such thing"):
        warm.made.result(WAIT)
    assert told == [{"making": "wrong"}]
    warm.close()
