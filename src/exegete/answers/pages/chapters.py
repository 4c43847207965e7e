"""Chapters: one for every experiment of a run, in the order of the scorecard, each with its method and its examples."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

from exegete.answers.pages.texts import HeatMaps
from exegete.answers.pages.verdicts import experiment_of
from exegete.base.errors import ExegeteError
from exegete.experiments.catalogue import module_beside
from exegete.experiments.common.section import QuestionResult, Sections
from exegete.experiments.tests import note_of
from exegete.report.heatmap import HeatMap
from exegete.report.section import Section, Verdict
from exegete.runs.study import Study

PLAIN = "exegete.experiments.common.plain_section"  # how an experiment without a section of its own is told
NO_TEXTS = (
    "This run keeps no scores of attention and of another method for the same texts, so there are no texts to show "
    "where the two disagree: add agreement or faithfulness to its study."
)


def results_in(run: Path, study: Study) -> Iterator[tuple[Sections, QuestionResult]]:
    """Every experiment that left something in a run, with what tells it to a person."""
    for name, built in study.built_experiments().items():
        if (run / "tables" / f"{name}.parquet").is_file():
            told: Any = import_module(module_beside(name, "section") or PLAIN)
            yield told, QuestionResult(run, name, built)


@contextmanager
def of_this_version(run: Path) -> Iterator[None]:
    """Tables that lack a column were written by another version, whose report this can't be."""
    try:
        yield
    except pl.exceptions.ColumnNotFoundError as error:
        missing = str(error).splitlines()[0]
        raise ExegeteError(
            f"the tables in {run} were made by another version of exegete ({missing}): run its study again"
        ) from None


def chapters(run: Path, study: Study, tests: Sequence[Verdict], texts: HeatMaps | None) -> Iterator[Section]:
    """The experiments that tests rest on, as the scorecard names them, then the others, as the study does."""
    order = [experiment_of(test.name) for test in tests]
    found = sorted(results_in(run, study), key=lambda pair: _rank(pair[1].name, order))
    for told, each in found:
        with of_this_version(run):
            yield _chapter(told, each, texts)
    if texts is None:
        yield Section("Telling texts", "telling-texts", [NO_TEXTS])


def _rank(name: str, order: Sequence[str]) -> int:
    return order.index(name) if name in order else len(order)


def _chapter(told: Sections, found: QuestionResult, texts: HeatMaps | None) -> Section:
    """All sections of an experiment under the first one's title."""
    first, *rest = told.sections(found)
    examples = list(_examples(told, found, texts))
    return replace(first, anchor=found.name, note=note_of(found.name), parts=[*rest, *examples])


def _examples(told: Sections, found: QuestionResult, texts: HeatMaps | None) -> Iterator[Section]:
    """Texts that show what was found: the experiment's own, and those where attention and saliency disagree."""
    if hasattr(told, "examples"):
        sentence, maps = told.examples(found)
        yield from _part("The same prediction under other weights", sentence, maps)
    if texts is not None and texts.experiment == found.name:
        yield from _part(texts.title, texts.sentence, texts.maps)


def _part(title: str, sentence: str, maps: Sequence[HeatMap]) -> Iterator[Section]:
    if maps:
        yield Section(title, "", [sentence], examples=maps)
