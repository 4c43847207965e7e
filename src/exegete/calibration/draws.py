"""Draws: the audit of one draw of a family, by the deciding tests alone, at the settings of a built-in audit."""

from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl
import torch

from exegete.audits.audit import DEFAULT, HUB_DEFAULT, HUB_QUICK, QUICK
from exegete.audits.criteria import Criteria
from exegete.audits.judge import judge
from exegete.audits.rules import ERROR, TEXTS
from exegete.calibration.families import draw
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.statistic import Evidence, Varied
from exegete.experiments.mediation.experiment import ATTENTION, Mediation
from exegete.experiments.readings.experiment import Readings
from exegete.experiments.tests import declared
from exegete.importance.catalogue import IMPORTANCES
from exegete.measures.bounded import bounded
from exegete.models.contract import Predictor
from exegete.runs.study import Study, read_study
from exegete.tasks.choosing import chosen
from exegete.tasks.example import Task

AUDITS = {"quick": QUICK, "default": DEFAULT, "hf quick": HUB_QUICK, "hf": HUB_DEFAULT}
DECIDING = ("reads", "ranks")
LEVELS = (0.05, 0.025)  # one-sided, of one and of two tests


class AuditedDraw(NamedTuple):
    """One draw of a family, at the settings of one of the audits."""

    family: str
    number: int
    audit: str


def mediation_of(audit: str) -> Mediation:
    """The experiment that decides, as a built-in audit asks it, of attention alone."""
    built = read_study(AUDITS[audit]).built_experiments()["mediation"]
    assert isinstance(built, Mediation)
    return replace(built, methods=(ATTENTION,), choose_on="")


def line_of(asked: AuditedDraw, criteria: Criteria) -> dict[str, Any]:
    """The truth of a draw and what the audit says of it, as a line of the table."""
    truth, experiment = draw(asked.family, asked.number), mediation_of(asked.audit)
    graded = truth.graded(experiment.draws)
    found = audited(truth.model, truth.task, experiment, criteria)
    known = {"known": truth.known, "truth": graded.truth, "opposed": graded.opposed}
    numbers = {"ranks": min(graded.ranks, default=None), "reads": min(graded.reads, default=None)}
    return {**asked._asdict(), **known, **numbers, **found}


@torch.no_grad()
def audited(model: Predictor, task: Task, experiment: Mediation, criteria: Criteria) -> dict[str, Any]:
    """The answer of the audit on a model, the verdicts of its tests, and the ends of their intervals."""
    rows = experiment.rows(subject_of(model, task, experiment)).with_columns(
        task=pl.lit(task.name), model=pl.lit(model.spec), seed=pl.lit(0, pl.Int64), split=pl.lit("test")
    )
    entry = {"name": "mediation", "texts": experiment.texts, "methods": [ATTENTION], "choose_on": ""}
    study = Study(name="calibration", tasks=(task.name,), models=(model.spec,), experiments=(entry,))
    audit = judge({"mediation": rows}, study, criteria, frame=pl.DataFrame())
    (decision,) = audit.decisions.values()
    verdicts = {line.name: line.verdict for line in audit.tests}
    return {"answer": decision.answer, "verdicts": verdicts, "ends": _ends(rows, experiment, criteria)}


def subject_of(model: Predictor, task: Task, experiment: Mediation | Readings) -> Subject:
    """What the experiment is asked about: test texts, predictions and attention."""
    texts = tuple(chosen(task.split("test"), experiment.texts))
    batch = model.collate(texts)
    scores = IMPORTANCES.make(ATTENTION)(model, batch)
    words = torch.full_like(scores.values, torch.nan)
    there = batch.words
    words[torch.arange(words.shape[1]) < there.sum(-1, keepdim=True)] = scores.values[there]
    predicted = model.logits(batch).argmax(-1)
    return Subject(model, task, texts, predicted, {ATTENTION: words}, float(there.sum(-1).double().mean()))


def _ends(rows: pl.DataFrame, experiment: Mediation, criteria: Criteria) -> dict[str, dict[str, list[float]]]:
    """By deciding test and specification that counts: mean, then low and high at every level, the last the surest."""
    found = {}
    for name in DECIDING:
        measured = declared()[name].measured(Evidence((rows,), (experiment,), criteria[name].margin))
        assert isinstance(measured, Varied)
        found[name] = measured
    counted = {
        name: [spec for spec in each.counted if int((~each.values[spec].isnan()).sum()) >= TEXTS]
        for name, each in found.items()
    }
    levels = (*LEVELS, ERROR / max(1, sum(map(len, counted.values()))))
    return {
        name: {spec: _interval(found[name].values[spec], levels) for spec in specs} for name, specs in counted.items()
    }


def _interval(values: torch.Tensor, levels: tuple[float, ...]) -> list[float]:
    intervals = [bounded(values, level) for level in levels]
    return [intervals[0].mean, *(end for each in intervals for end in (each.low, each.high))]
