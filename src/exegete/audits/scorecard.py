"""Audit: a scorecard of tests with published criteria, and the answer in plain words."""

import tomllib
from dataclasses import asdict, dataclass, field
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import polars as pl
from pydantic import BaseModel, ConfigDict, field_validator

from exegete.base.errors import ExegeteError, UsageError
from exegete.base.names import validate

Verdict = Literal["holds", "fails", "cannot tell", "not testable"]
Goal = Literal["faithful", "plausible", "sanity"]
SEEDS_FOR_A_RECIPE = 5  # fewer don't settle a claim about a way of training (PROTOCOLS 16)


class Criterion(BaseModel):
    """One test's question, margin and source."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    question: str
    margin: float
    criterion: str  # {margin} stands for the margin
    paper: str

    @field_validator("criterion")
    @classmethod
    def _names_only_the_margin(cls, text: str) -> str:
        try:
            text.format(margin=0.0)
        except (KeyError, IndexError, ValueError):
            raise ValueError("a criterion may name {margin} in braces, and nothing else") from None
        return text

    def __str__(self) -> str:
        return self.criterion.format(margin=self.margin)


class Criteria(BaseModel):
    """All criteria, with the version that a result must quote."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    version: int
    agrees: Criterion
    agrees_beyond_ties: Criterion
    beats_chance: Criterion
    beats_random: Criterion
    faithful: Criterion
    faithful_by_size: Criterion
    sufficient: Criterion
    ranks_decisions: Criterion
    plausible: Criterion
    known_answer: Criterion
    finds_facts: Criterion
    used: Criterion
    unique: Criterion
    needed: Criterion
    stable: Criterion
    informative: Criterion
    hard_to_fake: Criterion


@dataclass(frozen=True)
class Test:
    """One line of the scorecard."""

    name: str
    task: str
    model: str
    question: str
    statistic: float | None
    n: int
    interval: tuple[float | None, float | None]
    level: float  # of the interval, corrected for the number of tests
    chance: float | None  # what a ranking that knows nothing would score
    criterion: str
    verdict: Verdict
    about: str  # this checkpoint, or this training recipe
    paper: str
    against: str = ""  # what attention is compared with
    doubt: str = ""  # why nothing can be told, whatever the numbers
    settle: str = ""  # how many texts or seeds would settle it
    votes: bool = True  # whether it decides the answer for this goal
    threshold: float | None = None  # what the interval is compared with


@dataclass(frozen=True)
class Audit:
    """The scorecard, the answer, and where the run is."""

    answer: str
    tests: tuple[Test, ...]
    criteria_version: int
    goal: Goal = "faithful"
    user: str = ""  # whom the explanation is for, and what for
    untested: tuple[str, ...] = ()  # what was not tested, and why: a sentence each
    run: Path | None = None
    frame: pl.DataFrame = field(
        default_factory=pl.DataFrame, repr=False
    )  # agreement's summary, or else the first one's

    @property
    def scorecard(self) -> pl.DataFrame:
        """A row per test: statistic, n, interval, chance, verdict and criterion."""
        rows = [asdict(test) | dict(zip(("low", "high"), test.interval, strict=True)) for test in self.tests]
        order = (
            "task", "model", "name", "verdict", "statistic", "low", "high", "level", "chance", "threshold", "n",
            "against", "votes", "about", "doubt", "settle", "criterion", "paper",
        )  # fmt: skip
        return pl.DataFrame(rows, infer_schema_length=None).select(order) if rows else pl.DataFrame()

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "answer": self.answer,
            "goal": self.goal,
            "user": self.user,
            "untested": list(self.untested),
            "criteria_version": self.criteria_version,
            "run": None if self.run is None else str(self.run),
            "tests": [asdict(test) for test in self.tests],
        }

    def to_pandas(self) -> Any:
        """The summary as a pandas frame (extra `pandas`)."""
        return self.frame.to_pandas()

    def save(self, path: str | Path) -> None:
        """Write the summary as CSV."""
        from exegete.runs.tables import write_csv

        write_csv(Path(path), self.frame)

    def _repr_html_(self) -> str:
        shown = pl.DataFrame([asdict(test) for test in self.tests]).drop("question", "paper")
        return f"<p>{escape(self.answer)}</p>{shown._repr_html_()}"


def load_criteria(path: Path | None = None) -> Criteria:
    """The built-in criteria, or the user's own: what a file doesn't name stays as it is, but for the version."""
    built_in = tomllib.loads((resources.files("exegete.audits") / "criteria.toml").read_text(encoding="utf8"))
    given = built_in if path is None else _read(path)
    if "version" not in given:
        raise UsageError(f"{path} needs a `version` of its own (a number): verdicts quote it")
    merged = built_in | {name: _over(built_in.get(name), said) for name, said in given.items()}
    criteria: Criteria = validate(Criteria, merged, "criteria")
    return criteria


def _over(built_in: Any, said: Any) -> Any:
    """A test's own settings over the built-in ones."""
    return built_in | said if isinstance(built_in, dict) and isinstance(said, dict) else said


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf8"))
    except FileNotFoundError:
        raise ExegeteError(f"there is no criteria file {path}") from None
    except OSError as error:
        raise ExegeteError(f"{path} can't be read as criteria ({error.strerror}): give a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
