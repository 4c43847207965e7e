"""Reasons: does a setting turn a row that deviates? The same quantity where it is another, judged by the same rule.

With p the printed number, o ours and [l, h] our interval where the setting is another:

- *explains it*: o lies outside [l, h], and p is reproduced there, or a claim in words borne out;
- *a part of it*: o lies outside [l, h], and the number there is nearer to p than o is, or no longer contradicts a claim
  in words;
- *not it*: neither.

A setting that the paper doesn't have either (a *control*) is no reason, however near it comes; it shows what is in the
way and what isn't. A row is *open* if no reason explains any of it.

A reason is tested where its study is among the results that are compared; elsewhere the row says which study to run.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from exegete.plugins import ExegeteError, Spec, parse, significant
from exegete.wings.papers.lookup import Counterpart, KeptTables, PrintedPlace
from exegete.wings.papers.paper import Paper, Reason
from exegete.wings.papers.published import KEYS
from exegete.wings.papers.rule import Ours, Yardstick, judge_number, judge_words

EXPLAINS, PART, NOT_IT = "explains it", "a part of it", "not it"
OPEN = "open"  # what is said where nothing that was tested explains any of it
ELSEWHERE = ", on other data"
CONTROL = {EXPLAINS: "gets there, but is not the paper's", PART: "nearer, but not the paper's", NOT_IT: NOT_IT}


def reasons_for(paper: Paper, row: Mapping[str, Any]) -> list[Reason]:
    """The reasons that a paper's file gives for a printed number."""
    return [reason for reason in paper.explained if _is_about(reason, row)]


def _is_about(reason: Reason, row: Mapping[str, Any]) -> bool:
    return all(fnmatchcase(row[key], reason.rows[key]) for key in KEYS if key in reason.rows)


def explain_deviation(
    reasons: list[Reason],
    row: Mapping[str, Any],
    ours: float,
    place: PrintedPlace,
    folder: Path,
    by: Callable[[Counterpart, PrintedPlace], Yardstick],
) -> str:
    """All reasons for a printed number with what each is worth; *open* if none explains any of it."""
    said = [_tested(reason, row, ours, place, folder, by) for reason in reasons]
    explained = any(text.removesuffix(ELSEWHERE).endswith((EXPLAINS, PART)) for text in said)
    return "; ".join(said if explained or not said else [*said, OPEN])


def _tested(
    reason: Reason,
    row: Mapping[str, Any],
    ours: float,
    place: PrintedPlace,
    folder: Path,
    by: Callable[[Counterpart, PrintedPlace], Yardstick],
) -> str:
    """One reason, the number that tests it, and what it is worth."""
    moved = _moved(reason, place)
    there = find_counterpart(reason, moved, folder)
    if there is None:
        return f"{reason.because}: to be tested by {reason.study}"
    if there.doubt:
        return f"{reason.because}: cannot tell, {there.doubt}"
    found = worth_sentence(row, ours, there.ours, by(there, moved))
    said = CONTROL[found] if reason.control else found
    elsewhere = moved.task is not None and place.task is not None and moved.task.name != place.task.name
    return f"{reason.because}: {_number(there)}, {said}{ELSEWHERE if elsewhere and said in (EXPLAINS, PART) else ''}"


def find_counterpart(reason: Reason, moved: PrintedPlace, folder: Path) -> Counterpart | None:
    """The quantity where the setting is another; None if that study's results are not in the folder."""
    if not (folder / reason.study).is_dir():
        return None
    found = KeptTables(reason.study, folder / reason.study).find(moved)
    if found is None:
        raise ExegeteError(
            f"{folder / reason.study} has no number for the reason '{reason.because}': correct its place"
        )
    return found


def _moved(reason: Reason, place: PrintedPlace) -> PrintedPlace:
    """The place with what the reason changes."""
    changes = {name: value for name in ("table", "value", "low", "high", "scale") if (value := getattr(reason, name))}
    if reason.table or reason.value:
        changes = {"low": "", "high": ""} | changes
    models = tuple(Spec(model.name, model.settings | reason.settings) for model in place.models)
    where = reason.where if reason.table else {**place.where, **reason.where}
    task = parse(reason.task) if reason.task else place.task
    return replace(place, quantity=place.quantity.model_copy(update=changes), task=task, models=models, where=where)


def worth_sentence(row: Mapping[str, Any], ours: float, there: Ours, by: Yardstick) -> str:
    """What the number where a setting is another explains of a row that deviates.

    >>> worth_sentence({"mean": 0.73}, 0.28, Ours(0.71, 0.62, 0.80), Yardstick(0.05))
    'explains it'
    >>> worth_sentence({"mean": 0.73}, 0.28, Ours(0.42, 0.38, 0.46), Yardstick(0.05))
    'a part of it'
    >>> worth_sentence({"mean": 0.73}, 0.28, Ours(0.27, 0.11, 0.42), Yardstick(0.05))
    'not it'
    >>> worth_sentence({"mean": None, "sign": "at"}, -0.15, Ours(-0.03, -0.06, 0.0), Yardstick(0.03, reference=0.0))
    'a part of it'
    """
    printed = row["mean"]
    if there.low <= ours <= there.high:
        return NOT_IT
    if printed is None:
        return {"direction only": EXPLAINS, "cannot tell": PART}.get(judge_words(row["sign"], there, by)[0], NOT_IT)
    if judge_number(printed, there, by)[0] == "reproduced":
        return EXPLAINS
    return PART if abs(there.value - printed) < abs(ours - printed) else NOT_IT


def _number(found: Counterpart) -> str:
    """A number with its interval, and how many trainings it is of."""
    ours = found.ours
    interval = f" [{significant(ours.low)}, {significant(ours.high)}]" if ours.low < ours.high else ""
    seeds = f" ({found.seeds} seed{'s' if found.seeds > 1 else ''})" if found.seeds else ""
    return f"{significant(ours.value)}{interval}{seeds}"
