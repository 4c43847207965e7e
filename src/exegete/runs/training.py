"""Training in a study, and of one model by name outside of one; what is trained already is not trained again."""

from dataclasses import replace
from pathlib import Path

from exegete.base.device import elsewhere
from exegete.base.errors import ExegeteError
from exegete.base.memo import key_of
from exegete.base.names import parse, validate
from exegete.base.progress import Progress, heard, silent
from exegete.base.threads import one_thread
from exegete.models.build import build_model
from exegete.models.capabilities import Pretrained, Trainable
from exegete.models.settings import MODELS
from exegete.runs.data import notes_of, tell_check, tell_size
from exegete.runs.keys import code_hash, code_of
from exegete.runs.store import Stage, stage
from exegete.runs.study import Work
from exegete.tasks.catalogue import load_task, task_kind
from exegete.tasks.example import Task
from exegete.tasks.vocabulary import fit_vocabulary
from exegete.training.checkpoint import Checkpoint, as_read, is_checkpoint, load_checkpoint, save_checkpoint
from exegete.training.evaluation import evaluate_held_out
from exegete.training.fit import Fit
from exegete.training.metrics import Metrics
from exegete.training.settings import TrainingSettings, by_default
from exegete.training.train import train_in_folder

INPUTS = "inputs"  # of a run folder: what came from memory, under its content's hash


def train_cell(work: Work, task: Task) -> Checkpoint:
    """The cell's model: a given checkpoint, or one trained here, going on where an interrupted training stopped."""
    given = Path(work.cell.model)
    if is_checkpoint(given):
        found = fitting(load_checkpoint(given), task, given)
        return replace(found, metrics=found.metrics | _held_out(work, found.model, task))
    settings, seed = work.study.training_for(work.cell.task, work.cell.model), work.cell.seed
    model = build_model(work.cell.model, task, seed)
    facts = {
        "task": work.cell.task,
        "data": task.hash,
        "model": work.cell.model,
        "seed": seed,
        "training": settings.model_dump(),
    }
    at = stage(work.run, "train", training_key(model, task, seed, settings), **facts)
    return train_stage(at, Fit(model, task, settings, seed), work)


def _held_out(work: Work, model: Trainable, task: Task) -> dict[str, Metrics]:
    """How well a given model predicts: of all workers that ask, one finds out."""
    facts = {"data": task.hash, "model": key_of(is_=model.fingerprint(), code=code_of(model))} | elsewhere(model.device)
    at = stage(work.run, "evaluate", key_of(**facts, code=code_hash("exegete.training.evaluation")), **facts)
    with at.held():
        if not at.done:
            at.finish(metrics=evaluate_held_out(model, task))
    found: dict[str, Metrics] = at.result()["metrics"]
    return found


def train_stage(at: Stage, fit: Fit, work: Work) -> Checkpoint:
    """What a training left in its stage, or leaves there now."""
    folder = at.folder / "checkpoint"
    with at.held():
        if at.done:
            return load_checkpoint(folder)
        given = work.run / INPUTS / at.folder.name  # trained in memory, under the same key
        if is_checkpoint(given) and not is_checkpoint(folder):
            save_checkpoint(folder, load_checkpoint(given))
        checkpoint = train_in_folder(fit, folder, at.facts["key"], work.tell)
        at.finish(metrics=checkpoint.metrics)
    return checkpoint


def training_key(model: Trainable, task: Task, seed: int, settings: TrainingSettings) -> str:
    """What determines a trained model.

    Its first weights (vectors included), its data, seed and settings, and the code that trains it.
    """
    first = model.fingerprint()
    return key_of(
        **elsewhere(model.device),
        model=model.spec,
        first=first,
        data=task.hash,
        seed=seed,
        training=settings.model_dump(),
        code=code_hash("exegete.training.train"),
    )


def fitting(checkpoint: Checkpoint, task: Task, folder: Path) -> Checkpoint:
    """Refuse to judge a model on a task with other classes or other words."""
    if not task.labelled:
        return checkpoint
    if isinstance(checkpoint.model, Pretrained) and checkpoint.model.labels != task.labels:
        checkpoint = replace(checkpoint, model=checkpoint.model.relabelled(task.labels))
    if checkpoint.model.labels != task.labels:
        theirs, ours = (", ".join(labels) for labels in (checkpoint.model.labels, task.labels))
        raise ExegeteError(
            f"{folder} predicts the classes {theirs}, task '{task.name}' has {ours}: choose the task that it was "
            f"trained on ({checkpoint.task})"
        )
    if checkpoint.task and (checkpoint.tokenizer, checkpoint.lower) != (task.tokenizer, task.lower):
        raise ExegeteError(
            f"{folder} reads texts with tokenizer={checkpoint.tokenizer},lower={checkpoint.lower}: give task "
            f"'{task.name}' the same settings"
        )
    if task.kind == "translation" and fit_vocabulary(task.split("train")).words != checkpoint.model.reader.words:
        raise ExegeteError(
            f"{folder} was trained with other pieces of words than those of '{task.name}': choose the task that it was "
            f"trained on ({checkpoint.task})"
        )
    return checkpoint


def evaluate_checkpoint(checkpoint: Checkpoint, task: Task) -> Checkpoint:
    """A checkpoint whose scores are those on this task."""
    return replace(checkpoint, metrics=checkpoint.metrics | evaluate_held_out(checkpoint.model, task))


def train_model(
    task: str | Task, model: str, seed: int, training: str, out: Path, progress: Progress = silent
) -> tuple[Checkpoint, tuple[str, ...]]:
    """Train, or find what was trained before, into a checkpoint folder; with what must be said of the data."""
    given = (
        by_default(task.kind if isinstance(task, Task) else task_kind(task), model)
        | parse(f"training:{training}").settings
    )
    settings: TrainingSettings = validate(TrainingSettings, given, "training")
    MODELS.make(model)  # wrong settings are found before the texts are read
    named = as_read(task, model) if isinstance(task, str) else task
    with one_thread(), heard(progress):
        if isinstance(named, str):
            tell_size(named, progress)
        loaded = named if isinstance(named, Task) else load_task(named)
        tell_check(loaded.name, loaded.check, progress)
        built = build_model(model, loaded, seed)
        key = training_key(built, loaded, seed, settings)
        return train_in_folder(Fit(built, loaded, settings, seed), out, key, progress), notes_of(loaded)
