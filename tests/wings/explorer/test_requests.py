"""Requests drawn from the OpenAPI description, right and wrong, are answered as described; and a defect is found."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.requests_drawn import all_asked, reachable

from exegete.wings.explorer.workers import Served
from tests.wings.explorer.serving import Running, running

CASES = 120


@pytest.fixture(scope="module")
def served(run: Path, folders: tuple[Path, Path]) -> Iterator[Running]:
    with running([str(run), *map(str, folders)]) as found:
        yield found


@pytest.mark.slow
def test_every_request_is_answered_as_described(served: Running) -> None:
    found = all_asked(served, CASES, 0)
    assert [finding for tally in found.values() for finding in tally.findings] == []
    assert sum(tally.statuses.total() for tally in found.values()) >= CASES
    assert sum(tally.statuses[200] for tally in found.values()) > CASES // 10  # and some of them get what they ask for


@pytest.mark.slow
def test_a_defect_is_found(served: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Served, "ask", lambda *_, **__: 1 // 0)
    found = all_asked(served, CASES, 0)
    assert any("500" in finding for finding in found["POST /api/open"].findings)


def test_requests_reach_what_is_there_and_ask_for_little() -> None:
    asked = {"model": 7, "steps": 2_000, "count": 9, "epsilon": 0.5}
    assert reachable(asked, True, 3) == {"model": 1, "steps": 20, "count": 5, "epsilon": 0.5}
    assert reachable(asked, False, 3)["model"] == 7
    assert reachable({"model": "x", "count": 100}, True, 3) == {"model": "x", "count": 100}
    assert reachable([1], True, 3) == [1]
