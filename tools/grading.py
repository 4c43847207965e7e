"""Does a grade keep its word? `python -m tools.grading RUN FOLDER [MODEL …]` draws audits from a run's own texts.

The texts of a model are drawn again with replacement, all specifications and tests of a text together, and Γ is moved
by a constant so that its mean lies at, or at some distance from, an edge. Of every such audit it is known which grade
is true. It is asked at the looks of an audit until it is settled. An answer is *wrong* where it excludes the true grade
(what lies nearer to an edge than the tolerance may be called either), *single* where it names one grade, and it
*differs* where it says that specifications do, which these, all with one mean, do not.
"""

import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import torch
from torch import Tensor

from exegete.answers.criteria import load_criteria
from exegete.answers.grades import NO_BY_RANKS, DecidingTest, Graded, Grading, grade, grade_test
from exegete.answers.judge import evidence_of
from exegete.experiments.common.statistic import Varied
from exegete.runs.run import study_of
from exegete.runs.tables import write_csv
from exegete.tasks.selection import look_points
from exegete.wings.calibration.count import DIFFER, excludes

AUDITS, TEXTS = 200, 800
AWAY = (-0.10, -0.05, -0.03, 0.0, 0.03, 0.05, 0.10)
SINGLE = ("yes", "partly", "no")
Values = Mapping[str, Mapping[str, Tensor]]  # by test and specification: [text]


def values_of(run: Path) -> dict[str, Values]:
    """What every model of a run says of its texts, the mean over its trainings."""
    study, criteria = study_of(run), load_criteria()
    rows = {"mediation": pl.read_parquet(run / "tables" / "mediation.parquet")}
    found: dict[str, dict[str, Mapping[str, Tensor]]] = {}
    for each in evidence_of("mediation", rows, study, criteria):
        if each.is_graded and isinstance(each.measured, Varied):
            own = {name: each.measured.values[name].nanmean(0) for name in each.measured.counted}
            found.setdefault(f"{each.model} on {each.task}", {})[each.test.name] = own
    return dict(found)


def moved(values: Tensor, mean: float) -> Tensor:
    """Γ of texts, moved by a constant and cut at ±1, so that this is their mean."""
    low, high = -2.0, 2.0
    for _ in range(50):
        by = (low + high) / 2
        low, high = (by, high) if (values + by).clamp(-1, 1).nanmean() < mean else (low, by)
    return (values + (low + high) / 2).clamp(-1, 1)


def audit(values: Values, edges: tuple[float, float], tolerance: float, seed: int) -> tuple[str, int]:
    """The answer of one audit of texts drawn again, and of how many."""
    count = len(next(iter(values["ranks"].values())))
    drawn = torch.randint(count, (TEXTS,), generator=torch.Generator().manual_seed(seed))
    for texts in look_points(TEXTS):
        some = {test: {name: own[drawn[:texts]] for name, own in by.items()} for test, by in values.items()}
        grading = Grading(
            _graded(some["reads"], (load_criteria()["reads"].margin,)),
            grade_test(DecidingTest(_seeds(some["ranks"]), {}, edges, tolerance, NO_BY_RANKS)),
            _graded(some["carries"], (load_criteria()["carries"].margin,), 0.0),
        )
        if grading.is_settled:
            break
    return grade(grading), texts


def _graded(values: Mapping[str, Tensor], edges: tuple[float, ...], least: float = -1.0) -> Graded:
    return grade_test(DecidingTest(_seeds(values), {}, edges, least=least))


def _seeds(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: own[None] for name, own in values.items()}


def simulated(name: str, values: Values, tolerance: float, audits: int = AUDITS) -> list[dict[str, object]]:
    """A row for every distance from either edge."""
    margin, partly = (load_criteria()["ranks"].margin, load_criteria()["ranks"].partly)
    assert partly is not None
    rows: list[dict[str, object]] = []
    for edge, grades in ((margin, ("partly", "strong")), (partly, ("hardly", "partly"))):
        for away in AWAY:
            there = {**values, "ranks": {way: moved(own, edge + away) for way, own in values["ranks"].items()}}
            found = [audit(there, (margin, partly), tolerance, seed) for seed in range(audits)]
            said = Counter(answer for answer, _ in found)
            truths = set(grades) if abs(away) < tolerance - 1e-9 else {grades[away > 0]}
            wrong = sum(all(excludes(answer, truth) for truth in truths) for answer, _ in found)
            rows.append({
                "model": name, "tolerance": tolerance, "edge": edge, "away": away, "audits": audits,
                "wrong": wrong / audits, "single": sum(said[key] for key in SINGLE) / audits,
                "differs": sum(said[key] for key in DIFFER) / audits,
                "texts": sum(texts for _, texts in found) / audits,
                "answers": ", ".join(f"{key} {count}" for key, count in said.most_common()),
            })  # fmt: skip
    return rows


def main(run: Path, folder: Path, models: list[str]) -> None:
    """All models, or those whose names begin so, at both tolerances."""
    rows = [
        row
        for name, values in values_of(run).items()
        if not models or any(name.startswith(model) for model in models)
        for tolerance in (0.03, 0.05)
        for row in simulated(name, values, tolerance)
    ]
    write_csv(folder / "grades.csv", pl.DataFrame(rows))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
