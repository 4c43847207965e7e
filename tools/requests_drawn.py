"""Requests that nobody would write: whatever the explorer's OpenAPI allows or forbids gets an answer, and never a 5xx.

    python -m tools.requests_drawn --cases 2000 --log results/explorer/requests.txt

schemathesis draws requests from the description that the server gives of itself: half of them follow it, half break it.
A real server over two small models and a run answers, with its guard. An answer must have a status, a type and a body
that the description has for it. Of every second request that names a model, it is one that is there; and no search is
longer than a few steps, or all time would go to a few.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from requests import Session
from schemathesis import checks
from schemathesis.core.failures import FailureGroup
from tests.wings.explorer.serving import Running, running, small_models, small_run

MODES = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
STEPS, DRAWS = 20, 5  # of a search, and of permutations, at most
PATIENCE = 120  # seconds: the first question about a run starts a worker


@dataclass
class Tally:
    """What became of the requests of one operation."""

    statuses: Counter[int] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)


def reachable(body: Any, there: bool, models: int) -> Any:
    """A body that asks for something that is there, and for little of it."""
    if not isinstance(body, dict):
        return body
    bounded = {"steps": STEPS, "count": DRAWS} if "epsilon" in body or "steps" in body else {}
    small = {name: min(body[name], most) for name, most in bounded.items() if isinstance(body.get(name), int)}
    named = {name: body[name] % models for name in ("model", "run") if there and isinstance(body.get(name), int)}
    return body | small | named


def asked(server: Running, operation: Any, count: int, start: int) -> Tally:
    """So many requests of one operation, half of them as described."""
    tally, session = Tally(), Session()
    session.get(server.entrance)
    for mode in MODES if operation.body else MODES[:1]:

        @seed(start)
        @settings(max_examples=count // 2, deadline=None, database=None, phases=[Phase.generate],
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(operation.as_strategy(generation_mode=mode), st.booleans())
        def ask(case: Any, there: bool) -> None:
            case.body = reachable(case.body, there, len(server.models))
            answer = case.call(base_url=server.address, session=session, timeout=PATIENCE)
            tally.statuses[answer.status_code] += 1
            try:
                case.validate_response(answer, checks=CHECKS)
            except FailureGroup as found:
                said = "; ".join(f"{type(each).__name__}: {each}" for each in found.exceptions)
                tally.findings.append(f"{answer.status_code} {said[:300]!r}\n    body: {case.body!r:.300}")

        ask()
    return tally


def told(name: str, tally: Tally) -> str:
    """One operation's line, and its findings, each kind once."""
    counts = ", ".join(f"{n:,} × {status}" for status, n in sorted(tally.statuses.items()))
    first = {finding.partition("\n")[0]: finding for finding in tally.findings}
    return "\n".join([f"{name}: {counts}", *(f"  FOUND {finding}" for finding in first.values())])


def all_asked(server: Running, cases: int, start: int) -> dict[str, Tally]:
    """Requests of all operations, as many of each; those that have no body are asked a few times."""
    schema = schemathesis.openapi.from_dict(server.client.get("/openapi.json").json())
    found: list[Any] = list(schema.get_all_operations())
    operations = [each.ok() for each in found]
    each = -(-cases // sum(bool(operation.body) for operation in operations))
    return {operation.label: asked(server, operation, each + each % 2, start) for operation in operations}


def main() -> None:
    """Start a server, ask it all, and say what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path)
    given_ = parser.parse_args()
    began = time.monotonic()
    with ExitStack() as stack:
        at = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(running([str(small_run(at)), *map(str, small_models(at))]))
        found = all_asked(server, given_.cases, given_.seed)
    total = sum(tally.statuses.total() for tally in found.values())
    wrong = sum(len(tally.findings) for tally in found.values())
    worst = sum(n for tally in found.values() for status, n in tally.statuses.items() if status >= 500)
    said = f"{total:,} requests (seed {given_.seed}, schemathesis {version('schemathesis')}) in "
    lines = [told(*each) for each in found.items()]
    lines += [f"{said}{time.monotonic() - began:.0f} s: {worst:,} × 5xx, {wrong:,} findings"]
    print("\n".join(lines))
    if given_.log:
        given_.log.parent.mkdir(parents=True, exist_ok=True)
        given_.log.write_text("\n".join(lines) + "\n", encoding="utf8")
    sys.exit(1 if wrong or total < given_.cases else 0)


if __name__ == "__main__":
    main()
