"""Judging: from rows of agreement to verdicts and an answer.

"Better than chance" says little with many texts, so what decides is non-inferiority: does attention agree with the
other importances nearly as well as they agree with each other? Sparse attention ties many words, and ties cap τ-b; so
the same is asked of τ-b as a share of what its ties allow, and where the two disagree the answer is that ties decide.
"""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.experiments.agreement import Agreement
from exegete.measures.statistics import Interval, bootstrap_mean, crossed_mean, within
from exegete.studies.audit import Audit, Criteria, Criterion, Test, Verdict
from exegete.studies.study import Study

VERDICTS: tuple[Verdict, ...] = ("holds", "fails", "cannot tell")
SEEDS_FOR_A_RECIPE = 5  # fewer don't settle a claim about a way of training (PROTOCOLS 16)
TEXTS_FOR_A_VERDICT = 20  # fewer, and percentile intervals are too narrow
ERROR = 0.05  # of all intervals of a scorecard together
NOT_TESTED = "Agreement is not faithfulness: whether the prediction depends on these weights was not tested."


class _Asked(NamedTuple):
    """A test before it is judged."""

    name: str
    task: str
    model: str
    criterion: Criterion
    values: Tensor  # [seed, example]
    threshold: float
    chance: float


def judge(
    rows: pl.DataFrame, study: Study, criteria: Criteria, run: Path | None = None, summary: pl.DataFrame | None = None
) -> Audit:
    """Every test on every task and model of a study's agreement rows."""
    agreement = study.built_experiments().get("agreement")
    if not isinstance(agreement, Agreement):
        raise UsageError(f"study '{study.name}' has no experiment 'agreement', which the audit judges: add it")
    asked: list[_Asked] = []
    for (task, model), group in rows.group_by("task", "model", maintain_order=True):
        asked += _tests(str(task), str(model), group, agreement, criteria)
    tests = [_judged(test, level=1 - ERROR / len(asked)) for test in asked]
    frame = agreement.summary(rows) if summary is None else summary
    return Audit(answer(tests, agreement), tuple(tests), criteria.version, run, frame)


def _tests(task: str, model: str, group: pl.DataFrame, agreement: Agreement, criteria: Criteria) -> list[_Asked]:
    """Non-inferiority, raw and corrected for ties, where there are others to agree with each other; and chance."""
    found = []
    for name, criterion, measure in (
        ("agrees", criteria.agrees, "tau"),
        ("agrees_beyond_ties", criteria.agrees_beyond_ties, "tau_corrected"),
    ):
        ours, theirs = _with_and_among_others(group, agreement, measure)
        if theirs is not None:  # a ranking that knows nothing has a mean τ of 0 with all others
            chance = -float(theirs.nanmean())
            found.append(_Asked(name, task, model, criterion, ours - theirs, -criterion.margin, chance))
    ours, _ = _with_and_among_others(group, agreement, "tau")
    beats = criteria.beats_chance
    return [*found, _Asked("beats_chance", task, model, beats, ours, beats.margin, 0.0)]


def _with_and_among_others(group: pl.DataFrame, agreement: Agreement, measure: str) -> tuple[Tensor, Tensor | None]:
    """Mean coefficient of attention with the others, and of these with each other: [seed, example] each."""
    attention, *others = agreement.against
    tau = {pair: _by_seed(group, measure, *pair) for pair in combinations(agreement.against, 2)}
    ours = torch.stack([tau[attention, other] for other in others]).mean(0)
    theirs = [tau[pair] for pair in combinations(others, 2)]
    return ours, torch.stack(theirs).mean(0) if theirs else None


def _by_seed(group: pl.DataFrame, measure: str, first: str, second: str) -> Tensor:
    """A coefficient of one pair: [seed, example]."""
    chosen = (pl.col("measure") == measure) & (pl.col("first") == first) & (pl.col("second") == second)
    parts = group.filter(chosen).sort("seed", "example").partition_by("seed", maintain_order=True)
    return torch.stack([torch.from_numpy(part["value"].fill_null(math.nan).to_numpy().copy()) for part in parts])


def _judged(asked: _Asked, level: float) -> Test:
    seeds = len(asked.values)
    interval = bootstrap_mean(asked.values[0], level) if seeds == 1 else crossed_mean(asked.values, level)
    interval = within(interval, 1.0 if asked.name == "beats_chance" else 2.0)  # a difference of two τ lies in [−2, 2]
    return Test(
        name=asked.name,
        task=asked.task,
        model=asked.model,
        question=asked.criterion.question,
        statistic=_finite(interval.mean),
        n=interval.n,
        interval=(_finite(interval.low), _finite(interval.high)),
        level=level,
        chance=_finite(asked.chance),
        criterion=str(asked.criterion),
        verdict=verdict(interval, asked.threshold, seeds),
        about="this checkpoint" if seeds == 1 else f"this training recipe ({seeds} seeds)",
        paper=asked.criterion.paper,
    )


def _finite(value: float) -> float | None:
    return None if math.isnan(value) else value


def verdict(interval: Interval, threshold: float, seeds: int = 1) -> Verdict:
    """Holds if the interval lies above the threshold, fails if below; else, or with few texts or seeds, cannot tell."""
    few = interval.n < TEXTS_FOR_A_VERDICT * seeds or 1 < seeds < SEEDS_FOR_A_RECIPE
    if few or math.isnan(interval.low):
        return "cannot tell"
    if interval.low > threshold:
        return "holds"
    return "fails" if interval.high < threshold else "cannot tell"


def decision(tests: dict[str, Test]) -> tuple[Verdict, bool]:
    """What the tests of one model decide, and whether it hangs on ties alone."""
    raw = tests.get("agrees", tests["beats_chance"])
    corrected = tests.get("agrees_beyond_ties", raw)
    ties = {raw.verdict, corrected.verdict} == {"holds", "fails"}
    if raw.verdict == corrected.verdict:
        return raw.verdict, False
    return "cannot tell", ties


def answer(tests: Sequence[Test], agreement: Agreement) -> str:
    """The answer in plain words: the short one first, then, in paragraphs of their own, what it is about."""
    by_model: dict[tuple[str, str], dict[str, Test]] = {}
    for test in tests:
        by_model.setdefault((test.task, test.model), {})[test.name] = test
    said = [_sentence(named, agreement) for named in by_model.values()]
    about = [f"{named['beats_chance'].about}, {model} on {task}" for (task, model), named in by_model.items()]
    if len(said) == 1:
        return "\n\n".join([said[0], f"This is about {about[0]}. {NOT_TESTED}"])
    counts = Counter(decision(named)[0] for named in by_model.values())
    numbers = ", ".join(f"{word} for {counts[word]}" for word in VERDICTS)
    short = f"Does attention rank words as the other importances do? Of {len(said)} models it {numbers}."
    each = [f"{where[0].upper()}{where[1:]}: {sentence}" for where, sentence in zip(about, said, strict=True)]
    return "\n\n".join([short, *each, NOT_TESTED])


def _sentence(tests: dict[str, Test], agreement: Agreement) -> str:
    attention, *others = agreement.against
    listed = " and ".join(name.replace("_", "-") for name in others)
    decided, ties = decision(tests)
    said = {
        "holds": f"Yes, as far as agreement goes: {attention} ranks words about as {listed} do.",
        "fails": f"Not in place of {listed}: {attention} ranks words clearly differently. Read {listed} instead.",
        "cannot tell": f"These texts or seeds don't settle whether {attention} ranks words as {listed} do.",
    }[decided]
    if decided == "cannot tell" and "recipe" in tests["beats_chance"].about:
        said += f" A claim about a training recipe needs {SEEDS_FOR_A_RECIPE} seeds or more."
    if ties:
        said = (
            f"Undecided, for it hangs on ties: corrected for the words that {attention} ties, the verdict turns around."
        )
    chance = {
        "holds": "It does agree with them more than noise would.",
        "fails": "It does not even agree with them more than noise would.",
        "cannot tell": "Whether it agrees with them more than noise would is not settled.",
    }[tests["beats_chance"].verdict]
    return f"{said} {chance}"
