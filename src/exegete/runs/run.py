"""Run: the folder that a study fills: stages, tables, figures, report, and a manifest, written last."""

import platform
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

import polars as pl
import torch
from pydantic import ValidationError

from exegete import __version__
from exegete.base.device import CPU, for_questions, in_use, on_device
from exegete.base.errors import ExegeteError
from exegete.base.files import read_json, write_json
from exegete.base.lease import hold_lease
from exegete.base.memo import key_of
from exegete.base.progress import Progress, Speaking, silent
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.common.contract import Growing
from exegete.experiments.common.margins import CRITERIA, margins_of
from exegete.experiments.common.parts import AllRows, RowsPart
from exegete.runs.engine import engine_of
from exegete.runs.engine.contract import Engine, SetAsideError
from exegete.runs.integrity import CHECKSUMS, facts_of, set_aside
from exegete.runs.keys import code_hash
from exegete.runs.names import NAMES, rename_cells, short_names
from exegete.runs.own_files import own_files
from exegete.runs.pieces import work_through
from exegete.runs.remote import FOUND, address_of, remote
from exegete.runs.seal import Seals, libraries, seals_of
from exegete.runs.store import DONE, peak_memory, refuse_address, stage_costs
from exegete.runs.study import Cell, FoundRows, Study, Work
from exegete.runs.tables import checksums, row_parts, write_tables
from exegete.runs.training import INPUTS
from exegete.training.checkpoint import is_trained
from exegete.training.settings import TrainingSettings

MANIFEST, STUDY = "manifest.json", "study.json"
WORDING = ("title", "notes", "engine")  # what has no effect on a study's numbers
TOLD = ("task", "model", "seed", "weights", "data", "training", "predict", "experiments", "notes")  # of every cell


class More(Protocol):
    """How a study goes on, with more texts."""

    def trained(self) -> None:
        """Hear that the only model is trained, and questions begin."""

    def __call__(self, study: Study, rows: Mapping[str, pl.DataFrame]) -> Study | None:
        """From a study and the rows of its experiments that grow, the study that asks them more texts, or None."""


def run_study(
    study: Study,
    out: Path,
    cells: Sequence[Cell] | None = None,
    engine: Engine | None = None,
    progress: Progress = silent,
    *,
    criteria: Mapping[str, Any] | None = None,
    more: More | None = None,
) -> Path:
    """Run or resume a study, or some cells of it; returns the run folder.

    `criteria` are what the run is going to be judged by: they are written before charts, which show their margins.
    `more` says, of a study and what its experiments that grow found so far, how the study goes on with more texts.
    """
    with on_device(for_questions(study.device)):
        return _run(study, out, cells, engine, progress, criteria, more)


def _run(
    study: Study,
    out: Path,
    cells: Sequence[Cell] | None,
    engine: Engine | None,
    progress: Progress,
    criteria: Mapping[str, Any] | None,
    more: More | None,
) -> Path:
    """Run or resume a study on the device in use."""
    started = time.time()
    with lock_run(out):
        study = _as_grown(out, study)
        claim_run(out, study)
        if criteria is not None:
            write_json(out / CRITERIA, criteria)
        wanted = _made_again(out, study, cells or study.cells, progress)
        seals = seals_of(study, margins_of(out))
        if seals is not None and is_sealed(out, seals, wanted):
            larger = None if more is None else more(study, _found(out, study))
            if larger is None:
                return out
            study = larger
            claim_run(out, study)
            seals = seals_of(study, margins_of(out))
        code = code_hash("exegete.runs.cell")  # of the code that is about to run
        _no_other_code(out, study, wanted, code)
        _sweep(out)
        kept_seals = seals.cells if seals is not None and _is_whole(out) else {}
        (out / MANIFEST).unlink(missing_ok=True)
        begun, by_cell = uuid4().hex, seals.cells if seals is not None else {}
        missing = [cell for cell in wanted if more is not None or not is_kept(out, cell, kept_seals.get(cell))]
        address = _withdrawn(out, missing)
        work = Work(out, study, wanted[0], code, begun=begun, address=address)
        jobs = [work._replace(cell=cell, seal=by_cell.get(cell, "")) for cell in missing]
        with engine or engine_of(study.engine) as running:
            running.reach(None if address else out, own_files(study))
            jobs, aside = work_through(jobs, running, progress, None if more is None else _Growth(more, out, address))
            study = jobs[0].study if jobs else study
            seals = seals_of(study, margins_of(out)) if more is not None else seals
            if address:
                remote(address).fetch(FOUND)
            finished = finished_cells(out, study)
            if aside and not finished:
                raise SetAsideError(aside, len(jobs))
            _one_data_set_each(out, finished)
            called = rename_cells(finished, short_names((*study.tasks, *study.models)))
            # At an address, tables are made here: workers may have other copies of it.
            tabulated = write_tables(out, study, called, engine_of("local", 1) if address else running, progress)
        _sweep(out)
        shown = tabulated.checksums | checksums(out, _proofs(out))
        seal = _seal(seals, finished) if not tabulated.failures else None  # what failed is tried again
        kept = {"seal": seal, "written": sorted(_written(out)), CHECKSUMS: shown, "failures": tabulated.failures}
        told = {"stages": stage_costs(out), "missing": [str(piece) for piece in aside]}
        write_json(out / MANIFEST, manifest(study, finished, time.time() - started) | told | kept)
    if aside:
        raise SetAsideError(aside, len(jobs))
    return out


class _Growth(NamedTuple):
    """Jobs with more texts, as the study with them says; it claims the folder before it is asked."""

    more: More
    out: Path
    address: str

    def trained(self) -> None:
        self.more.trained()

    def __call__(self, jobs: list[Work], known: Mapping[Cell, Sequence[FoundRows]]) -> list[Work] | None:
        if self.address:
            remote(self.address).fetch(FOUND)
        larger = self.more(jobs[0].study, _rows_of(self.out, _folders(known))) if jobs else None
        if larger is None:
            return None
        claim_run(self.out, larger)
        seals = seals_of(larger, margins_of(self.out))
        return [w._replace(study=larger, seal=seals.cells[w.cell] if seals is not None else "") for w in jobs]


def _folders(known: Mapping[Cell, Sequence[FoundRows]]) -> dict[Cell, dict[str, dict[str, str]]]:
    """By cell and experiment the stage of every split, the last that was told of."""
    found: dict[Cell, dict[str, dict[str, str]]] = {}
    for cell, every in known.items():
        for each in every:
            found.setdefault(cell, {}).setdefault(each.experiment, {}).update(each.folders)
    return found


def _found(out: Path, study: Study) -> dict[str, pl.DataFrame]:
    """The rows that finished cells have of every experiment."""
    return _rows_of(out, {_cell(facts): facts["experiments"] for facts in finished_cells(out, study)})


def _rows_of(out: Path, folders: Mapping[Cell, Mapping[str, Mapping[str, str]]]) -> dict[str, pl.DataFrame]:
    """Rows by experiment that grows, of stages that are complete."""
    found: dict[str, list[RowsPart]] = {}
    for cell, by_experiment in folders.items():
        facts = {**cell._asdict(), "experiments": by_experiment}
        for name in by_experiment:
            if issubclass(EXPERIMENTS[name].load(), Growing):
                found.setdefault(name, []).extend(row_parts(out, facts, name))
    return {name: AllRows(parts).whole() for name, parts in found.items()}


def _made_again(out: Path, study: Study, wanted: Sequence[Cell], progress: Progress) -> Sequence[Cell]:
    """Set aside what is damaged, and say so; returns what is wanted, and all that the run had, if anything is."""
    before = _cells(facts_of(out / MANIFEST) or {})
    damaged = set_aside(out)
    address = address_of(out) if damaged else ""
    for name, removed in damaged.items():
        for each in removed if address else ():
            remote(address).withdraw(each)
        if isinstance(progress, Speaking):
            progress.say(f"{out / name} is damaged, and is computed again")
    return [cell for cell in study.cells if cell in wanted or cell in before] if damaged else wanted


def _proofs(out: Path) -> list[Path]:
    """What a run's manifest vouches for beside its tables: figures, cells, what came from memory, and stages."""
    every = [*(out / "figures").glob("*"), *(out / "cells").glob("*.json"), *(out / INPUTS).rglob("*")]
    return sorted([*(path for path in every if path.is_file()), *(out / "stages").glob(f"*/{DONE}")])


def _withdrawn(out: Path, missing: Sequence[Cell]) -> str:
    """The address of a run, if it has one, which knows its study now, and nothing of what is about to be made again."""
    address = address_of(out)
    if address:
        remote(address).put((STUDY, INPUTS))
        for name in (MANIFEST, *(_cell_file(cell) for cell in missing)):
            (out / name).unlink(missing_ok=True)
            remote(address).withdraw(name)
    return address


def is_sealed(out: Path, seals: Seals, wanted: Sequence[Cell]) -> bool:
    """Whether a run has these cells, everything that determines it is as it was, and nothing that it wrote is gone."""
    facts = read_json(out / MANIFEST, "run") if (out / MANIFEST).is_file() else {}
    cells = _cells(facts)
    same = set(wanted) <= set(cells) and facts.get("seal") == seals.of(cells)
    return same and set(facts["written"]) <= _written(out)


def _seal(seals: Seals | None, finished: Sequence[dict[str, Any]]) -> str | None:
    """Of a run with these cells; None where one of them was found under another seal, or nothing can be sealed."""
    found = {_cell(facts): facts.get("seal") for facts in finished}
    if seals is None or any(seal != seals.cells[cell] for cell, seal in found.items()):
        return None
    return seals.of(list(found))


def _cell(facts: dict[str, Any]) -> Cell:
    return Cell(facts["task"], facts["model"], facts["seed"])


def _cells(manifest: dict[str, Any]) -> list[Cell]:
    """The cells of a complete run, as its study writes them."""
    names = manifest.get(NAMES, {})
    given = [_cell(facts) for facts in manifest.get("cells", ())]
    return [
        cell._replace(task=names.get(cell.task, cell.task), model=names.get(cell.model, cell.model)) for cell in given
    ]


def read_cells(run: Path, study: Study) -> list[Cell]:
    """The cells of a study that a run has, or all of one that was stopped."""
    known = _cells(facts_of(run / MANIFEST) or {})
    return [cell for cell in study.cells if cell in known] or list(study.cells)


def _is_whole(out: Path) -> bool:
    """Whether nothing is gone of what a complete run wrote; of one that was stopped, nobody knows of more."""
    return not (out / MANIFEST).is_file() or set(read_json(out / MANIFEST, "run").get("written", ())) <= _written(out)


def is_kept(out: Path, cell: Cell, seal: str | None) -> bool:
    """Whether a cell is finished, everything that determines it is as it was, and its stages are there."""
    path = out / _cell_file(cell)
    facts = read_json(path, "cell") if seal is not None and path.is_file() else {}
    if not facts or facts.get("seal") != seal:
        return False
    trained = [] if is_trained(cell.model) else [f"train-{facts['training']}"]
    asked = [folder for by_split in facts["experiments"].values() for folder in by_split.values()]
    return all((out / "stages" / name / DONE).is_file() for name in (*trained, facts["predict"], *asked))


def _cell_file(cell: Cell) -> str:
    return f"cells/{key_of(**cell._asdict())}.json"


def _written(out: Path) -> set[str]:
    """The tables, figures and cells of a run, and its stages that are complete."""
    shown = {f"{name}/{path.name}" for name in ("tables", "figures", "cells") for path in (out / name).glob("*")}
    return shown | {f"stages/{done.parent.name}" for done in (out / "stages").glob(f"*/{DONE}")}


def claim_run(out: Path, study: Study) -> None:
    """A run folder belongs to one study: refuse another's rather than mix or overwrite; its words may change."""
    mine = study.model_dump(mode="json") | {"device": in_use().type}
    theirs = read_json(out / STUDY, "run") if (out / STUDY).is_file() else None
    if (
        theirs is None
        and out.is_dir()
        and any(p.name != INPUTS and not p.name.startswith(".lock") for p in out.iterdir())
    ):
        raise ExegeteError(f"{out} is not empty and no run folder: choose another with --out")
    if theirs is not None and any((out / name).exists() for name in ("stages", "cells")):
        before = _with_defaults(theirs)
        if before["device"] != mine["device"]:  # other digits
            raise ExegeteError(
                f"{out} was computed on {before['device']}, not on {mine['device']}: name the same --device, or choose "
                "another folder with --out"
            )
        changed = sorted(name for name in mine if before.get(name) != mine[name] and name not in WORDING)
        if changed == ["experiments"] and _only_grown(before["experiments"], mine["experiments"]):
            changed = []
        if changed:
            raise ExegeteError(
                f"{out} is the run folder of another study ('{theirs.get('name')}' with other {', '.join(changed)}): "
                "choose another with --out"
            )
    if theirs != mine:
        write_json(out / STUDY, mine)


def _as_grown(out: Path, study: Study) -> Study:
    """The study with no fewer texts than this run of it was asked already: what is known stays."""
    before = read_json(out / STUDY, "run").get("experiments", ()) if (out / STUDY).is_file() else ()
    same = [entry.get("name") for entry in before] == [entry["name"] for entry in study.experiments]
    if not same or list(map(_of_a_text, before)) != list(map(_of_a_text, study.experiments)):
        return study  # the folder is that of another study
    entries = zip(before, study.experiments, strict=True)
    more = tuple(old if _texts(old) > _texts(new) else new for old, new in entries)
    return study.model_copy(update={"experiments": more})


def _only_grown(before: Sequence[dict[str, Any]], now: Sequence[dict[str, Any]]) -> bool:
    """Whether experiments differ by more texts of those that grow, and by nothing else."""
    more = all(_texts(new) >= _texts(old) for old, new in zip(before, now, strict=False))
    return more and list(map(_of_a_text, before)) == list(map(_of_a_text, now))


def _of_a_text(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An experiment as a study writes it, but for the number of texts where that grows."""
    grows = issubclass(EXPERIMENTS[entry["name"]].load(), Growing)
    return {name: value for name, value in entry.items() if name != "texts" or not grows}


def _texts(entry: Mapping[str, Any]) -> float:
    return inf if entry.get("texts") is None else float(entry["texts"])


def _with_defaults(theirs: dict[str, Any]) -> dict[str, Any]:
    """A study as it was written, with what holds for settings that it did not know of."""
    training = TrainingSettings().model_dump(mode="json") | theirs.get("training", {})
    return {"trained": []} | theirs | {"training": training, "device": theirs.get("device") or CPU}


def _no_other_code(out: Path, study: Study, wanted: Sequence[Cell], code: str) -> None:
    """Cells that other code finished must be run again, or their numbers would be mixed with ours or lost."""
    old = [_cell(c) for c in finished_cells(out, study) if c["code"] != code]
    left = [cell for cell in old if cell not in wanted]
    if left:
        raise ExegeteError(
            f"{len(left)} cells in {out} were made by another version of the code and are not in this command: name "
            "them too (they are run again where that matters), or choose another folder with --out"
        )


def _one_data_set_each(out: Path, cells: Sequence[dict[str, Any]]) -> None:
    """All cells of a task must have seen the same texts."""
    seen: dict[str, dict[str, str]] = {}
    for cell in cells:
        data = seen.setdefault(cell["task"], cell["data"])
        if data["hash"] != cell["data"]["hash"]:
            raise ExegeteError(
                f"task '{cell['task']}' in {out} comes from {data['origin']} and from {cell['data']['origin']}, with "
                "different texts: set EXEGETE_DATA as before, or choose another folder with --out"
            )


def _sweep(out: Path) -> None:
    """Remove what a killed process had half written, and the locks of stages; nobody else is at work here."""
    kept = [out / name for name in ("stages", "cells", "tables", "figures")]
    left = [
        *(path for folder in kept for path in folder.rglob(".*")),
        *out.glob(".*.json.*"),
        *out.glob(".report.html.*"),
        *out.glob(".lock.*"),
    ]
    for path in left:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


@contextmanager
def lock_run(out: Path) -> Iterator[None]:
    """One command at a time in a run folder."""
    refuse_address(out)
    refusal = f"another exegete is at work in {out}: wait for it, or choose another folder with --out"
    with hold_lease(out / ".lock", refusal):
        yield


def finished_cells(out: Path, study: Study) -> list[dict[str, Any]]:
    """Every cell of the study that is finished, in the study's order."""
    order = {cell: place for place, cell in enumerate(study.cells)}
    found = [read_json(path, "cell") for path in (out / "cells").glob("*.json")]
    placed = [(order.get(_cell(facts)), facts) for facts in found]
    return [facts for _, facts in sorted(((n, f) for n, f in placed if n is not None), key=lambda pair: pair[0])]


def manifest(study: Study, cells: Sequence[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """Everything that the numbers depend on."""
    names = short_names((*study.tasks, *study.models))
    return {
        "exegete": __version__,
        "study": study.model_dump(mode="json"),
        "cells": [{name: cell[name] for name in TOLD} for cell in rename_cells(cells, names)],
        NAMES: {name: spec for spec, name in names.items()},
        "code": ", ".join(sorted({cell["code"] for cell in cells})),
        "python": platform.python_version(),
        "libraries": libraries(),
        "machine": platform.machine(),
        "device": _device(),
        "command": [_portable(word) for word in sys.argv],
        "seconds": round(seconds, 1),
        "peak_mb": peak_memory(),
    }


def _device() -> str:
    """Where models computed; of a GPU, which one it is."""
    found = in_use()
    return f"{found.type} ({torch.cuda.get_device_name(found)})" if found.type == "cuda" else found.type


def _portable(word: str) -> str:
    """An argument without the folders of this machine."""
    return Path(word).name if Path(word).is_absolute() else word


def study_of(run: Path) -> Study:
    """The study of a run."""
    try:
        return Study.model_validate(read_json(run / STUDY, "run"))
    except ValidationError:
        raise ExegeteError(f"{run / STUDY} is damaged: copy the study from {MANIFEST}, or make the run again") from None


def read_manifest(run: Path) -> dict[str, Any]:
    """The manifest of a complete run; its absence means that the run is not complete."""
    if not run.is_dir():
        raise ExegeteError(f"there is no run folder {run}: make one with `exegete run STUDY.toml --out {run}`")
    if not (run / MANIFEST).is_file():
        raise ExegeteError(
            f"the run in {run} is not complete (no manifest.json): run its study again, it goes on where it stopped"
        )
    facts: dict[str, Any] = read_json(run / MANIFEST, "run")
    return facts
