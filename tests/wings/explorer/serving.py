"""A real server over small models, for tests that ask it."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx

from exegete.answers.pages.build import write_run_report
from exegete.runs.engine.local import LocalEngine
from exegete.runs.run import run_study
from exegete.training.checkpoint import save_checkpoint
from exegete.wings.explorer.guard import Buckets, Door, Guard
from exegete.wings.explorer.start import Background
from exegete.wings.explorer.workers import Served
from tests.answers.explained_model import checkpoint, saved
from tests.studied import reviews, small_study

WAIT = 120.0
LAYERS = "transformer:size=7,hidden=6,heads=2,inner=10"  # sure of no text, so that what is done to it is seen


def small_models(at: Path) -> tuple[Path, Path]:
    """A BiLSTM and a transformer of two layers with two heads."""
    save_checkpoint(at / "layers", replace(checkpoint(LAYERS), key="k"))
    return saved(at / "pools"), at / "layers"


def small_run(at: Path) -> Path:
    """A run of two seeds of a model, with scores, adversaries and a report."""
    study = small_study(
        "explored",
        reviews(at / "reviews.csv"),
        ["bilstm:size=8,hidden=8"],
        {"name": "agreement", "ks": ["1"], "topk": [], "draws": 2},
        {"name": "adversary_search", "references": False, "steps": 5, "count": 2, "texts": 5},
    )
    with patch("exegete.experiments.common.charts.draw_charts"):  # figures take longer than all else
        found = run_study(study, at / "run", engine=LocalEngine(1))
    write_run_report(found)
    return found


@dataclass(frozen=True)
class Running:
    """A server, and a client that came with the token."""

    door: Door
    models: list[Served]
    guard: Guard
    client: httpx.Client

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.door.port}"

    @property
    def address(self) -> str:
        """Below which everything is, for who came with the token."""
        return f"{self.origin}{self.door.path}"

    @property
    def entrance(self) -> str:
        return f"{self.origin}/?token={self.door.token}"

    def post(self, question: str, **asked: Any) -> Any:
        """An answer that is there."""
        answer = self.client.post(f"/api/{question}", json={"model": 0} | asked)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def follow(self, question: str, **asked: Any) -> list[tuple[str, Any]]:
        """All events of a long piece of work."""
        with self.client.stream("POST", f"/api/follow/{question}", json={"model": 0} | asked) as answer:
            assert answer.status_code == 200, answer.read()
            return [event_of(part) for part in "".join(answer.iter_text()).strip().split("\n\n")]


def event_of(part: str) -> tuple[str, Any]:
    kind, data = part.split("\n")
    return kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))


@contextmanager
def running(sources: Sequence[str], ready: bool = True) -> Iterator[Running]:
    """Serve until the end of the block."""
    with closing(Background(sources, buckets=Buckets(rate=1e4, burst=1e4))) as server:
        door, models = server.door, server.models
        origin = f"http://127.0.0.1:{door.port}"
        with httpx.Client(base_url=f"{origin}{door.path}", timeout=WAIT) as client:
            assert client.get(f"{origin}/", params={"token": door.token}).status_code == 303
            for model in models if ready else ():
                until(lambda model=model: model.about.state != "loading")
            yield Running(door, models, server.guard, client)


def until(true: Any, seconds: float = WAIT) -> None:
    """Wait for something to be so."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)
