"""Draws: the audit of one draw of a family, by the deciding tests alone, at the settings of a built-in audit."""

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import polars as pl
import torch

from exegete.plugins import (
    ATTENTION,
    DEFAULT,
    ERROR,
    HUB_DEFAULT,
    HUB_QUICK,
    IMPORTANCES,
    QUICK,
    QUICK_TEXTS,
    Criteria,
    Example,
    Graded,
    Grading,
    Mediation,
    Predictor,
    Study,
    Subject,
    Task,
    evidence_of,
    gradings,
    in_steps,
    judge,
    read_study,
)
from exegete.wings.calibration.families import draw_truth

AUDITS = {"quick": QUICK, "default": DEFAULT, "hf quick": HUB_QUICK, "hf": HUB_DEFAULT}
DECIDING = ("reads", "ranks", "carries")
MOST = {"quick": QUICK_TEXTS, "default": None, "hf quick": QUICK_TEXTS, "hf": None}  # texts that each asks


class AuditedDraw(NamedTuple):
    """One draw of a family, at the settings of one of the audits."""

    family: str
    number: int
    audit: str


@cache
def mediation_of(audit: str) -> Mediation:
    """The experiment that decides, as a built-in audit asks it, of attention alone."""
    built = read_study(AUDITS[audit]).built_experiments()["mediation"]
    assert isinstance(built, Mediation)
    return replace(built, methods=(ATTENTION,), choose_on="")


def draw_line(asked: AuditedDraw, criteria: Criteria) -> dict[str, Any]:
    """The truth of a draw and what the audit says of it, as a line of the table."""
    truth, experiment = draw_truth(asked.family, asked.number), mediation_of(asked.audit)
    graded = truth.graded(experiment.draws)
    found = audit_draw(truth.model, truth.task, experiment, criteria, MOST[asked.audit])
    known = {
        "known": truth.known,
        "truth": graded.truth,
        "grounds": "+".join(graded.grounds),
        "opposed": graded.opposed,
    }
    numbers = {name: min(getattr(graded, name), default=None) for name in ("ranks", "reads", "carries")}
    return {**asked._asdict(), **known, **numbers, **found}


def ask_growing(
    model: Predictor, task: Task, experiment: Mediation, study: Study, criteria: Criteria, most: int | None = None
) -> tuple[pl.DataFrame, Grading]:
    """The rows of a study's one model, of texts that are asked step by step until it is settled, and its grade."""
    columns = {"task": pl.lit(study.tasks[0]), "model": pl.lit(study.models[0]), "split": pl.lit("test")}
    rows = pl.DataFrame()
    for texts in in_steps(task.split("test"), most):
        found = experiment.rows(subject_of(model, task, tuple(texts))).with_columns(seed=pl.lit(0, pl.Int64), **columns)
        rows = pl.concat([rows, found]) if len(rows) else found
        (grading,) = gradings(list(evidence_of("mediation", {"mediation": rows}, study, criteria)), study).values()
        if grading.is_settled:
            break
    return rows, grading


@torch.no_grad()
def audit_draw(
    model: Predictor, task: Task, experiment: Mediation, criteria: Criteria, most: int | None = None
) -> dict[str, Any]:
    """The answer of the audit on a model, of how many texts, and the verdicts and intervals of its tests.

    Texts are asked step by step until it is settled, as an audit asks them: `most` of them, or all that there are.
    """
    entry = {
        "name": "mediation", "methods": [ATTENTION], "choose_on": "", "tolerance": experiment.tolerance,
        "draws": experiment.draws,
    }  # fmt: skip
    study = Study(name="calibration", tasks=(task.name,), models=(model.spec,), experiments=(entry,))
    rows, grading = ask_growing(model, task, experiment, study, criteria, most)
    audit = judge({"mediation": rows}, study, criteria, frame=pl.DataFrame(), calibrating=True)
    (decision,) = audit.decisions.values()
    verdicts = {line.name: line.verdict for line in audit.tests}
    ends = {name: _ends(getattr(grading, name)) for name in DECIDING}
    return {"answer": decision.answer, "texts": rows["example"].n_unique(), "verdicts": verdicts, "ends": ends}


def subject_of(model: Predictor, task: Task, texts: tuple[Example, ...]) -> Subject:
    """What the experiment is asked about: some test texts, predictions and attention."""
    batch = model.collate(texts)
    scores = IMPORTANCES.make(ATTENTION)(model, batch)
    words = torch.full_like(scores.values, torch.nan)
    there = batch.words
    words[torch.arange(words.shape[1]) < there.sum(-1, keepdim=True)] = scores.values[there]
    predicted = model.logits(batch).argmax(-1)
    return Subject(model, task, texts, predicted, {ATTENTION: words}, float(there.sum(-1).double().mean()))


def _ends(test: Graded) -> dict[str, list[float]]:
    """By specification that counts: mean, the low end at 5 % and the high one at the error of a No."""
    return {
        name: [own.mean, own.interval(ERROR).low, own.interval(test.no_error).high] for name, own in test.bets.items()
    }
