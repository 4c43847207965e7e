"""Trust: which model is explained, and which run says how far its methods can be trusted."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from exegete.base.errors import ExegeteError
from exegete.base.files import is_file, read_json
from exegete.base.names import parse
from exegete.base.progress import Progress, silent
from exegete.training.checkpoint import Checkpoint, is_checkpoint, load_checkpoint

# What runs a study takes a second to import, and is imported only where a model must be trained.
DEFAULT, _MANIFEST = Path("runs", "audit"), "manifest.json"
JUDGED = "judged.json"  # what an audit keeps of its answer
LEADERBOARD = Path("tables", "faithfulness_leaderboard.csv")
ModelGiven = Checkpoint | str | Path | None


@dataclass(frozen=True)
class Trust:
    """A run's word on the methods: how much of the prediction went with the words that each ranked first."""

    run: Path | None = None
    comprehensiveness: Mapping[str, float] = field(default_factory=dict)  # by method, over the run's test texts
    doubt: str = ""  # why the run's word may not be about this model
    answer: str = ""  # what its audit answered of this model, a sentence

    def of(self, method: str) -> float | None:
        """A method's number, or that of the same method with another number of samples; None: not tested."""
        same = [value for other, value in self.comprehensiveness.items() if _plain(other) == _plain(method)]
        return self.comprehensiveness.get(method, same[0] if same else None)

    @property
    def sentence(self) -> str:
        """Whose word the order of the methods is."""
        if self.comprehensiveness:
            return (
                f"Methods are ordered by their comprehensiveness over the test texts of {self.run}; those without a "
                "number there (–) come last, untested."
            )
        return (
            "Methods are ordered by comprehensiveness on this text alone: no run vouches for them, and methods that "
            "delete words themselves have it easy."
        )


def _plain(method: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """A method without what only says how long it draws."""
    name, settings = parse(method)
    return name, tuple(sorted(item for item in settings.items() if item[0] not in ("samples", "seed")))


def subject(model: ModelGiven, run: str | Path | None = None, progress: Progress = silent) -> tuple[Checkpoint, Trust]:
    """The model that is explained (without one, that of the run, or else of the default audit), and who vouches.

    A complete run in the place of a model stands for its first one. The default audit's model is trained into
    `runs/audit` if it isn't there.
    """
    if isinstance(model, str | Path) and run is None and is_file(Path(model) / _MANIFEST):
        model, run = None, model
    if isinstance(model, Checkpoint):
        return model, trust(model, None if run is None else Path(run))
    if model is not None:
        folder = Path(model)
        from exegete.runs.objects import load_object

        checkpoint: Checkpoint = load_object(model)
        return checkpoint, trust(checkpoint, Path(run) if run is not None else _run_around(folder))
    folder = DEFAULT if run is None else Path(run)
    if run is None and not (folder / _MANIFEST).is_file():
        return _default(folder, progress), Trust()
    checkpoint = _first(folder, progress)
    return checkpoint, trust(checkpoint, folder)


def _run_around(folder: Path) -> Path | None:
    """The run whose stage a checkpoint is: RUN/stages/train-KEY/checkpoint."""
    parents = folder.resolve().parents
    return parents[2] if len(parents) > 2 and (parents[2] / _MANIFEST).is_file() else None


def _manifest(run: Path) -> dict[str, Any]:
    """The manifest of a complete run; an incomplete one is one sentence."""
    if not (run / _MANIFEST).is_file():
        from exegete.runs.run import read_manifest

        return read_manifest(run)  # which says what is missing
    facts: dict[str, Any] = read_json(run / _MANIFEST, "run")
    return facts


def checkpoint_of_run(run: Path, number: int = 0) -> Path:
    """The folder of a model of a complete run, the first unless a number is given."""
    kept, named = _folders(run, number)
    for folder in (kept, named):
        if is_checkpoint(folder):
            return folder
    raise ExegeteError(f"the model of {run} is gone ({kept} is missing): run its study again, or name one with --model")


def _folders(run: Path, number: int) -> tuple[Path, Path]:
    """Where a model of a complete run was kept, and where it was found if it was trained before."""
    manifest = _manifest(run)
    cell = manifest["cells"][number]
    written = manifest.get("names", {}).get(cell["model"], cell["model"])  # as its study names it
    return run / "stages" / f"train-{cell['training']}" / "checkpoint", Path(written)


def _first(run: Path, progress: Progress) -> Checkpoint:
    """The first model of a complete run; that of the default audit is trained again where it is gone."""
    if run == DEFAULT and not any(map(is_checkpoint, _folders(run, 0))):
        return _default(run, progress)
    return load_checkpoint(checkpoint_of_run(run))


def _default(run: Path, progress: Progress) -> Checkpoint:
    """The default audit's model, found or trained in its run folder, where the audit will find it too."""
    from exegete.answers.request import DEFAULT as STUDY
    from exegete.base.threads import one_thread
    from exegete.runs.cell import cached_task
    from exegete.runs.keys import code_hash
    from exegete.runs.run import claim_run, lock_run
    from exegete.runs.study import Work, load_study
    from exegete.runs.training import train_cell

    study = load_study(STUDY)
    with lock_run(run), one_thread():
        claim_run(run, study)
        work = Work(run, study, study.cells[0], code_hash("exegete.runs.cell"), progress)
        return train_cell(work, cached_task(work.cell.task))


def trust(checkpoint: Checkpoint, run: Path | None) -> Trust:
    """What a run's leaderboard says of the methods; nothing if there is no run or it has none."""
    if run is None:
        return Trust()
    cell, doubt = _cell(_manifest(run), checkpoint, run)
    answer = "" if doubt else _answer(run, cell)
    if not (run / LEADERBOARD).is_file():
        return Trust(run, doubt=doubt, answer=answer)
    rows = pl.read_csv(run / LEADERBOARD, glob=False, infer_schema_length=None)
    for column in ("task", "model"):
        if column in rows.columns:
            rows = rows.filter(pl.col(column) == cell[column])
    means = rows.group_by("method", maintain_order=True).agg(pl.col("comprehensiveness").mean())
    return Trust(run, dict(means.drop_nulls().iter_rows()), doubt, answer)


def _answer(run: Path, cell: Mapping[str, Any]) -> str:
    """What the audit of a run answered of one of its models; nothing where it was not audited."""
    if not (run / JUDGED).is_file():
        return ""
    from exegete.answers.judgement_cache import cached_answers

    said = cached_answers(run).get((cell["task"], cell["model"]))
    return f"Of this model the audit in {run} answered: {said}." if said else ""


def _cell(manifest: dict[str, Any], checkpoint: Checkpoint, run: Path) -> tuple[dict[str, Any], str]:
    """The run's cell with this model; if none has it, the first, and a doubt."""
    cells = manifest["cells"]
    same = [cell for cell in cells if cell["weights"] == checkpoint.weights_hash]
    if same:
        return same[0], ""
    first = cells[0]
    return first, f"{run} did not study this model: its word is about {first['model']} on {first['task']}."
