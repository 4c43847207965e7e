"""Cell: train one model, score the words of its texts, ask every experiment; what is done already is not done again.

An experiment asks about a prediction, and a translation is a row of them. It is asked about one: the word at the step
that the task names (`multi30k:step=…`), after the right words before it, so that a translator is a classifier of single
words. Experiments about whole translations (`asks_whole`) get the translator as it is.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from exegete.base.files import write_json
from exegete.base.memo import key_of
from exegete.experiments.common.contract import Experiment, asks_whole, caveats, recipes, text_limit, unsuited
from exegete.models.build import build_model
from exegete.models.capabilities import Pretrained, Writing
from exegete.runs.companions import companions, required_recipes
from exegete.runs.data import notes_of
from exegete.runs.keys import code_hash
from exegete.runs.plugins import load_plugins
from exegete.runs.skill import skill_stage
from exegete.runs.stages import Case, experiment_stage, is_growing, predict_stage, shards_of
from exegete.runs.study import Cell, FoundRows, Study, Work
from exegete.runs.training import train_cell
from exegete.tasks.catalogue import load_task
from exegete.tasks.data_check import DataCheck
from exegete.tasks.disk import column_of
from exegete.tasks.example import Example, Task
from exegete.tasks.next_word import next_words
from exegete.training.checkpoint import Checkpoint, is_checkpoint, is_trained, load_checkpoint
from exegete.training.recipe import Companion, Recipe

cached_task = lru_cache(maxsize=2)(load_task)
_held: dict[tuple[str, Cell], Case] = {}


def run_cell(work: Work) -> dict[str, Any]:
    """All stages of a cell; returns what it found and where, which is also kept under `cells/`."""
    case = _case(work)
    task, checkpoint = case.task, case.checkpoint
    classes = as_classes(case)
    predicted = predict_stage(classes)
    experiments = work.study.built_experiments(work.cell.task)
    reasons = {name: reason for name, built in experiments.items() if (reason := _unasked(work, case, built))}
    asked = {name: _ask(work, case, name, built) for name, built in experiments.items() if name not in reasons}
    notes = [note for found in asked.values() for note in found.notes]
    notes += [f"{name}: {caveat}" for name in asked for caveat in caveats(experiments[name], task)]
    notes += [f"{name} was not asked: {reason}" for name, reason in reasons.items()]
    notes += () if classes is case else classes.task.notes[len(task.notes) :]
    facts = {
        **work.cell._asdict(),
        "code": work.code,
        "seal": work.seal,
        "data": {
            "origin": task.origin,
            "hash": task.hash,
            "notes": _notes(checkpoint, task),
            "labels": task.labels,
            "check": None if task.check is None else task.check.facts,
        },
        "weights": checkpoint.weights_hash,
        "metrics": checkpoint.metrics,
        "texts": len(case.examples),
        "unasked": reasons,
        "skill": skill_stage(case)._asdict(),
        "majority": majority_share(case.examples) if classes is case and task.labelled else None,  # else nobody knows
        "training": checkpoint.key,
        "predict": predicted.folder.name,
        "experiments": {name: found.folders for name, found in asked.items()},
        "costs": {name: found.costs for name, found in asked.items()},
        "notes": sorted(set(notes)),
    }
    write_json(work.run / "cells" / f"{key_of(**work.cell._asdict())}.json", facts)
    return facts


def majority_share(examples: Sequence[Example]) -> float:
    """The share of the most frequent class."""
    return max(Counter(column_of(examples, "label").tolist()).values()) / len(examples)


def companion_jobs(jobs: Sequence[Work]) -> list[Work]:
    """The training of companions, one by one, each once: those of the cell's own kind, which take longest, first."""
    found: dict[tuple[Cell, Recipe], Work] = {}
    for work in jobs:
        model = "bilstm" if is_trained(work.cell.model) else work.cell.model
        for part, built in work.study.built_experiments(work.cell.task).items():
            for name, recipe in recipes(built, model, work.cell.seed).items():
                found.setdefault((work.cell, recipe), work._replace(part=part, companion=name))
    return [work for _, work in sorted(found.items(), key=lambda pair: bool(pair[0][1].model))]


def prepare_cell(work: Work) -> None:
    """What is needed of a cell before its model is there: its plugins, its texts, what every stage is named by."""
    load_plugins(work.study.plugins)
    cached_task(work.cell.task)
    code_hash(__name__)


def check_cell_data(work: Work) -> DataCheck | None:
    """What was counted in the texts of a cell, before anything is trained on them; none of a translation."""
    prepare_cell(work)
    return cached_task(work.cell.task).check


def train_base(work: Work) -> str:
    """The model of a cell, before anything is asked; a sentence where it guesses, so that nobody waits for nothing."""
    found = skill_stage(_case(work))
    if not found.is_guess:
        return ""
    return (
        f"{work.cell} may only guess ({found.said}): there is nothing to explain, and no test will have a verdict. "
        "Train it better, or give it more texts."
    )


def _case(work: Work) -> Case:
    """A cell's trained model, and the texts that it is asked about; the last one of a command is held."""
    load_plugins(work.study.plugins)
    at = (work.begun, work.cell)
    if not work.begun or at not in _held:
        task = cached_task(work.cell.task)
        _held.clear()
        checkpoint = train_cell(work, task)
        if not task.labelled:  # its classes are the model's
            task = replace(task, labels=checkpoint.model.labels)
        _held[at] = Case(work.run, work.study.split, task, checkpoint, work.tell)
    return _held[at]._replace(tell=work.tell, halves=work.halves)


def train_companions(work: Work) -> None:
    """A companion (`work.companion`) that an experiment of a cell (`work.part`) needs."""
    case, built = _case(work), work.study.built_experiments(work.cell.task)[work.part]
    if _unasked(work, case, built) is None:
        _accompanied(case, work, built)


def apart(jobs: Sequence[Work]) -> list[Work]:
    """Cells' questions by experiment, split and shard: those that wait for companions last, else the longest first.

    Those with most scores take longest, and of them those on the texts that the study is about, and of these the last,
    for texts are sorted by length. What waits for companions is not cut: to load them takes as long as to ask.
    """
    found = []
    for work in jobs:
        for name, built in work.study.built_experiments(work.cell.task).items():
            waits = bool(recipes(built, "bilstm", 0))
            for split in built.splits or (work.study.split,):
                place = (waits, -len(built.importances), split != work.study.split)
                pieces = [work._replace(part=name, split=split, shard=shard) for shard in _pieces(work, split, built)]
                found += [(place, piece) for piece in pieces]
    return [work for _, work in sorted(found, key=lambda pair: pair[0])]


def _pieces(work: Work, split: str, built: Experiment) -> Sequence[int | None]:
    """The shards of a question's texts, the longest first; None: they are asked together."""
    load_plugins(work.study.plugins)
    task = cached_task(work.cell.task)
    if recipes(built, "bilstm", 0) or task.kind == "translation" or split not in task.splits:
        return (None,)
    return range(len(shards_of(task.split(split), text_limit(built, split), is_growing(built, task, split))))[::-1]


def ask_piece(work: Work) -> FoundRows | None:
    """One experiment (`work.part`) of a cell on one split or a shard of it; what it found, once all is asked."""
    case, built = _case(work), work.study.built_experiments(work.cell.task)[work.part]
    if _unasked(work, case, built) is not None:
        return None
    there = _accompanied(case, work, built).asked_by(built, work.split)
    at, _, _ = experiment_stage(there, work.part, built, work.shard)
    return _ask_of(there, work.part, built) if at.done else None  # whoever asked the last shard tells


def unasked_questions(study: Study, cell: Cell) -> dict[str, str]:
    """The experiments that can't be asked about a cell, each with the reason, told without training its model."""
    load_plugins(study.plugins)
    task, work = cached_task(cell.task), Work(Path(), study, cell, "")
    given = Path(cell.model)
    model = load_checkpoint(given).model if is_checkpoint(given) else build_model(cell.model, task, cell.seed)
    case = Case(Path(), study.split, task, Checkpoint(model, cell.task, task.hash, cell.seed, {}, {}), work.tell)
    every = study.built_experiments(cell.task)
    absent = {name: "it is not asked about this task" for name in study.built_experiments() if name not in every}
    return absent | {name: reason for name, built in every.items() if (reason := _unasked(work, case, built))}


def _unasked(work: Work, case: Case, built: Experiment) -> str | None:
    """Why an experiment can't be asked about a cell; None if it can."""
    seen = case_for(case, built)
    return unsuited(built, seen.task, seen.checkpoint.model) or _untrainable(work, case, built)


def _untrainable(work: Work, case: Case, built: Experiment) -> str | None:
    """Why an experiment that trains more models can't be asked about one that is trained already.

    Models of another kind can be trained beside a checkpoint; more of its own kind can't, for want of its recipe.
    """
    needed = recipes(built, case.checkpoint.model.spec, work.cell.seed).values()
    whole = asks_whole(built) or not isinstance(case.checkpoint.model, Writing)
    if not whole and not all(recipe.plain and not recipe.model for recipe in needed):
        return "it trains models that give one class to a text beside it, and these would have to translate"
    if not is_trained(work.cell.model) or all(recipe.model and recipe.plain for recipe in needed):
        return None
    return f"it needs more models of the same kind, and {work.cell.model} is one trained model: name its settings"


def _accompanied(case: Case, work: Work, built: Experiment) -> Case:
    """A case as an experiment sees it, with the companions that it needs."""
    wanted = required_recipes(recipes(built, case.checkpoint.model.spec, work.cell.seed), work.companion)
    beside = companions(work, case.task, case.checkpoint, wanted) if wanted else {}
    return case_for(case._replace(companions=beside), built)


def case_for(case: Case, experiment: Experiment) -> Case:
    """A case as an experiment sees it."""
    return case if asks_whole(experiment) else as_classes(case)


def as_classes(case: Case) -> Case:
    """A case whose predictions are classes."""
    model = case.checkpoint.model
    if not isinstance(model, Writing):
        return case
    companions = {name: _viewed(companion) for name, companion in case.companions.items()}
    return case._replace(
        task=next_words(case.task, model.reader, case.task.step),
        checkpoint=replace(case.checkpoint, model=model.as_classes()),
        companions=companions,
    )


def _viewed(companion: Companion) -> Companion:
    model = companion.model
    return replace(companion, model=model.as_classes()) if isinstance(model, Writing) else companion


def _ask(work: Work, case: Case, name: str, built: Experiment) -> FoundRows:
    """One experiment on every split that it asks about."""
    splits = built.splits or (case.split,)
    by_split = {split: found for found in work.found if found.experiment == name for split in found.folders}
    if not set(splits) <= set(by_split):
        there = _accompanied(case, work, built)
        by_split = {split: _ask_of(there.asked_by(built, split), name, built) for split in splits}
    known = [by_split[split] for split in splits]
    return FoundRows(
        name,
        {split: folder for found in known for split, folder in found.folders.items()},
        [cost for found in known for cost in found.costs],
        [note for found in known for note in found.notes],
    )


def _ask_of(case: Case, name: str, built: Experiment) -> FoundRows:
    """One experiment on one split."""
    at, scored, refused = experiment_stage(case, name, built)
    told = {importance: stage.result() for importance, stage in scored.items()}
    notes = [f"{importance} is left out: {reason}" for importance, reason in refused.items()]
    notes += [
        f"{importance} gives every word 0 in {facts['all_zero']} of {facts['n']} texts ({case.split})"
        for importance, facts in told.items()
        if facts["all_zero"]
    ]
    costs = [{"split": case.split, "method": importance} | _cost(facts) for importance, facts in told.items()]
    return FoundRows(name, {case.split: at.folder.name}, costs, notes)


def _cost(facts: dict[str, Any]) -> dict[str, Any]:
    return {key: facts[key] for key in ("n", "forward", "backward", "ms", "mean_error", "max_error", "all_zero")}


def _notes(checkpoint: Checkpoint, task: Task) -> tuple[str, ...]:
    """What a reader must know of the data."""
    model = checkpoint.model
    said = (*notes_of(task), *(model.notes(task) if isinstance(model, Pretrained) else ()))
    if checkpoint.data_hash == task.hash:
        return said
    other = (
        f"the model was trained on other data ({checkpoint.task}): texts that it has learnt may be among those studied"
    )
    return (*said, other)
