"""Fuzz of requests: all commands and all calls of the front door, with a fixed seed, most as a person means them.

    python -m tools.fuzz_requests --requests 2000 --seed 0 --log results/fuzz/requests.txt

A request that is valid must be answered. One that is not must be refused in one sentence, with the code of wrong usage
or of failure. No traceback, whatever it is; and where something was trained or scored, and the command ends in an error
all the same, its answer must be printed or kept: nothing computed is lost.
"""

import argparse
import contextlib
import io
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl

from exegete.base.errors import ExegeteError
from exegete.cli import main as front_door
from exegete.runs import word_scores
from exegete.runs.shards import score_frames
from exegete.training.fit import Fit
from tools.fuzz import Hang, bounded
from tools.request_inputs import Request, drawn, place

LIMIT = 60  # seconds that one request may take
CODES = (1, 2, 3)  # failure, wrong usage, and a test that fails


@contextlib.contextmanager
def computing(done: list[str]) -> Iterator[None]:
    """Note every training and every scoring inside."""
    fit, score = Fit.run, score_frames

    def run(self: Fit, *rest: Any, **named: Any) -> Any:
        answer = fit(self, *rest, **named)
        done.append("trained")
        return answer

    def frames(*rest: Any, **named: Any) -> Any:
        answer = score(*rest, **named)
        done.append("scored")
        return answer

    with patch.object(Fit, "run", run), patch.object(word_scores, "score_frames", frames):
        yield


def outcome(request: Request) -> str:
    """Answered, refused, or what is wrong, which begins with "FOUND"."""
    done: list[str] = []
    try:
        with bounded(LIMIT), computing(done):
            code, said, refusal = run_command(request.line) if request.ask is None else run_call(request.ask)
    except (Exception, pl.exceptions.PanicException) as error:  # noqa: BLE001 (what is looked for)
        where = traceback.extract_tb(error.__traceback__)[-1]
        kind = "a hang" if isinstance(error, Hang) else type(error).__name__
        return f"FOUND {kind}: {str(error)[:200]!r} at {Path(where.filename).name}:{where.lineno}"
    return _judged(request, code, said, refusal, done)


def _judged(request: Request, code: int, said: str, error: str, done: list[str]) -> str:
    if code == 0:
        return "answered" if request.valid else "answered all the same"
    if "Traceback" in error or code not in CODES:
        return f"FOUND code {code}: {error[:300]!r}"
    if request.valid and code != CODES[-1]:
        return f"FOUND a valid request that was refused: {error[:300]!r}"
    if done and not said and not _is_kept(request):
        return f"FOUND something {done[0]} and lost: {error[:300]!r}"
    sentences = [line for line in error.splitlines() if line.startswith("error:")]
    return (
        "refused"
        if len(sentences) == 1 and len(sentences[0]) > len("error: ")
        else f"FOUND no sentence: {error[:300]!r}"
    )


def _is_kept(request: Request) -> bool:
    """Whether what was computed lies in a folder of its own, where the same command finds it."""
    named = [Path(word) for word in request.line if os.sep in word]
    return any(path.is_dir() and any(path.iterdir()) for path in named)


def run_command(line: Sequence[str]) -> tuple[int, str, str]:
    """A command's code and what it said, on both channels."""
    out, error = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", ["exegete", *line]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(error),
    ):
        try:
            front_door()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    return code, out.getvalue(), error.getvalue()


def run_call(ask: Callable[[], object]) -> tuple[int, str, str]:
    """A call's code, as a command would have it."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            ask()
    except ExegeteError as error:
        return error.exit_code, "", f"error: {error}"
    return 0, "", ""


@dataclass
class Tally:
    """What became of some requests."""

    outcomes: Counter[str]
    findings: list[str]
    valid: int

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.outcomes + other.outcomes, self.findings + other.findings, self.valid + other.valid)


def ask(requests: Sequence[Request]) -> Tally:
    """Ask all of these, in a folder of their own."""
    tally = Tally(Counter(), [], sum(request.valid for request in requests))
    with contextlib.chdir(place().home):
        for request in requests:
            became = outcome(request)
            tally.outcomes[became.partition(" ")[0]] += 1
            if became.startswith("FOUND"):
                tally.findings.append(f"{became}\n    {request.said[:600]}")
    return tally


def main() -> None:
    """All requests, one after the other."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--requests", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path)
    given = parser.parse_args()
    began = time.monotonic()
    tally = ask(list(drawn(given.requests, given.seed, place())))
    counts = ", ".join(f"{word.lower()} {n:,}" for word, n in sorted(tally.outcomes.items()))
    first = {finding.partition("\n")[0]: finding for finding in tally.findings}
    asked = f"{given.requests:,} requests (seed {given.seed}), {tally.valid:,} valid"
    lines = [*first.values(), f"{asked}: {counts}; {time.monotonic() - began:.0f} s"]
    print("\n".join(lines))
    if given.log:
        given.log.parent.mkdir(parents=True, exist_ok=True)
        given.log.write_text("\n".join(lines) + "\n", encoding="utf8")
    sys.exit(1 if tally.findings else 0)


if __name__ == "__main__":
    main()
