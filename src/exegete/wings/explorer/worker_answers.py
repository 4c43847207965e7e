"""Answers: what a worker is asked over the wire, and what it says. This is where the server's torch is."""

import re
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

from exegete.plugins import (
    Answerer,
    Check,
    ExegeteError,
    Explanation,
    Reply,
    Search,
    Tell,
    UsageError,
    Word,
    block,
    call_at_pauses,
    importance_labels,
    spell_output,
)
from exegete.plugins import (
    TextInput as Asked,
)
from exegete.wings.explorer.attack import Attack
from exegete.wings.explorer.attack import RewrittenPrediction as Effect
from exegete.wings.explorer.lab import Lab, open_lab
from exegete.wings.explorer.messages import (
    MEMORY,
    SECONDS,
    Differ,
    Explain,
    FindAdversary,
    KnockOut,
    Open,
    PermuteWeights,
    RewriteRows,
    RowWeights,
    Text,
    Weigh,
)
from exegete.wings.explorer.replies import (
    Differed,
    ExplainedText,
    OfferedMethod,
    OpenedSite,
    Outcomes,
    ServedModel,
    Weighed,
    WrittenWords,
)

PROBE = "the film is a long story about two old friends"  # ten words that most models know some of
STATUS = Path("/proc/self/statm")
PATH = re.compile(r"(?<![\w.])(?:/[\w.@+~ -]+)+/([\w.@+~-]+)")


def prepare_model(tell: Tell, source: str | None) -> Answerer:
    """In a worker: the model of a word of the command line, ready to answer."""
    torch.set_num_threads(1)

    def progress(label: str, done: int, total: int) -> None:
        tell({"said": label, "done": done, "total": total})

    try:
        kept = open_lab(source, progress)
    except ExegeteError as error:
        raise type(error)(without_paths(str(error))) from None
    kept_here: dict[str, Callable[[dict[str, Any], Tell], Reply]] = {
        "about": lambda _, __: _about(kept, source).model_dump(),
        "cost": lambda given, _: {"milliseconds": _cost(kept, given["method"])},
        "explain": lambda given, tell: _explain(kept, Explain(**given), tell).model_dump(),
        "differ": lambda given, tell: _differ(kept, Differ(**given), tell).model_dump(),
        "write": lambda given, _: _write(kept, Text(**given)).model_dump(),
        "open": lambda given, _: _open(kept, Open(**given)).model_dump(),
        "weigh": lambda given, _: _weigh(kept, Weigh(**given)).model_dump(),
        "rewrite": lambda given, _: _rewrite(kept, RewriteRows(**given)).model_dump(),
        "cut": lambda given, _: _cut(kept, KnockOut(**given)).model_dump(),
        "permute": lambda given, _: _permute(kept, PermuteWeights(**given)).model_dump(),
        "adversary": lambda given, tell: _adversary(kept, FindAdversary(**given), tell),
    }

    def answer(name: str, arguments: dict[str, Any], tell: Tell) -> Reply:
        try:
            with call_at_pauses(within_limits()):
                return kept_here[name](arguments, tell)
        except ExegeteError as error:
            raise type(error)(without_paths(str(error))) from None

    return answer


def within_limits() -> Check:
    """What ends a question that takes too long, or too much memory, each with its own sentence."""
    started, before = time.monotonic(), _resident()

    def check() -> None:
        if time.monotonic() - started > SECONDS:
            raise UsageError(
                f"this takes longer than {SECONDS} seconds: shorten the text, ask for less, or ask `exegete explain`"
            )
        if _resident() - before > MEMORY:
            raise UsageError(f"this takes more than {MEMORY >> 30} GB of memory: shorten the text, or ask for less")

    return check


def _resident() -> int:
    """Bytes of memory that this process has; where the system doesn't say, the most that it has had."""
    if STATUS.is_file():
        return int(STATUS.read_text().split()[1]) * resource.getpagesize()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most << 10


def without_paths(sentence: str) -> str:
    """Folders of this machine are nobody's business: of a path its last part is left.

    >>> without_paths("the checkpoint at /home/ann/models/mine is damaged")
    'the checkpoint at mine is damaged'
    """
    return PATH.sub(r"\1", sentence)


def _about(kept: Lab, source: str | None) -> ServedModel:
    model, methods = kept.checkpoint.model, kept.methods
    labels = importance_labels(methods)
    listed = [OfferedMethod(name=name, label=labels[name], cheap=cheap) for name, cheap in methods.items()]
    return ServedModel(
        model=0, name=kept.name, state="ready", labels=list(model.labels), sites=list(model.sites), layers=kept.layers,
        pair=kept.pair, writes=kept.writes, methods=listed, source=source,
        answer=without_paths(kept.trust.answer),
    )  # fmt: skip


def _cost(kept: Lab, method: str) -> float:
    """Milliseconds that a method takes for ten words; the first run is slow, so the second counts."""
    text = (PROBE, PROBE) if kept.pair else PROBE
    _, found = (kept.explain(text, [method]) for _ in range(2))
    return found[method].milliseconds


def _text(asked: Text) -> Asked:
    return asked.text if asked.question is None else (asked.text, asked.question)


def _explanation(kept: Lab, asked: Explain, tell: Tell) -> Explanation:
    target = Word(asked.step, asked.target, asked.contrast)

    def progress(label: str, done: int, total: int) -> None:
        tell({"said": label, "done": done, "total": total})

    return kept.explain(_text(asked), asked.methods, target, asked.of, progress)


def _explain(kept: Lab, asked: Explain, tell: Tell) -> ExplainedText:
    found = _explanation(kept, asked, tell)
    return ExplainedText(explanation=found.to_json(asked.by), html=str(block(found.heatmap(asked.by), styled=False)))


def _differ(kept: Lab, asked: Differ, tell: Tell) -> Differed:
    first = _explanation(kept, asked, tell)
    second = _explanation(kept, asked.model_copy(update={"text": asked.second, "target": first.target}), tell)
    found = first.difference(second, asked.by)
    return Differed(difference=found.to_json(), html=str(found.html(styled=False)))


def _write(kept: Lab, asked: Text) -> WrittenWords:
    pieces = kept.written(_text(asked))
    return WrittenWords(pieces=list(pieces), text=spell_output(pieces))


def _attack(kept: Lab, asked: Text, site: str | None = None) -> Attack:
    return kept.attack(_text(asked), site, asked.step)


def _open(kept: Lab, asked: Open) -> OpenedSite:
    found = _attack(kept, asked, asked.site)
    readout = kept.checkpoint.model.readout
    return OpenedSite(
        site=found.site,
        keys=found.keys,
        queries=found.looks,
        heads=len(found.own) // found.queries,
        rows=found.own.tolist(),
        movable=found.movable,
        pools=found.pools,
        gated=readout is not None and readout.gated,
        probabilities=found.likeliest,
        prediction=found.winner(found.probabilities),
        openings=kept.openings,
    )


def _weigh(kept: Lab, asked: Weigh) -> Weighed:
    found = _attack(kept, asked, asked.site)
    return _weighed(kept, found, found.rows({row.row: row.weights for row in asked.rows}))


def _rewrite(kept: Lab, asked: RewriteRows) -> Weighed:
    """Some rows rewritten, and what is predicted then."""
    found = _attack(kept, asked, asked.site)
    weights = found.rows({row.row: row.weights for row in asked.rows})
    over = [row for row in (asked.over if asked.over is not None else range(len(weights))) if row < len(weights)]
    weights[over] = found.rewritten(weights[over], asked.how, asked.count, asked.key, asked.draw)
    rows = [RowWeights(row=row, weights=weights[row].clamp(0, 1).tolist()) for row in over]
    return _weighed(kept, found, weights).model_copy(update={"rows": rows})


def _cut(kept: Lab, asked: KnockOut) -> Weighed:
    found = _attack(kept, asked)
    last = kept.layers - 1 if asked.last is None else asked.last
    return _found(kept, found, found.cut(asked.word, asked.by, (asked.first, last)))


def _weighed(kept: Lab, found: Attack, weights: torch.Tensor) -> Weighed:
    return _found(kept, found, found.weighed(weights))


def _found(kept: Lab, of: Attack, said: Effect) -> Weighed:
    return Weighed(
        probabilities=of.classes(said.probabilities),
        prediction=of.winner(said.probabilities),
        flipped=bool(said.probabilities.argmax() != of.probabilities.argmax()),
        tvd=said.tvd,
        jsd=said.jsd,
        frozen=None if said.frozen is None else of.classes(said.frozen),
        openings=kept.openings,
    )


def _permute(kept: Lab, asked: PermuteWeights) -> Outcomes:
    tvd, jsd, flipped = _attack(kept, asked, asked.site).outcomes(asked.first, asked.count)
    return Outcomes(tvd=tvd, jsd=jsd, flipped=flipped, median=median(tvd))


def _adversary(kept: Lab, asked: FindAdversary, tell: Tell) -> Reply:
    """The last look is the answer; all before are told."""
    found = _attack(kept, asked, asked.site)
    looked: Reply = {}
    for looked in found.searched(Search(asked.count, asked.steps, seed=asked.seed), asked.epsilon):
        tell(looked)
    return looked
