"""Paper: what it claims, table by table, and where each printed word and quantity stands in what our studies write.

A printed number is found again in three steps. Its dataset, model, attention, projection and class are *parts*: each
narrows the task, the model or the rows of a table of ours. Its quantity says which table and which column. The table of
the paper says in which studies to look, the first that has it first.
"""

import tomllib
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from exegete.plugins import UsageError, parse
from exegete.wings.papers.catalogue import PAPERS
from exegete.wings.papers.published import KEYS, PAPERS_FOLDER

PARTS = ("dataset", "model", "attention", "projection", "class")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class NamePart(_Strict):
    """What one printed word stands for; one that can't be had says why, and what to take instead."""

    shows: str = ""  # a name for readers, where the printed one is none
    task: str | None = None  # a task of ours, with the settings that matter
    model: tuple[str, ...] = ()  # models of ours, one per kind of task; what is not set is as they have it by default
    settings: dict[str, str] = Field(default_factory=dict)  # more settings of the model
    where: dict[str, str] = Field(default_factory=dict)  # columns of our table and their values
    beside: str | None = None  # the class whose number this one is compared with, in the paper and in ours
    reference: float | None = None  # another reference than the quantity's
    tolerance: float | None = Field(None, ge=0)  # a wider one than the quantity's
    stand_in: bool = False  # other data than the paper's: only the direction can be judged
    differs: str = ""  # what differs from the paper, in a sentence
    impossible: str = ""  # why it can't be had here
    instead: str = ""  # the stand-in used, or the name to use

    @model_validator(mode="after")
    def _readable(self) -> "NamePart":
        for spec in filter(None, (self.task, *self.model)):
            parse(spec)
        return self


class PrintedQuantity(_Strict):
    """Where a printed quantity stands in a run, and how near is near enough."""

    shows: str
    table: str = ""  # of the run: tables/TABLE.csv
    value: str = "mean"  # columns
    low: str = ""
    high: str = ""
    where: dict[str, str] = Field(default_factory=dict)
    by: tuple[Literal["task", "model", "family"], ...] = ("task", "model")  # columns that name the cell
    furthest: str = ""  # of several rows, the one with the largest value in this column
    least: dict[str, float] = Field(default_factory=dict)  # columns and what ours must reach to be worth a verdict
    p: str = ""  # the column of a p over trainings: above 0.05 ours settles nothing
    scale: float = 1.0  # ours times this is in the paper's unit
    share: bool = False  # of texts: where the table has no interval for it, Clopper & Pearson's
    reference: float | str | None = None  # the level that it is about: a number, or a column of our table
    tolerance: float = Field(0.0, ge=0)  # what another training may move the printed number by
    resolution: float | None = None  # half an interval wider than this settles nothing
    std: Literal["texts", "runs"] = "texts"  # what the printed deviation is over
    not_compared: str = ""  # why nothing of ours stands beside it

    @model_validator(mode="after")
    def _has_a_place(self) -> "PrintedQuantity":
        if not self.table and not self.not_compared:
            raise ValueError("say its table, or why it is not_compared")
        if bool(self.low) != bool(self.high):
            raise ValueError("low and high go together")
        return self


class Quick(_Strict):
    """The cheapest part of a study that still says something."""

    tasks: tuple[str, ...] = ()
    models: tuple[str, ...] = ()


class StudySource(_Strict):
    """A study of ours, or some of its cells."""

    study: str
    tasks: tuple[str, ...] = ()  # patterns, as of `exegete run`
    models: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    quick: Quick = Quick()
    run: bool = True  # otherwise it is read where its results are kept, and never run for this paper


class PaperTable(_Strict):
    """A table or a figure of the paper."""

    shows: str
    sources: tuple[StudySource, ...] = ()
    figures: tuple[str, ...] = ()  # of our studies: figures/NAME.svg
    no_effect: tuple[str, ...] = ()  # quantities of which the paper's claim is that nothing changes
    impossible: str = ""
    not_compared: str = ""


class Reason(_Strict):
    """A reason why rows deviate, and where it was tested: the same quantity where that setting is another.

    What it is worth is not said here but judged, as the rows are (exegete.wings.papers.reasons).
    """

    rows: dict[str, str]  # printed words of the rows, * for anything: those that deviate among them are meant
    because: str  # what is another there, for the reader
    control: bool = False  # the paper doesn't have it so either: it shows what can be reached, and is no reason
    study: str
    task: str | None = None  # the task there, with the settings that matter; the rows' own unless given
    settings: dict[str, str] = Field(default_factory=dict)  # of the model there, besides the rows'
    where: dict[str, str] = Field(default_factory=dict)  # columns of its table and their values, besides the rows'
    table: str = ""  # another than the quantity's: then `where` stands alone
    value: str = ""  # another column than the quantity's
    low: str = ""
    high: str = ""
    scale: float | None = None  # of that column, where it has another unit

    @model_validator(mode="after")
    def _about_printed_words(self) -> "Reason":
        if unknown := self.rows.keys() - set(KEYS):
            raise ValueError(f"rows are named by {', '.join(KEYS)}, not by {min(unknown)}")
        return self


class Paper(_Strict):
    """A paper as its TOML file tells it."""

    name: str
    title: str
    authors: str
    year: int
    venue: str = ""
    claim: str
    differs: tuple[str, ...] = ()
    tables: dict[str, PaperTable]
    datasets: dict[str, NamePart]
    models: dict[str, NamePart] = Field(default_factory=dict)
    attentions: dict[str, NamePart] = Field(default_factory=dict)
    projections: dict[str, NamePart] = Field(default_factory=dict)
    classes: dict[str, NamePart] = Field(default_factory=dict)
    quantities: dict[str, PrintedQuantity]
    explained: tuple[Reason, ...] = ()

    def parts(self, kind: str) -> dict[str, NamePart]:
        """All printed words of one of PARTS."""
        found: dict[str, NamePart] = getattr(self, "classes" if kind == "class" else f"{kind}s")
        return found


def load_paper(name: str) -> Paper:
    """A paper by name."""
    _ = PAPERS[name]  # an unknown name is one sentence
    return read_paper(name, (PAPERS_FOLDER / f"{name}.toml").read_text(encoding="utf8"))


def read_paper(name: str, text: str) -> Paper:
    """A paper from its TOML; a wrong key or value is one sentence."""
    try:
        settings = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name}.toml is not TOML: {error}") from None
    try:
        return Paper.model_validate({"name": name} | settings)
    except ValidationError as error:
        raise UsageError(f"paper {name}.toml: {_sentence(error)}") from None


def _sentence(error: ValidationError) -> str:
    """The first thing that is wrong, for a person."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"'{where}' is no key of a paper's file"
    if first["type"] == "missing":
        return f"'{where}' is missing"
    return f"{where}: {first['msg'].removeprefix('Value error, ')} (got {first['input']!r})"
