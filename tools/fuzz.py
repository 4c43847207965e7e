"""Fuzz: inputs that nobody would write, by the thousand. No traceback, no hang, no half-written file.

    python -m tools.fuzz --inputs 10000 --seconds 3000 --log results/fuzz/log.txt

Whatever is read from a person (files of texts, studies, checkpoints, adapters, texts, names) is drawn by hypothesis:
right, nearly right, or noise. It must be taken, or refused in one sentence (an `ExegeteError`), within a time; where it
is refused, no file may be left that was not there before. Anything else is a finding.
"""

import argparse
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import polars as pl
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from exegete.base.errors import ExegeteError
from tools import fuzz_inputs as inputs

LIMIT = 30  # seconds that one input may take


class Hang(Exception):  # noqa: N818 (what it is, not an error of ours)
    """An input took longer than it may."""


class Kind(NamedTuple):
    """One kind of input: how it is drawn, what is done with it, and its share of all inputs."""

    drawn: st.SearchStrategy[Any]
    tried: Callable[[Any, Path], object]
    share: float


KINDS: dict[str, Kind] = {
    "csv and tsv": Kind(inputs.separated, inputs.read_file, 0.2),
    "jsonl": Kind(inputs.jsonl, inputs.read_file, 0.15),
    "parquet": Kind(inputs.parquet, inputs.read_file, 0.1),
    "toml": Kind(inputs.toml, inputs.read_study, 0.15),
    "checkpoint": Kind(inputs.checkpoint, inputs.read_checkpoint, 0.1),
    "own model": Kind(inputs.own_model, inputs.read_own_model, 0.05),
    "text": Kind(inputs.text, inputs.explain_text, 0.1),
    "name": Kind(inputs.name, inputs.read_name, 0.15),
}


@dataclass
class Tally:
    """What became of the inputs of one kind."""

    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    slowest: float = 0.0

    @property
    def total(self) -> int:
        """How many there were."""
        return self.outcomes.total()


@contextmanager
def bounded(seconds: int) -> Iterator[None]:
    """Stop what takes longer."""

    def stop(_: int, __: FrameType | None) -> None:
        raise Hang(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome(kind: Kind, drawn: Any) -> str:
    """Taken, refused, or what is wrong, which begins with "FOUND"."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        try:
            with bounded(LIMIT):
                kind.tried(drawn, folder)
        except ExegeteError as error:
            return _refused(error, folder)
        except (Exception, SystemExit, pl.exceptions.PanicException) as error:  # noqa: BLE001 (what is looked for)
            where = traceback.extract_tb(error.__traceback__)[-1]
            return f"FOUND {type(error).__name__}: {str(error)[:200]!r} at {Path(where.filename).name}:{where.lineno}"
    return "taken"


def _refused(error: ExegeteError, folder: Path) -> str:
    said = str(error)
    left = sorted(path.name for path in folder.rglob("*") if path.is_file() and inputs.INPUT not in path.parts)
    if left:
        return f"FOUND a file that was left behind: {left}"
    if not said or "\n" in said or "Traceback" in said:
        return f"FOUND a refusal that is not one sentence: {said[:200]!r}"
    return "refused"


def run(kind: Kind, count: int, until: float, start: int) -> Tally:
    """So many inputs of one kind, or as many as there is time for."""
    tally = Tally()

    @seed(start)
    @settings(max_examples=count, deadline=None, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(kind.drawn)
    def ask(drawn: Any) -> None:
        if time.monotonic() > until:
            return
        began = time.monotonic()
        found = outcome(kind, drawn)
        tally.slowest = max(tally.slowest, time.monotonic() - began)
        tally.outcomes[found.partition(" ")[0]] += 1
        if found.startswith("FOUND"):
            tally.findings.append(f"{found}\n    input: {repr(drawn)[:600]}")

    ask()
    return tally


def told(name: str, tally: Tally) -> str:
    """One kind's line, and its findings, each once."""
    counts = ", ".join(f"{word.lower()} {n:,}" for word, n in sorted(tally.outcomes.items()))
    line = f"{name}: {tally.total:,} inputs, {counts}; slowest {tally.slowest:.1f} s"
    first = {finding.partition("\n")[0]: finding for finding in tally.findings}
    return "\n".join([line, *(f"  {finding}" for finding in first.values())])


def main() -> None:
    """All kinds, one after the other, each with its share of inputs and of time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path)
    asked = parser.parse_args()
    began = time.monotonic()
    lines, total, found = [], 0, 0
    for name, kind in KINDS.items():
        left = asked.seconds - (time.monotonic() - began)
        tally = run(kind, round(asked.inputs * kind.share), time.monotonic() + left, asked.seed)
        total, found = total + tally.total, found + len(tally.findings)
        lines.append(told(name, tally))
        print(lines[-1], flush=True)
    took = time.monotonic() - began
    lines.append(f"{total:,} inputs (seed {asked.seed}) in {took:.0f} s, {found:,} findings")
    print(lines[-1])
    if asked.log:
        asked.log.parent.mkdir(parents=True, exist_ok=True)
        asked.log.write_text("\n".join(lines) + "\n", encoding="utf8")
    sys.exit(1 if found or total < asked.inputs else 0)


if __name__ == "__main__":
    main()
