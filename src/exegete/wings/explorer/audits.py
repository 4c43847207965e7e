"""Audits: in a worker of its own, the audit that `exegete audit` runs for a model, told step by step.

The run is where the command line would put it, so that either finds what the other has done. One process does all of
it: a worker has no workers.
"""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch

from exegete.plugins import (
    Answerer,
    AuditRequest,
    Estimating,
    ExegeteError,
    Reply,
    Tell,
    UsageError,
    load_object,
    run_audit,
    write_run_report,
)
from exegete.wings.explorer.worker_answers import without_paths


class Relay:
    """A listener that passes on what it hears."""

    def __init__(self, tell: Tell) -> None:
        self.tell = tell

    def __call__(self, label: str, done: int, total: int) -> None:
        """How far a piece of work is; its label may name folders."""
        self.tell({"said": without_paths(label), "done": done, "total": total})

    def say(self, sentence: str) -> None:
        """About how long it takes."""
        self.tell({"estimate": sentence})


def request_for(source: str | None, quick: bool) -> AuditRequest:
    """The audit of a model on the task that it was trained on; without a model, the default one."""
    request = AuditRequest(quick=quick, engine="local", workers=1)
    if source is None:
        return request
    task = load_object(source).task
    if not task:
        raise UsageError("this model doesn't say what it was trained on: run `exegete audit --task TASK --model MODEL`")
    return replace(request, model=source, task=task)


def report_of(source: str | None, quick: bool, tell: Tell) -> Reply:
    """Run the audit, or go on with it, and write its report; where it is."""
    relay = Relay(tell)
    with run_audit(
        request_for(source, quick),
        lambda study, run, engine: nullcontext(Estimating(study, run, relay, engine, stop="Stop")),
    ) as (found, run, _):
        write_run_report(run, audit=found)
    return {"folder": str(run)}


def prepare_audit(tell: Tell, source: str | None) -> Answerer:
    """In a worker: ready to audit one model."""
    del tell
    torch.set_num_threads(1)

    def answer(name: str, arguments: dict[str, Any], tell: Tell) -> Reply:
        assert name == "audit"
        try:
            return report_of(source, arguments["quick"], tell)
        except ExegeteError as error:
            raise type(error)(without_paths(str(error))) from None

    return answer
