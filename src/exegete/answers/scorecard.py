"""Audit: a scorecard of tests with published criteria, and the answer in plain words."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from exegete.answers.alternatives import Readable
from exegete.answers.context import Where
from exegete.answers.decision import Decision
from exegete.answers.groups import BesideGrade
from exegete.answers.readings import Ways, table
from exegete.base.errors import ExegeteError
from exegete.base.extras import to_pandas
from exegete.experiments.common.test import Goal
from exegete.report.section import Table, Verdict

if TYPE_CHECKING:
    from exegete.runs.results import Result


@dataclass(frozen=True)
class Audit:
    """The scorecard, the answer, and where the run is."""

    answer: str
    tests: tuple[Verdict, ...]
    criteria_version: int
    decisions: Mapping[Where, Decision] = field(default_factory=dict)
    findings: tuple[str, ...] = ()  # what the tests found that inform and do not decide, in paragraphs
    instead: Mapping[Where, tuple[Readable, ...]] = field(default_factory=dict)  # what to read, the cheapest first
    beside: Mapping[Where, BesideGrade] = field(default_factory=dict)  # sinks, void texts, classes
    goal: Goal = "faithful"
    user: str = ""  # whom the explanation is for, and what for
    untested: tuple[str, ...] = ()  # what was not tested, and why: a sentence each
    run: Path | None = None
    frame: pl.DataFrame = field(
        default_factory=pl.DataFrame, repr=False
    )  # agreement's summary, or else the first one's
    readings: Mapping[Where, Ways] = field(default_factory=dict)  # other ways of reading, where they were asked

    @property
    def grade(self) -> str | dict[Where, str]:
        """How far attention goes, a key of `exegete.answers.decision.ANSWERS`; of several models by task and model."""
        every = {where: decision.answer for where, decision in self.decisions.items()}
        return next(iter(every.values())) if len(every) == 1 else {**every}

    @property
    def scorecard(self) -> pl.DataFrame:
        """A row per test: statistic, n, interval, chance, verdict and criterion."""
        rows = [test.to_json() | dict(zip(("low", "high"), test.interval, strict=True)) for test in self.tests]
        for row in rows:
            del row["variants"], row["interval"]
        order = (
            "task", "model", "name", "verdict", "statistic", "low", "high", "level", "chance", "threshold", "n",
            "against", "votes", "about", "doubt", "settle", "criterion", "paper",
        )  # fmt: skip
        return pl.DataFrame(rows, infer_schema_length=None).select(order) if rows else pl.DataFrame()

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "answer": self.answer,
            "findings": list(self.findings),
            "decisions": [
                {"task": task, "model": model}
                | decision.to_json()
                | {"instead": [each.to_json() for each in self.instead.get((task, model), ())]}
                | {"beside": self.beside.get((task, model), BesideGrade()).to_json()}
                | {"readings": self._readings(task, model)}
                for (task, model), decision in self.decisions.items()
            ],
            "goal": self.goal,
            "user": self.user,
            "untested": list(self.untested),
            "criteria_version": self.criteria_version,
            "run": None if self.run is None else str(self.run),
            "tests": [test.to_json() for test in self.tests],
        }

    def reading_tables(self) -> list[Table]:
        """A table of readings for every task and model of which they were asked."""
        several = len(self.readings) > 1
        named = {where: table(found) for where, found in self.readings.items()}
        return [
            replace(each, title=f"{each.title}: {model} on {task}") if several else each
            for (task, model), each in named.items()
        ]

    def _readings(self, task: str, model: str) -> list[dict[str, Any]]:
        found = self.readings.get((task, model))
        return [line.to_json() for line in found.lines] if found is not None else []

    def to_pandas(self) -> Any:
        """The scorecard as a pandas frame (extra `pandas`)."""
        return to_pandas(self.scorecard)

    def save(self, path: str | Path) -> None:
        """Write the scorecard as CSV."""
        from exegete.runs.tables import write_csv

        write_csv(Path(path), self.scorecard)

    def report(self, path: str | Path) -> Path:
        """Write the report: one HTML file that works offline."""
        import exegete

        return exegete.write_report(self, path)

    def __getitem__(self, experiment: str) -> "Result":
        """What an experiment found: rows, summary, figures."""
        from exegete.runs.results import Run

        if self.run is None:
            raise ExegeteError("this audit was judged without a run folder: there are no rows to read")
        return Run.read(self.run)[experiment]

    def _repr_html_(self) -> str:
        shown = pl.DataFrame([test.to_json() for test in self.tests]).drop("question", "paper")
        return f"<p>{escape(self.answer)}</p>{shown._repr_html_()}"
