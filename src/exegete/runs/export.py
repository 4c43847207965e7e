"""Export: a copy of a run for others, in which no file tells the folders of this machine."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from exegete.base.errors import UsageError
from exegete.base.files import read_json, whole_folder, write_json, write_text
from exegete.base.parquet import checksum, read_parquet, write_parquet
from exegete.runs.integrity import CHECKSUMS, MANIFEST
from exegete.runs.names import NAMES, shorten_names, without_folders
from exegete.runs.run import read_manifest, study_of
from exegete.runs.store import DONE, PARTS, files_in

TEXTS = (".csv", ".svg", ".html")


def export_run(run: Path, folder: Path) -> None:
    """Write a copy of a complete run into a new folder; it can be read and reported, but not run again."""
    read_manifest(run)
    if folder.exists():
        raise UsageError(f"{folder} is there already: choose a new folder with --export")
    study = study_of(run)
    named = [*study.tasks, *study.models, *_strings([*study.experiments, *study.plugins]), str(run.absolute())]

    def rename(text: str) -> str:
        return shorten_names(text, named)

    with whole_folder(folder) as beside:
        for path in files_in(run):
            _copy(path, beside / path.relative_to(run), rename)
        for done in sorted((run / "stages").glob(f"*/{DONE}")):
            _seal(done, beside / done.relative_to(run), PARTS, rename)
        _seal(run / MANIFEST, beside / MANIFEST, CHECKSUMS, rename)


def _strings(value: Any) -> list[str]:
    """Every string in settings: files with scores are named there."""
    if isinstance(value, dict):
        return [each for inner in value.values() for each in _strings(inner)]
    if isinstance(value, list | tuple):
        return [each for inner in value for each in _strings(inner)]
    return [value] if isinstance(value, str) else []


def _copy(source: Path, target: Path, rename: Callable[[str], str]) -> None:
    """A file with other names in it; what holds no text is copied as it is."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.suffix == ".json":
        pages = source.parent.name == "figures"  # a drawing has slashes of its own
        write_json(target, _walked(read_json(source, "run"), rename if pages else lambda t: without_folders(rename(t))))
    elif source.suffix == ".parquet":
        frame = read_parquet(source)
        texts = [name for name in ("task", "model", "method", "first", "second") if frame.schema.get(name) == pl.String]
        values = {value for name in texts for value in frame[name].unique().drop_nulls()}
        changed = {value: new for value in values if (new := rename(value)) != value}
        columns = [pl.col(name).replace(changed) for name in texts] if changed else []
        write_parquet(target, frame.with_columns(columns)) if changed else shutil.copyfile(source, target)
    elif source.suffix in TEXTS:
        write_text(target, rename(source.read_text(encoding="utf8")))
    else:
        shutil.copyfile(source, target)


def _walked(value: Any, rename: Callable[[str], str]) -> Any:
    """JSON with every string renamed, also those that are JSON themselves."""
    if isinstance(value, dict):
        return {rename(name): _walked(inner, rename) for name, inner in value.items()}
    if isinstance(value, list):
        return [_walked(inner, rename) for inner in value]
    return rename(value) if isinstance(value, str) else value


def _seal(source: Path, target: Path, field: str, rename: Callable[[str], str]) -> None:
    """What proves files complete, with the checksums of their copies; and no names, which would tell paths."""
    facts = _walked(read_json(source, "run"), lambda text: without_folders(rename(text)))
    facts.pop(NAMES, None)
    facts[field] = {name: checksum(target.parent / name) for name in facts.get(field, {})}
    write_json(target, facts)
