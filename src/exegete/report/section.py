"""Section: what a report says, before anybody decides how it looks."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from exegete.report.columns import Column, count, decimal, guess_columns, interval, number, outcome_label, text, verdict
from exegete.report.heatmap import HeatMap

if TYPE_CHECKING:  # heavy, and an explanation draws no chart
    from altair.typing import ChartType

    from exegete.report.drawing import Drawing


@dataclass(frozen=True)
class Note:
    """Shown beside a question's numbers in a report."""

    formula: str
    misleads: str
    page: str  # below docs/
    title: str  # of that page


Outcome = Literal["holds", "fails", "hangs on", "cannot tell", "not testable"]
ON_A_PAGE = ("settled_by", "of", "section", "title")  # fields of a verdict that files and `--json` don't have


@dataclass(frozen=True)
class Table:
    """A frame with a title, a caption, and the columns to show; without columns, all of them, formatted by type."""

    title: str
    frame: pl.DataFrame
    caption: str = ""
    columns: Sequence[Column] = ()

    @property
    def shown(self) -> tuple[Column, ...]:
        """The columns that a reader sees."""
        told = (column for column in self.columns if not column.varies or self.frame[column.of[0]].n_unique() > 1)
        return tuple(told) if self.columns else guess_columns(self.frame)

    @property
    def narrow(self) -> "Table":
        """Without the columns that a terminal has no room for."""
        return replace(self, columns=[column for column in self.columns if not column.wide])

    def cells(self) -> list[list[str]]:
        """What a reader sees, row by row."""
        return [[column.cell(row) for column in self.shown] for row in self.frame.iter_rows(named=True)]


@dataclass(frozen=True)
class Figure:
    """A chart with a title and a caption, and its numbers for those who can't see it (without: those it carries)."""

    title: str
    chart: "ChartType | Drawing"
    caption: str = ""
    data: pl.DataFrame | None = None


@dataclass(frozen=True)
class Section:
    """One question's part: text first, then figures, tables and examples; further parts of the same question below."""

    title: str
    anchor: str = ""
    paragraphs: Sequence[str] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    examples: Sequence[HeatMap] = ()
    note: Note | None = None
    parts: Sequence["Section"] = ()


@dataclass(frozen=True)
class Variant:
    """One specification of a test that is asked in several ways, and what it found."""

    name: str
    statistic: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    verdict: Outcome = "not testable"
    void: str = ""  # why it doesn't count


@dataclass(frozen=True)
class Verdict:
    """One line of the scorecard: a test of a model on a task, what it found, and whether attention passes it."""

    name: str
    task: str = ""
    model: str = ""
    question: str = ""
    statistic: float | None = None
    n: int = 0
    interval: tuple[float | None, float | None] = (None, None)
    level: float = 0.95  # of the interval, corrected for the number of tests
    chance: float | None = None  # what a ranking that knows nothing would score
    criterion: str = ""
    verdict: Outcome = "not testable"
    about: str = ""  # this checkpoint, or this training recipe
    paper: str = ""
    against: str = ""  # what attention is compared with
    doubt: str = ""  # why nothing can be told, whatever the numbers
    settle: str = ""  # how many texts or seeds would settle it
    votes: bool = True  # whether it decides the answer for this goal
    threshold: float | None = None  # what the interval is compared with
    partly: float | None = None  # a test that fails, but lies above this, fails only partly
    variants: tuple[Variant, ...] = ()  # by specification; the numbers above are those of the one that decides
    settled_by: Literal["", "texts", "seeds"] = ""  # more of which would settle it, where it can't be told
    of: str = ""  # on a page: the task and the model, where there are several
    section: str = ""  # on a page: the anchor of the section that tells more
    title: str = ""  # on a page: the test in words

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The interval, where there is one."""
        low, high = self.interval
        return None if low is None or high is None else (low, high)

    def to_json(self) -> dict[str, Any]:
        """What was found, without what only a page shows."""
        return {name: value for name, value in asdict(self).items() if name not in ON_A_PAGE}

    @property
    def label(self) -> str:
        """The test in words.

        >>> Verdict("hard_to_fake").label, Verdict("ranks", title="orders words by effect (Γ)").label
        ('hard to fake', 'orders words by effect (Γ)')
        """
        return self.title or self.name.replace("_", " ")

    @property
    def outcome(self) -> str:
        """The verdict as people read it.

        >>> Verdict("ranks", verdict="cannot tell", settled_by="texts").outcome
        'inconclusive (texts)'
        """
        return outcome_label(self.verdict, self.settled_by)

    @property
    def needs(self) -> str:
        """What the whole interval must reach.

        >>> Verdict("ranks", threshold=0.7).needs
        '> 0.70'
        """
        return "" if self.threshold is None else f"> {decimal(self.threshold, 2)}"


@dataclass(frozen=True)
class Report:
    """A question and its answer, then everything that supports it."""

    title: str
    question: str
    answer: str
    verdicts: Sequence[Verdict] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    sections: Sequence[Section] = ()
    cite: str = ""
    goal: str = ""
    user: str = ""
    untested: Sequence[str] = ()
    grade: str = ""  # with which the answer begins, of a single model
    first: Figure | None = None  # the one figure of the answer
    findings: Sequence[str] = ()  # what informs, in paragraphs
    comparison: Section | None = None  # of several models, after the answer
    appendix: Sequence[Section] = ()  # what is no test: data and models


def scorecard(verdicts: Sequence[Verdict]) -> Table:
    """The verdicts as a table: each with its effect, interval, chance level and criterion; its frame has all else."""
    columns = (
        text("label", "test"),
        verdict("verdict", settled_by="settled_by"),
        number("statistic", "stat."),
        interval("low", "high", "interval"),
        number("chance"),
        count("n"),
        text("criterion"),
        text("paper"),
    )
    caption = "Each test with its effect, its chance level and its criterion, corrected for the number of tests."
    return Table("Scorecard", _frame(verdicts), caption, columns)


def _frame(verdicts: Sequence[Verdict]) -> pl.DataFrame:
    """Everything that is known of the verdicts."""
    low, high = ([v.interval[side] for v in verdicts] for side in (0, 1))
    of = [f" · {v.of}" if v.of else "" for v in verdicts]
    names, labels = (
        [f"{getattr(v, field)}{said}" for v, said in zip(verdicts, of, strict=True)] for field in ("name", "label")
    )
    kinds = {
        pl.String: (
            "verdict",
            "question",
            "about",
            "against",
            "doubt",
            "settle",
            "settled_by",
            "criterion",
            "needs",
            "paper",
        ),
        pl.Float64: ("statistic", "threshold", "chance", "level"),
        pl.Int64: ("n",),
        pl.Boolean: ("votes",),
    }
    found = {"test": pl.Series(names, dtype=pl.String), "label": pl.Series(labels, dtype=pl.String)}
    found |= {n: pl.Series([getattr(v, n) for v in verdicts], dtype=kind) for kind, ns in kinds.items() for n in ns}
    found["n"] = pl.Series([v.n or None for v in verdicts], dtype=pl.Int64)  # where nothing was counted, no number
    bounds = {"low": pl.Series(low, dtype=pl.Float64), "high": pl.Series(high, dtype=pl.Float64)}
    return pl.DataFrame(found | bounds)


def anchor(title: str) -> str:
    """A title as an address within the page.

    >>> anchor("Does τ agree? (J&W)")
    'does-agree-j-w'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
