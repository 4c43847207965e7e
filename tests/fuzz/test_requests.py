"""Requests of all commands and calls: valid ones are answered, others refused in a sentence, and nothing is lost."""

from pathlib import Path

import pytest
from tools.fuzz_requests import ask, outcome
from tools.request_inputs import Request, drawn, place

from exegete.base.errors import ExegeteError, UsageError

TOTAL, SHARDS, SEED = 2_000, 20, 0
VALID = 0.6  # of all requests at least


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_request_is_answered_or_refused_in_a_sentence(shard: int) -> None:
    requests = list(drawn(TOTAL, SEED, place()))[shard::SHARDS]
    tally = ask(requests)
    assert not tally.findings, "\n".join(tally.findings)
    assert tally.outcomes.total() == len(requests) == TOTAL // SHARDS
    assert tally.valid >= VALID * len(requests)


@pytest.mark.slow
def test_the_same_seed_asks_the_same() -> None:
    first, again = ([request.said for request in drawn(50, SEED, place())] for _ in range(2))
    assert first == again
    assert first != [request.said for request in drawn(50, SEED + 1, place())]


def _raises(error: BaseException) -> Request:
    def ask() -> None:
        raise error

    return Request("it", False, ask)


@pytest.mark.parametrize(
    ("error", "became"),
    [
        (UsageError("it is not so: write it so"), "refused"),
        (ExegeteError("it failed: do it again"), "refused"),
        (ExegeteError(""), "FOUND no sentence"),
        (KeyError("x"), "FOUND KeyError"),
    ],
)
def test_what_counts_as_a_finding(error: BaseException, became: str) -> None:
    assert outcome(_raises(error)).startswith(became)


def test_a_valid_request_that_is_refused_is_a_finding(tmp_path: Path) -> None:
    assert outcome(Request("it", True, None, ("report", str(tmp_path)))).startswith("FOUND a valid request that was")
    assert outcome(Request("it", False, None, ("report", str(tmp_path)))) == "refused"
    assert outcome(Request("it", True, None, ("ls", "tasks"))) == "answered"
