"""Annotated: what the answers say (Vashishth et al. 2019, section 4.4 and figure 5).

Per condition: is the prediction correct, and are the highlighted words relevant, as a 2 × 2 table in per cent; the
share of relevant ones with an interval; the difference of the conditions; and Cohen's κ of every two annotators. Tables
are of what is answered, with n. The rows of all annotators together count every answer, as the paper's do (its per
cents are of 2 × 100 answers); in their intervals two answers on one item are one observation.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, get_args

import polars as pl
import torch

from exegete.plugins import ExegeteError, UsageError, kappa_interval, or_none, wilson
from exegete.wings.annotation.sheets import ItemKey, Sheet, SheetCondition, load_key, read_sheets

ALL = "(all)"  # in the place of an annotator's name: the answers of all together
CONDITIONS = get_args(SheetCondition)
CELLS = {
    "correct_relevant": (True, True),
    "correct_not_relevant": (True, False),
    "wrong_relevant": (False, True),
    "wrong_not_relevant": (False, False),
}
_ROWS = {
    "annotator": pl.String,
    "item": pl.String,
    "example": pl.Int64,
    "condition": pl.String,
    "gold": pl.String,
    "predicted": pl.String,
    "correct": pl.Boolean,
    "original": pl.String,
    "words": pl.String,
    "relevant": pl.Boolean,
}
_CROSSED: dict[str, type[pl.DataType]] = {"annotator": pl.String, "condition": pl.String, "n": pl.Int64}
_CROSSED |= dict.fromkeys(CELLS, pl.Float64) | dict.fromkeys((f"{cell}_n" for cell in CELLS), pl.Int64)
_SHARE = {"annotator": pl.String, "of": pl.String, "items": pl.Int64, "n": pl.Int64}
_SHARE |= dict.fromkeys(("share", "low", "high"), pl.Float64)
_KAPPA = {"first": pl.String, "second": pl.String, "n": pl.Int64}
_KAPPA |= dict.fromkeys(("observed", "expected", "kappa", "low", "high"), pl.Float64)


@dataclass(frozen=True)
class Annotated:
    """All answers beside the key: a row per annotator and item, `relevant` null where there is no answer yet."""

    key: ItemKey
    annotators: tuple[str, ...]
    frame: pl.DataFrame

    @property
    def missing(self) -> dict[str, int]:
        """Items without an answer, by annotator."""
        open_ = self.frame.filter(pl.col("relevant").is_null())
        return {name: open_.filter(pl.col("annotator") == name).height for name in self.annotators}

    @property
    def unfinished(self) -> str:
        """Who has not answered everything, and how to go on; empty if everybody has."""
        items = len(self.key.secrets)
        people = [
            f"{name} has answered {items - count} of {items} items ({count} missing)"
            for name, count in self.missing.items()
            if count
        ]
        how = (
            "open the page again under the same name, or load the saved answers there, or fill in the rest of the sheet"
        )
        return f"{', '.join(people)}: to go on, {how}" if people else ""

    @property
    def notes(self) -> list[str]:
        """What must be known before the tables are read."""
        open_ = [f"{self.unfinished}; these tables are of what is answered"] if self.unfinished else []
        undefined = [
            f"κ of {row['first']} and {row['second']} is undefined: "
            + ("they have no item in common" if not row["n"] else "both gave the same answer to all of their items")
            for row in self.agreement.filter(pl.col("kappa").is_null()).iter_rows(named=True)
        ]
        return open_ + undefined

    @property
    def crossed(self) -> pl.DataFrame:
        """The 2 × 2 tables: how many answers, and which part of its condition's, every cell has."""
        rows = [
            {"annotator": name, "condition": condition, **_cells(part.filter(pl.col("condition") == condition))}
            for name, part in self._groups()
            for condition in CONDITIONS
        ]
        return pl.DataFrame(rows, _CROSSED)

    @property
    def relevant(self) -> pl.DataFrame:
        """The share of relevant answers in each condition, and the difference, each with its 95 % interval."""
        return pl.DataFrame([row for name, part in self._groups() for row in _shares(name, part)], _SHARE)

    @property
    def agreement(self) -> pl.DataFrame:
        """κ = (p_o − p_e) / (1 − p_e) of every two annotators over the items that both answered."""
        return pl.DataFrame([self._kappa(*two) for two in combinations(self.annotators, 2)], _KAPPA)

    def to_json(self) -> dict[str, Any]:
        """All of it; what is undefined is null."""
        items = len(self.key.secrets)
        people = [
            {"annotator": name, "answered": items - count, "missing": count} for name, count in self.missing.items()
        ]
        tables = {"crossed": self.crossed, "relevant": self.relevant, "agreement": self.agreement}
        return {
            "key": self.key.id,
            **self.key.facts,
            "items": items,
            "annotators": people,
            **{name: frame.to_dicts() for name, frame in tables.items()},
            "notes": self.notes,
        }

    def _groups(self) -> Iterator[tuple[str, pl.DataFrame]]:
        """The answers of every annotator, then of all together."""
        answered = self.frame.drop_nulls("relevant")
        for name in self.annotators:
            yield name, answered.filter(pl.col("annotator") == name)
        if len(self.annotators) > 1:
            yield ALL, answered

    def _kappa(self, first: str, second: str) -> dict[str, Any]:
        one, two = (self.frame.filter(pl.col("annotator") == name).drop_nulls("relevant") for name in (first, second))
        both = one.join(two, on="item", maintain_order="left")
        a, b = (torch.tensor(both[column].to_list(), dtype=torch.int64) for column in ("relevant", "relevant_right"))
        found = kappa_interval(a, b)
        p, q = a.double().mean().item(), b.double().mean().item()
        return {
            "first": first,
            "second": second,
            "n": found.n,
            "observed": or_none((a == b).double().mean().item()),
            "expected": or_none(p * q + (1 - p) * (1 - q)),
            "kappa": or_none(found.mean),
            "low": or_none(found.low),
            "high": or_none(found.high),
        }


def read_answers(folder: Path, paths: Sequence[Path], strict: bool = False) -> Annotated:
    """Filled-in sheets beside their key; an unfinished one is an error only if `strict`."""
    if not paths:
        raise UsageError("name at least one sheet: the filled-in CSV, or the answers that the page saved")
    key = load_key(folder)
    found = join_answers(key, read_sheets(paths, key))
    if strict and found.unfinished:
        raise ExegeteError(found.unfinished)
    return found


def join_answers(key: ItemKey, sheets: Sequence[Sheet]) -> Annotated:
    """Answers beside their key."""
    rows = [
        {
            "annotator": sheet.annotator,
            "item": item,
            **secret._asdict(),
            "words": "; ".join(secret.words),
            "relevant": sheet.answers.get(item),
        }
        for sheet in sheets
        for item, secret in key.secrets.items()
    ]
    return Annotated(key, tuple(sheet.annotator for sheet in sheets), pl.DataFrame(rows, _ROWS))


def _cells(part: pl.DataFrame) -> dict[str, Any]:
    n = part.height
    counts = {
        cell: part.filter((pl.col("correct") == correct) & (pl.col("relevant") == relevant)).height
        for cell, (correct, relevant) in CELLS.items()
    }
    shares = {cell: count / n if n else None for cell, count in counts.items()}
    return {"n": n, **shares, **{f"{cell}_n": count for cell, count in counts.items()}}


def _shares(name: str, part: pl.DataFrame) -> list[dict[str, Any]]:
    rows = [{"annotator": name, "of": c, **_share(part.filter(pl.col("condition") == c))} for c in CONDITIONS]
    return [*rows, {"annotator": name, "of": "difference", **_difference(*rows)}]


def _share(part: pl.DataFrame) -> dict[str, Any]:
    """The share of yes with Wilson's interval, all answers on an item counting as one observation.

    With m_i answers on item i these are (Σ m_i)² / Σ m_i² observations (Kish 1965), as if annotators always agreed: the
    interval is not too narrow, however much they do.
    """
    of = part.group_by("item").len()["len"].to_list()
    if not of:
        return {"items": 0, "n": 0, "share": None, "low": None, "high": None}
    share = int(part["relevant"].sum()) / part.height
    low, high = wilson(share, sum(of) ** 2 // sum(m * m for m in of))
    return {"items": len(of), "n": part.height, "share": share, "low": low, "high": high}


def _difference(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """p₁ − p₂ with Newcombe's interval (1998, method 10), from the intervals [l, u] of the two shares.

    d − √((p₁ − l₁)² + (u₂ − p₂)²)  to  d + √((u₁ − p₁)² + (p₂ − l₂)²)
    """
    counted = {"items": first["items"] + second["items"], "n": first["n"] + second["n"]}
    if not (first["n"] and second["n"]):
        return counted | {"share": None, "low": None, "high": None}
    d = first["share"] - second["share"]
    below = math.hypot(first["share"] - first["low"], second["high"] - second["share"])
    above = math.hypot(first["high"] - first["share"], second["share"] - second["low"])
    return counted | {"share": d, "low": d - below, "high": d + above}
