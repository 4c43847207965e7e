"""Texts of a run: in a worker, those texts with what attention and the best method say of them, and its scorecard.

Every number is the run's own, or the report's: texts and scores are those of its stages, τ is that of the telling
texts, the scorecard is the report's card.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from exegete.plugins import (
    SIGNS,
    Answerer,
    Audit,
    ExegeteError,
    Reply,
    ScoredTexts,
    Tell,
    UsageError,
    Verdict,
    anchor,
    best_methods,
    card,
    for_reader,
    judge_run,
    method_label,
    model_label,
    model_labels,
    names_in,
    of_this_version,
    over_words,
    plain,
    read_manifest,
    read_parquet,
    read_shards,
    shorten_names,
    shorten_paths,
    study_of,
    task_and_model,
    task_labels,
    text_scores,
    verdict_places,
    verdicts,
)
from exegete.wings.explorer.worker_answers import without_paths

ADVERSARY, OWN = "adversary_search", "model"
UNSCORED = (
    "this run keeps no scores of attention and of another method for the same texts: add agreement or faithfulness to "
    "its study"
)
NUMBERS = ("tau", "jsd", "confidence", "error")


class JudgedRun:
    """A complete run, its study, and what it was judged to say."""

    def __init__(self, run: Path, place: Path) -> None:
        self.run, self.place = run, place
        self.cells: list[dict[str, Any]] = read_manifest(run)["cells"]
        self.study = study_of(run)
        self.tables = [
            name for name in self.study.built_experiments() if (run / "tables" / f"{name}.parquet").is_file()
        ]
        with of_this_version(run):
            self.audit: Audit | None = for_reader(judge_run(self.study, run)) if self.tables else None

    @property
    def tests(self) -> Sequence[Verdict]:
        """The lines of the scorecard, as they were judged."""
        return () if self.audit is None else self.audit.tests

    def about(self) -> Reply:
        """What can be asked for."""
        title = shorten_paths(
            shorten_names(self.study.title or self.study.name, names_in(self.run)),
            (*self.study.tasks, *self.study.models),
        )
        return {"name": title, "split": self.study.split, "cells": self._labels()}

    def card(self) -> Reply:
        """The scorecard as a page shows it, and as numbers."""
        if self.audit is None or not self.audit.tests:
            raise UsageError("this run has no experiment that the audit judges: run `exegete audit` on its model")
        lines = verdicts(self.audit, self.tables)
        labels = verdict_places(self.audit.tests)
        tests = [
            test.to_json()
            | {
                "name": line.name,
                "of": labels[task_and_model(test)] or model_label(test.model),
                "sign": SIGNS[test.verdict],
                "label": line.label,
                "outcome": line.outcome,
                "chapter": anchor(line.section) if line.section else None,
            }
            for test, line in zip(self.audit.tests, lines, strict=True)
        ]
        return {
            "name": self.about()["name"],
            "answer": self.audit.answer,
            "untested": list(self.audit.untested),
            "tests": _finite(tests),
            "html": str(card(lines, "This run")),
        }

    def texts(self, number: int) -> Reply:
        """Write the texts of a model, and the words of all of them; where, and what is in them."""
        if number >= len(self.cells):
            raise UsageError(f"this run has {len(self.cells)} models, counted from 0: there is no {number}")
        cell = self.cells[number]
        if not cell.get("predict"):
            raise UsageError("this run keeps no predictions of its texts: its study was about whole translations")
        scored = text_scores(self.run, cell, self.study.split, self._best(cell))
        frame = self._texts(cell, scored)
        at = {name: self.place / f"{name}-{number}.parquet" for name in ("texts", "words")}
        frame.write_parquet(at["texts"])
        if scored is not None:
            mean_shares(scored.frame).write_parquet(at["words"])
        return {name: str(path) for name, path in at.items()} | {"cell": self._said(number, frame, scored)}

    def _best(self, cell: dict[str, Any]) -> str:
        """The method that attention was held against."""
        return best_methods(self.tests).get(plain(cell["task"], cell["model"]), "")

    def _labels(self) -> list[str]:
        tasks, models = (task_labels(c["task"] for c in self.cells), model_labels(c["model"] for c in self.cells))
        seeds = len({cell["seed"] for cell in self.cells}) > 1
        return [
            f"{models[cell['model']]} on {tasks[cell['task']]}" + (f", seed {cell['seed']}" if seeds else "")
            for cell in self.cells
        ]

    def _said(self, number: int, frame: pl.DataFrame, scored: ScoredTexts | None) -> Reply:
        return {
            "cell": number,
            "label": self._labels()[number],
            "texts": frame.height,
            "scored": int(frame["tau"].count()),
            "searched": int(frame["jsd"].count()),
            "method": None if scored is None else scored.method,
            "method_label": None if scored is None else method_label(scored.method),
            "said": UNSCORED if scored is None else "",
        }

    def _texts(self, cell: dict[str, Any], scored: ScoredTexts | None) -> pl.DataFrame:
        """One row per text: what was predicted, how surely, how wrongly, and where the two rankings part."""
        texts = read_parquet(read_shards(self.run / "stages" / cell["predict"]))
        labels = {label: place for place, label in enumerate(cell["data"].get("labels") or ())}
        gold = pl.col("gold").replace_strict(labels, default=None, return_dtype=pl.Int64)
        wrong = pl.col("gold") != pl.col("predicted")
        right = pl.col("probabilities").list.get(gold, null_on_oob=True)
        frame = texts.select(
            "example", "gold", "predicted", "n",
            text=pl.col("words").list.join(" "),
            wrong=wrong,
            confidence=pl.col("probabilities").list.max(),
            error=pl.coalesce(1 - right, wrong.cast(pl.Float64)),
        )  # fmt: skip
        return _joined(_joined(frame, _apart(scored)), self._searched(cell)).with_columns(
            pl.col(NUMBERS).cast(pl.Float64).fill_nan(None)
        )

    def _searched(self, cell: dict[str, Any]) -> pl.DataFrame:
        """The largest JSD of an adversary within the smallest ε, by text."""
        path = self.run / "tables" / f"{ADVERSARY}.parquet"
        if not path.is_file():
            return pl.DataFrame(schema={"example": pl.Int64, "jsd": pl.Float64})
        rows = pl.scan_parquet(path, glob=False).filter(
            *(pl.col(name) == cell[name] for name in ("task", "model", "seed")),
            pl.col("who") == OWN,
            pl.col("split") == self.study.split,
            pl.col("epsilon") == pl.col("epsilon").min(),
        )
        return rows.select("example", "jsd").collect()


def _finite(found: Any) -> Any:
    """JSON has no infinity, and an interval may have: what is not finite is nothing."""
    if isinstance(found, dict):
        return {name: _finite(value) for name, value in found.items()}
    if isinstance(found, list | tuple):
        return [_finite(value) for value in found]
    return None if isinstance(found, float) and not math.isfinite(found) else found


def _joined(frame: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    return frame.join(other, on="example", how="left", maintain_order="left")


def _apart(scored: ScoredTexts | None) -> pl.DataFrame:
    """τ, and the word that each of the two ranks first; nothing where nothing was scored."""
    if scored is None:
        kinds = {"example": pl.Int64, "tau": pl.Float64, "top_attention": pl.String, "top_other": pl.String}
        return pl.DataFrame(schema=kinds)

    def top(scores: str) -> pl.Expr:
        place = pl.col(scores).list.eval(pl.element().abs()).list.arg_max()
        return pl.col("words").list.get(place)

    return scored.frame.select("example", "tau", top_attention=top("attention"), top_other=top("other"))


def mean_shares(frame: pl.DataFrame) -> pl.DataFrame:
    """The mean share of every word by attention and by the other method, a row per word."""
    every = over_words(frame, ("attention", "other"))
    return every.pivot("method", index=["word", "count"], values="mean")


def prepare_run(tell: Tell, run: str, place: str) -> Answerer:
    """In a worker: a run, ready to answer."""
    del tell
    try:
        opened = JudgedRun(Path(run), Path(place))
    except ExegeteError as error:
        raise type(error)(without_paths(str(error))) from None

    whole = {"about": opened.about, "card": opened.card}

    def answer(name: str, arguments: dict[str, Any], tell: Tell) -> Reply:
        del tell
        try:
            return opened.texts(arguments["cell"]) if name == "texts" else whole[name]()
        except ExegeteError as error:
            raise type(error)(without_paths(str(error))) from None

    return answer
