"""Train: from a name to a checkpoint folder; an interrupted training goes on from its last finished epoch."""

import shutil
from functools import partial
from pathlib import Path

from exegete.base.errors import ExegeteError
from exegete.base.progress import Progress, silent
from exegete.training.checkpoint import (
    STATE,
    Checkpoint,
    is_checkpoint,
    load_checkpoint,
    load_state,
    save_checkpoint,
    save_state,
)
from exegete.training.evaluation import evaluate_held_out
from exegete.training.fit import Fit


def train_in_folder(fit: Fit, folder: Path, key: str, progress: Progress = silent) -> Checkpoint:
    """Train a model into `folder`, which must be free or hold the result of the same training (the same `key`).

    Until it is complete, the state after each epoch is kept beside it, in `folder`.partial.
    """
    found = _there_already(folder, key)
    if found is not None:
        return found
    partly = folder.with_name(f"{folder.name}.partial")
    saved = load_state(partly, key)
    if saved is not None:
        fit.resume(saved)
    elif (partly / STATE).exists():
        raise ExegeteError(f"{partly} is the state of another training: remove it, or choose another folder with --out")
    state = fit.state if fit.model.as_it_is else fit.run(save=partial(save_state, partly, key=key), progress=progress)
    model, task = fit.model.eval(), fit.task
    metrics = evaluate_held_out(model, task, fit.intervene)
    checkpoint = Checkpoint(
        model=model,
        task=task.name,
        data_hash=task.hash,
        seed=fit.seed,
        training=fit.settings.model_dump(),
        metrics=metrics | {"history": state.history, "best_epoch": state.best_epoch},
        tokenizer=task.tokenizer,
        lower=task.lower,
        key=key,
    )
    save_checkpoint(folder, checkpoint)
    shutil.rmtree(partly, ignore_errors=True)
    return checkpoint


def _there_already(folder: Path, key: str) -> Checkpoint | None:
    """What the same training left in `folder`; anything else there is refused."""
    if is_checkpoint(folder):
        found = load_checkpoint(folder)
        if found.key == key:
            return found
        what = f"{found.model.spec} on {found.task}, seed {found.seed}"
        raise ExegeteError(f"{folder} holds another model ({what}): choose another folder with --out")
    if folder.exists():
        raise ExegeteError(f"{folder} is there already and holds no checkpoint: choose another folder with --out")
    return None
