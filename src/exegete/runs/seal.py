"""Seal: everything that a run's numbers, tables and figures depend on, told without training or loading a model.

A complete run with the same seal need not be run again, nor a finished cell of one that was stopped: its study, the
code and libraries, and the texts, vectors and checkpoints that were read are all as they were. What reads a user's own
code can't be sealed; it is run, and every stage decides for itself whether it is done.
"""

import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from exegete.base.catalogue import Catalogue
from exegete.base.device import elsewhere, in_use
from exegete.base.memo import key_of
from exegete.base.names import parse
from exegete.base.source import digest_of, is_ours, package_hash
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.common.contract import builds
from exegete.experiments.common.margins import Margins, declared_margins
from exegete.importance.catalogue import IMPORTANCES
from exegete.interventions.catalogue import INTERVENTIONS
from exegete.measures.catalogue import MEASURES
from exegete.models.settings import MODELS
from exegete.runs.study import Cell, Study
from exegete.tasks import packages, vectors
from exegete.tasks.catalogue import files_of, load_task
from exegete.training.checkpoint import FACTS, WEIGHTS, is_checkpoint

LIBRARIES = ("torch", "numpy", "polars", "scipy", "entmax", "altair", "captum", "safetensors")
CATALOGUES: tuple[Catalogue, ...] = (EXPERIMENTS, IMPORTANCES, INTERVENTIONS, MEASURES, MODELS)


class Seals(NamedTuple):
    """What determines a run: the seal of the whole, and of what each of its cells found."""

    whole: str
    cells: dict[Cell, str]

    def of(self, cells: Sequence[Cell]) -> str:
        """The seal of a run of these cells: all of a study, or some."""
        return self.whole if len(cells) == len(self.cells) else key_of(whole=self.whole, cells=list(cells))


def seals_of(study: Study, margins: Margins | None = None) -> Seals | None:
    """Fingerprints of everything that determines a run of a study; None where a user's own code does.

    Charts show margins, those that tests declare unless others are given; what cells found has none.
    """
    own = any(parse(model).name == "own" for model in study.models) or any(each.has_own for each in CATALOGUES)
    if study.plugins or own or not all(map(is_ours, study.built_experiments().values())):
        return None
    made = {
        "package": package_hash(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "libraries": libraries(),
        "scores": _given(study),
        **elsewhere(in_use()),
    }
    tasks, models = {task: _task(task) for task in study.tasks}, {model: _model(model) for model in study.models}
    asked = study.model_dump(mode="json", exclude={"engine", "device"})
    alike = {name: said for name, said in asked.items() if name not in ("title", "notes", "tasks", "models", "seeds")}
    return Seals(
        key_of(
            study=asked,
            margins=margins or declared_margins(),
            **made,
            tasks=list(tasks.values()),
            models=list(models.values()),
        ),
        {c: key_of(study=alike, **made, cell=c, task=tasks[c.task], model=models[c.model]) for c in study.cells},
    )


def libraries() -> dict[str, str]:
    """The versions of what computes and draws."""
    return {name: version(name) for name in LIBRARIES}


def _task(task: str) -> str:
    """What is in the files of a task; of one that has none, its texts."""
    files = files_of(task)
    return load_task(task).hash if files is None else f"{[path.name for path in files]} {digest_of(*files)}"


def _model(model: str) -> str:
    """What a model reads: a checkpoint's files, or its vectors."""
    folder = Path(model)
    if is_checkpoint(folder):
        return digest_of(folder / FACTS, folder / WEIGHTS)
    named = getattr(MODELS.make(model), "vectors", None)
    if named is None:
        return ""
    return packages.origin(vectors.GLOVE_50) if named == "glove-50" else digest_of(vectors.file_of(named))


def _given(study: Study) -> list[str]:
    """What importances read from files of their own."""
    wanted = {name for built in study.built_experiments().values() for name in (*built.importances, *builds(built))}
    made = [IMPORTANCES.make(name) for name in sorted(wanted)]
    return [str(content) for each in made if (content := getattr(each, "content", None)) is not None]
