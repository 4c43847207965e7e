"""Audit: the battery of tests with published criteria, and the answer in plain words.

Today's tests are of agreement. "Better than chance" says little with many texts, so the one that decides is
non-inferiority: does attention agree with the other importances nearly as well as they agree with each other?
"""

import math
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from html import escape
from importlib import resources
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import polars as pl
import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from exegete.base.errors import ExegeteError, UsageError
from exegete.base.names import validate
from exegete.experiments.agreement import Agreement
from exegete.measures.statistics import Interval, bootstrap_mean, crossed_mean
from exegete.studies.study import Study

Verdict = Literal["holds", "fails", "cannot tell"]
VERDICTS: tuple[Verdict, ...] = ("holds", "fails", "cannot tell")
SEEDS_FOR_A_RECIPE = 5
NOT_TESTED = "Agreement is not faithfulness: whether the prediction depends on these weights was not tested."


class Criterion(BaseModel):
    """One test's question, margin and source."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    question: str
    margin: float
    criterion: str
    paper: str

    def __str__(self) -> str:
        return self.criterion.format(margin=self.margin)


class Criteria(BaseModel):
    """All criteria, with the version that a result must quote."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    version: int
    agrees: Criterion
    beats_chance: Criterion


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
    chance: float
    criterion: str
    verdict: Verdict
    about: str  # this checkpoint, or this training recipe
    paper: str


@dataclass(frozen=True)
class Audit:
    """The scorecard, the answer, and where the run is."""

    answer: str
    tests: tuple[Test, ...]
    criteria_version: int
    run: Path | None = None
    frame: pl.DataFrame = field(default_factory=pl.DataFrame, repr=False)  # the summary of agreement

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "answer": self.answer,
            "criteria_version": self.criteria_version,
            "run": None if self.run is None else str(self.run),
            "tests": [asdict(test) for test in self.tests],
        }

    def to_pandas(self) -> Any:
        """The summary as a pandas frame (extra `pandas`)."""
        return self.frame.to_pandas()

    def save(self, path: str | Path) -> None:
        """Write the summary as CSV."""
        from exegete.studies.run import write_csv

        write_csv(Path(path), self.frame)

    def _repr_html_(self) -> str:
        shown = pl.DataFrame([asdict(test) for test in self.tests]).drop("question", "paper")
        return f"<p>{escape(self.answer)}</p>{shown._repr_html_()}"


def load_criteria(path: Path | None = None) -> Criteria:
    """The built-in criteria, or the user's own."""
    source = resources.files("exegete.studies") / "criteria.toml" if path is None else path
    try:
        settings = tomllib.loads(source.read_text(encoding="utf8"))
    except FileNotFoundError:
        raise ExegeteError(f"there is no criteria file {path}") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
    criteria: Criteria = validate(Criteria, settings, "criteria")
    return criteria


def judge(
    rows: pl.DataFrame, study: Study, criteria: Criteria, run: Path | None = None, summary: pl.DataFrame | None = None
) -> Audit:
    """Every test on every task and model of a study's agreement rows."""
    agreement = study.built_experiments().get("agreement")
    if not isinstance(agreement, Agreement):
        raise UsageError(f"study '{study.name}' has no experiment 'agreement', which the audit judges: add it")
    tests: list[Test] = []
    for (task, model), group in rows.group_by("task", "model", maintain_order=True):
        tests += _tests(str(task), str(model), group, agreement, criteria)
    return Audit(
        answer(tests, agreement),
        tuple(tests),
        criteria.version,
        run,
        agreement.summary(rows) if summary is None else summary,
    )


def _tests(task: str, model: str, group: pl.DataFrame, agreement: Agreement, criteria: Criteria) -> list[Test]:
    attention, *others = agreement.against
    tau = {pair: _by_seed(group, *pair) for pair in combinations(agreement.against, 2)}
    with_others = torch.stack([tau[attention, other] for other in others]).mean(0)  # [seed, example]
    among_others = torch.stack([tau[pair] for pair in combinations(others, 2)]).mean(0) if len(others) > 1 else None
    found = [_test("beats_chance", task, model, criteria.beats_chance, with_others, criteria.beats_chance.margin)]
    if among_others is not None:
        unrelated = -float(among_others.nanmean())  # a ranking that knows nothing has a mean τ of 0 with all others
        test = _test("agrees", task, model, criteria.agrees, with_others - among_others, -criteria.agrees.margin)
        found.insert(0, replace(test, chance=unrelated))
    return found


def _by_seed(group: pl.DataFrame, first: str, second: str) -> Tensor:
    """τ [seed, example] of one pair."""
    pair = group.filter((pl.col("measure") == "tau") & (pl.col("first") == first) & (pl.col("second") == second))
    parts = pair.sort("seed", "example").partition_by("seed", maintain_order=True)
    return torch.stack([torch.from_numpy(part["value"].fill_null(float("nan")).to_numpy().copy()) for part in parts])


def _test(name: str, task: str, model: str, criterion: Criterion, values: Tensor, threshold: float) -> Test:
    seeds = len(values)
    interval = bootstrap_mean(values[0]) if seeds == 1 else crossed_mean(values)
    return Test(
        name=name,
        task=task,
        model=model,
        question=criterion.question,
        statistic=_finite(interval.mean),
        n=interval.n,
        interval=(_finite(interval.low), _finite(interval.high)),
        chance=0.0,
        criterion=str(criterion),
        verdict=verdict(interval, threshold, seeds),
        about="this checkpoint" if seeds == 1 else f"this training recipe ({seeds} seeds)",
        paper=criterion.paper,
    )


def _finite(value: float) -> float | None:
    return value if value == value else None


def verdict(interval: Interval, threshold: float, seeds: int = 1) -> Verdict:
    """Holds if the interval lies above the threshold, fails if below.

    Few seeds, or none of the two, is not a guess but `cannot tell`.
    """
    if 1 < seeds < SEEDS_FOR_A_RECIPE or math.isnan(interval.low):
        return "cannot tell"
    if interval.low > threshold:
        return "holds"
    return "fails" if interval.high < threshold else "cannot tell"


def answer(tests: Sequence[Test], agreement: Agreement) -> str:
    """The answer in plain words: the short one first, then, in paragraphs of their own, what it is about."""
    by_model: dict[tuple[str, str], dict[str, Test]] = {}
    for test in tests:
        by_model.setdefault((test.task, test.model), {})[test.name] = test
    said = {cell: _sentence(named, agreement) for cell, named in by_model.items()}
    each = [f"{_deciding(named).about}, {model} on {task}" for (task, model), named in by_model.items()]
    if len(said) == 1:
        return "\n\n".join([*said.values(), f"This is about {each[0]}. {NOT_TESTED}"])
    counts = Counter(_deciding(named).verdict for named in by_model.values())
    numbers = ", ".join(f"{word} for {counts[word]}" for word in VERDICTS)
    short = f"Does attention rank words as the other importances do? Of {len(said)} models it {numbers}."
    return "\n\n".join(
        [short, *(f"{about}: {said}" for about, said in zip(each, said.values(), strict=True)), NOT_TESTED]
    )


def _deciding(tests: dict[str, Test]) -> Test:
    """The test that the answer follows: non-inferiority where it could be made."""
    return tests.get("agrees", tests["beats_chance"])


def _sentence(tests: dict[str, Test], agreement: Agreement) -> str:
    attention, *others = agreement.against
    listed = " and ".join(name.replace("_", "-") for name in others)
    said = {
        "holds": f"Yes, as far as agreement goes: {attention} ranks words about as {listed} do.",
        "fails": f"Not in place of {listed}: {attention} ranks words clearly differently. Read {listed} instead.",
        "cannot tell": f"These texts or seeds don't settle whether {attention} ranks words as {listed} do.",
    }[_deciding(tests).verdict]
    chance = {
        "holds": "It does agree with them more than noise would.",
        "fails": "It does not even agree with them more than noise would.",
        "cannot tell": "Whether it agrees with them more than noise would is not settled.",
    }[tests["beats_chance"].verdict]
    return f"{said} {chance}"
