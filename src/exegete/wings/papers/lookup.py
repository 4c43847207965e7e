"""Lookup: the place of a printed number in the tables of our studies.

Tables are read as text, from a run folder or from results that were kept of one; what a printed word stands for narrows
them. The first source that has the number gives it, and of several cells that fit the first of the table.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl
import torch

from exegete.plugins import (
    MODELS,
    ExegeteError,
    Spec,
    UsageError,
    clopper_pearson,
    parse,
    shorten_names,
    t_interval,
    unknown,
)
from exegete.wings.papers.paper import PARTS, NamePart, Paper, PrintedQuantity
from exegete.wings.papers.rule import LEARNT, SIGNIFICANT, Ours

EITHER = "|"  # between values of a column that mean the same
CELL = ("task", "model", "family")  # columns that name what was trained


@dataclass(frozen=True)
class PrintedPlace:
    """Where to look for a printed number: a task, a model with some of its settings, rows of a table."""

    quantity: PrintedQuantity
    parts: tuple[NamePart, ...]
    task: Spec | None
    models: tuple[Spec, ...]
    where: Mapping[str, str]

    def first(self, name: str) -> Any:
        """What the first of the parts says that says anything."""
        return next((value for part in self.parts if (value := getattr(part, name))), None)

    @property
    def tolerance(self) -> float:
        """The widest that is stated."""
        return max(self.quantity.tolerance, *(part.tolerance or 0.0 for part in self.parts), 0.0)


def printed_place(paper: Paper, printed: Mapping[str, Any]) -> PrintedPlace:
    """The place of a printed number; a word that the paper's file doesn't explain is an error."""
    if printed["quantity"] not in paper.quantities:
        raise unknown(f"quantity of {paper.name}.toml", printed["quantity"], paper.quantities)
    quantity = paper.quantities[printed["quantity"]]
    parts = tuple(_part(paper, kind, printed[kind]) for kind in PARTS if printed[kind])
    task = next((parse(part.task) for part in parts if part.task), None)
    more = {key: value for part in parts for key, value in part.settings.items()}
    models = tuple(Spec(named.name, named.settings | more) for part in parts for named in map(parse, part.model))
    rows = {key: value for part in parts for key, value in part.where.items()} | quantity.where
    return PrintedPlace(quantity, parts, task, models, rows)


def _part(paper: Paper, kind: str, word: str) -> NamePart:
    known = paper.parts(kind)
    if word not in known:
        raise unknown(f"{kind} of {paper.name}.toml", word, known)
    return known[word]


@dataclass(frozen=True)
class Counterpart:
    """Our number, in the paper's unit, with what it rests on."""

    ours: Ours
    task: str
    model: str
    n: int | None
    seeds: int | None
    reference: float | None
    source: str
    doubt: str  # empty, or why ours is not worth a verdict


class KeptTables:
    """The tables of a study's folder: a run, or results that were kept of one."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self._tables = folder / "tables" if (folder / "tables").is_dir() else folder
        self._read: dict[str, pl.DataFrame | None] = {}

    def table(self, name: str) -> pl.DataFrame | None:
        """A table as text, read once; None if it isn't there."""
        if name not in self._read:
            path = self._tables / f"{name}.csv"
            self._read[name] = pl.read_csv(path, infer_schema=False) if path.is_file() else None
        return self._read[name]

    def find(self, place: PrintedPlace) -> Counterpart | None:
        """Our number for a place, or None."""
        frame = self.table(place.quantity.table)
        if frame is None:
            return None
        self._check_columns(frame, place)
        chosen = (pl.col(name).is_in(value.split(EITHER)) for name, value in place.where.items())
        rows: list[Mapping[str, Any]] = [r for r in frame.filter(*chosen).iter_rows(named=True) if _fits(r, place)]
        if not rows:
            return None
        first = [row for row in rows if _cell(row, place.quantity) == _cell(rows[0], place.quantity)]
        return self._found(_one(first, place.quantity, self.folder), place)

    def _check_columns(self, frame: pl.DataFrame, place: PrintedPlace) -> None:
        missing = [name for name in (*place.where, *place.quantity.by) if name not in frame.columns]
        if missing:
            raise ExegeteError(
                f"{self._tables / place.quantity.table}.csv has no column '{missing[0]}': it was made by another "
                "version of exegete; run its study again"
            )

    def _found(self, rows: list[Mapping[str, Any]], place: PrintedPlace) -> Counterpart | None:
        quantity = place.quantity
        ours = _ours(rows, quantity)
        if ours is None:
            return None
        row = rows[0]
        task, model = row.get("task") or "", row.get("model") or row.get("family") or ""
        return Counterpart(
            ours,
            task,
            model,
            n=_whole(row.get("n") or row.get("texts")),
            seeds=len(rows) if "seed" in row else _whole(row.get("seeds")),
            reference=_reference(row, quantity),
            source=self.name,
            doubt=_doubt(row, quantity) or self.not_learnt(task, model),
        )

    def not_learnt(self, task: str, model: str) -> str:
        """Why a model has nothing to show: it hardly beats the most frequent class. Empty if it has learnt."""
        models = self.table("models")
        if models is None:
            return ""
        if "majority" not in models.columns:
            return "nothing tells what guessing would reach: run its study again"
        mine = models.filter(pl.col("task") == task, pl.col("model") == model).select("test_accuracy", "majority")
        means = mine.cast(pl.Float64).mean().row(0)
        if None in means or means[0] >= means[1] + LEARNT:
            return ""
        return f"our model has not learnt the task: accuracy {means[0]:.3f}, most frequent class {means[1]:.3f}"


def is_task(text: str, wanted: Spec | None) -> bool:
    """Whether a task is the one asked for, also as tables call it, with at least the settings asked for."""
    found = parse(text)
    if wanted is None or found.name not in (wanted.name, shorten_names(wanted.name, [wanted.name])):
        return False
    return wanted.settings.items() <= found.settings.items()


def is_model(text: str, wanted: Sequence[Spec]) -> bool:
    """Whether a model is one of those asked for; what it doesn't say is as its kind has it by default."""
    name, settings = parse(text).name, _settings(text)
    return any(name == spec.name and spec.settings.items() <= settings.items() for spec in wanted)


@lru_cache(maxsize=256)
def _settings(text: str) -> dict[str, str]:
    """All settings of a model as they would be written; of a checkpoint folder, none are known."""
    try:
        built = MODELS.make(text)
    except UsageError:
        return {}
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in built}


def _fits(row: Mapping[str, Any], place: PrintedPlace) -> bool:
    """Whether a row is about the task and the model that a printed number is about."""
    named = {name: row[name] for name in place.quantity.by}
    task, model = named.get("task"), named.get("model", named.get("family"))
    return (task is None or is_task(task, place.task)) and (model is None or is_model(model, place.models))


def _cell(row: Mapping[str, Any], quantity: PrintedQuantity) -> tuple[Any, ...]:
    return tuple(row[name] for name in CELL if name in quantity.by)


def _one(rows: list[Mapping[str, Any]], quantity: PrintedQuantity, folder: Path) -> list[Mapping[str, Any]]:
    """One row, or one per seed; of several settings the furthest, where the quantity says so."""
    if quantity.furthest:
        return [max(rows, key=lambda row: _float(row[quantity.furthest]))]
    if len(rows) > 1 and "seed" not in rows[0]:
        raise ExegeteError(f"{len(rows)} rows of {folder}, table {quantity.table}, are one printed number: say which")
    return rows


def _ours(rows: list[Mapping[str, Any]], quantity: PrintedQuantity) -> Ours | None:
    """The number with its interval: the table's own, a t-interval over seeds, or the exact one of a share of texts.

    Without any of them it is the number alone.
    """
    for name in filter(None, (quantity.value, quantity.low, quantity.high)):
        if name not in rows[0]:
            raise unknown(f"column of table {quantity.table}", name, rows[0])
    values = [value for row in rows if not math.isnan(value := _float(row[quantity.value]))]
    if not values:
        return None
    interval = t_interval(torch.tensor(values, dtype=torch.float64))
    bounds = [interval.low, interval.high]
    if quantity.low:
        bounds = [_float(rows[0][name]) for name in (quantity.low, quantity.high)]
    elif quantity.share and len(values) == 1 and (texts := _texts(rows[0])):
        bounds = list(clopper_pearson(round(values[0] * texts), texts))
    bounds = [interval.mean if math.isnan(bound) else bound for bound in bounds]
    low, high = sorted(quantity.scale * bound for bound in bounds)
    return Ours(quantity.scale * interval.mean, low, high)


def _texts(row: Mapping[str, Any]) -> int:
    """The texts that a share of ours is of: those of one training, for all saw the same; 0 if it isn't told."""
    return (_whole(row.get("n") or row.get("texts")) or 0) // (_whole(row.get("seeds")) or 1)


def _doubt(row: Mapping[str, Any], quantity: PrintedQuantity) -> str:
    """Why a row of ours is not worth a verdict: what it must reach it doesn't, or chance would do as much."""
    for name, least in quantity.least.items():
        if (value := _float(row[name])) < least:
            return f"our {name} is only {value:.3f}: there is nothing to judge"
    p = _float(row[quantity.p]) if quantity.p else 0.0
    return f"p = {p:.2g} over {row.get('n')} trainings" if p > SIGNIFICANT else ""


def _reference(row: Mapping[str, Any], quantity: PrintedQuantity) -> float | None:
    if not isinstance(quantity.reference, str):
        return quantity.reference
    value = _float(row[quantity.reference])
    return None if math.isnan(value) else quantity.scale * value


def _float(text: str | None) -> float:
    return float(text) if text else math.nan


def _whole(text: str | None) -> int | None:
    return int(float(text)) if text else None


def sources_of(paper: Paper, table: str, folder: Path) -> Iterator[KeptTables]:
    """The studies of a paper's table that are in a folder."""
    for name in dict.fromkeys(source.study for source in paper.tables[table].sources):
        if (folder / name).is_dir():
            yield KeptTables(name, folder / name)
