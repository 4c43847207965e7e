"""Gating: rows recomputed text by text, a summary recomputed, companions by name, and a small study from end to end."""

import math
from copy import deepcopy
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import polars as pl
import pytest
import torch
from polars.testing import assert_frame_equal
from scipy.stats import kendalltau

from exegete.base.errors import UsageError
from exegete.experiments.common.contract import Subject, recipes, unsuited
from exegete.experiments.common.section import QuestionResult, Sections
from exegete.experiments.gating.experiment import AGAIN, GATED, OTHER_SEED, Gating
from exegete.experiments.gating.figure import gating_levels
from exegete.measures.statistics import bootstrap_mean
from exegete.models.build import build
from exegete.models.ours.classifier import SITE, PoolingClassifier
from exegete.models.settings import MODELS
from exegete.report.theme import to_svg
from exegete.runs.engine.local import LocalEngine
from exegete.runs.run import run_study
from exegete.runs.study import Study, check_study
from exegete.tasks.batching import collate
from exegete.tasks.example import Example, Task
from exegete.training.recipe import Companion
from tests.small import small_model, small_task, texts
from tests.studied import reviews
from tests.subjects import cell, subject_of

ASK = Gating()
EXAMPLES = (*texts(20, seed=3), Example(90, (("a",),), 1))  # in `average`, a word and its repetition tie
TASK = Task("small", ("no", "yes"), {"train": EXAMPLES, "test": EXAMPLES}, "made up")
SPEC = "average:size=5,hidden=6,scale=1"
MODELS_ASKED = {"base": (SPEC, 0), GATED: (f"{SPEC},projection=gates", 1), AGAIN: (SPEC, 2)}


def models() -> dict[str, PoolingClassifier]:
    found = {}
    for name, (spec, seed) in MODELS_ASKED.items():
        model = small_model(spec, EXAMPLES)
        torch.manual_seed(seed)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))
        found[name] = model
    return found


def subject() -> Subject:
    made = models()
    beside = {name: Companion(made[name]) for name in (GATED, AGAIN)}
    return subject_of(made["base"], TASK, companions=beside)


def test_rows_recomputed_text_by_text() -> None:
    asked = subject()
    made = {"base": asked.model, **{name: beside.model for name, beside in asked.companions.items()}}
    made = {name: deepcopy(model).double() for name, model in made.items()}  # type: ignore[attr-defined]
    rows = ASK.rows(asked)
    assert rows["example"].to_list() == [e.id for e in EXAMPLES]
    for e, row in zip(EXAMPLES, rows.iter_rows(named=True), strict=True):
        answers, weights = {}, {}
        for name, model in made.items():
            assert isinstance(model, PoolingClassifier)
            with torch.no_grad():
                trace = model.trace(collate([e], model.vocabulary))
            weights[name] = [round(weight, 12) for weight in trace.attention[SITE][0, 0, 0].tolist()]
            answers[name] = int(trace.logits.argmax())
        right = {name: answer == e.label for name, answer in answers.items()}
        assert (row["correct"], row["gated_correct"], row["again_correct"]) == tuple(right.values())
        assert row["value"] == right[GATED] - right["base"]
        assert (row["agrees"], row["agrees_again"]) == tuple(answers[n] == answers["base"] for n in (GATED, AGAIN))
        gates = [w * len(e) for w in weights[GATED]]
        mean = sum(gates) / len(e)
        spread = math.sqrt(sum((g - mean) ** 2 for g in gates) / len(e))
        assert (row["gate"], row["gate_spread"]) == pytest.approx((mean, spread), abs=1e-6)
        for column, name in (("tau", GATED), ("tau_again", AGAIN)):
            tau = kendalltau(weights["base"], weights[name]).statistic if len(e) > 1 else math.nan
            assert row[column] == (None if math.isnan(tau) else pytest.approx(tau, abs=1e-9))
    assert rows["tau"].null_count() == sum(len(set(e.words)) == 1 for e in EXAMPLES)
    assert any(1 < len(set(e.words)) < len(e) for e in EXAMPLES)


def test_rows_do_not_depend_on_the_shard() -> None:
    asked = subject()
    halves = [
        replace(asked, examples=EXAMPLES[part], predicted=asked.predicted[part]) for part in (slice(9), slice(9, None))
    ]
    parts, whole = pl.concat([ASK.rows(half) for half in halves]), ASK.rows(asked)
    assert_frame_equal(parts, whole, check_exact=False, abs_tol=1e-5)


def test_the_summary_recomputed() -> None:
    rows = cell(ASK.rows(subject()))
    summary = ASK.summary(rows)
    number = {(row["measure"], row["who"]): row for row in summary.iter_rows(named=True)}
    assert len(number) == summary.height
    tau = number["tau", "gates"]
    defined = rows["tau"].drop_nulls()
    interval = bootstrap_mean(torch.tensor(defined.to_list(), dtype=torch.float64))
    assert (tau["n"], tau["undefined"]) == (len(defined), rows.height - len(defined))
    assert (tau["mean"], tau["low"], tau["high"]) == pytest.approx((interval.mean, interval.low, interval.high))
    assert number["tau", "difference"]["mean"] == pytest.approx((rows["tau"] - rows["tau_again"]).mean())
    accuracy = {who: number["accuracy", who]["mean"] for who in ("attention", "gates", "another seed")}
    assert accuracy["gates"] == pytest.approx(rows["gated_correct"].mean())
    assert number["change", "gates"]["mean"] == pytest.approx(accuracy["gates"] - accuracy["attention"])
    assert number["change", "another seed"]["mean"] == pytest.approx(accuracy["another seed"] - accuracy["attention"])
    differ = rows.filter(pl.col("gate_spread") >= 0.01)
    assert number["tau", "gates that differ"]["mean"] == pytest.approx(differ["tau"].mean())
    shut = ASK.summary(rows.with_columns(gate_spread=pl.lit(0.0))).filter(pl.col("who") == "gates that differ")
    assert (shut["n"][0], shut["mean"][0], shut["undefined"][0]) == (0, None, rows.height)
    assert number["same", "gates"]["mean"] == pytest.approx(rows["agrees"].mean())


def test_several_seeds_have_intervals_within_what_is_possible() -> None:
    rows = ASK.rows(subject())
    other = rows.with_columns(tau=-pl.col("tau"), gated_correct=~pl.col("gated_correct"))
    summary = ASK.summary(pl.concat([cell(rows), cell(other, seed=1)]))
    assert set(summary["seeds"]) == {2}
    assert summary.filter(pl.col("measure") == "accuracy")["low"].min() == 0
    assert summary.filter(pl.col("who") == "difference")["low"].min() >= -2  # type: ignore[operator]
    tables = ASK.tables(cell(rows))["classes"]
    assert tables["n"].sum() == rows["tau"].count()


@pytest.mark.parametrize(
    ("model", "gated"),
    [
        ("bilstm", "bilstm:projection=gates"),
        ("bilstm:attention=dot,projection=sparsegen,lam=0.5", "bilstm:attention=dot,projection=gates"),
        ("cnn:projection=entmax,alpha=1.3,learned=true,hidden=8", "cnn:projection=gates,hidden=8"),
    ],
)
def test_companions_by_name(model: str, gated: str) -> None:
    found = recipes(ASK, model, 3)
    assert found[GATED].model == gated
    assert MODELS.make(gated)
    assert (found[GATED].seed, found[AGAIN].seed, found[AGAIN].model) == (None, 3 + OTHER_SEED, "")
    assert all(recipe.plain for recipe in found.values())


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("ladder:size=4", "has gates already"),
        ("average:size=4,hidden=4,projection=gates", "don't sum to 1"),
        ("average:size=4,hidden=4,attention=none", "LastState has none"),
        ("hierarchical:size=4,hidden=4", "has several"),
    ],
)
def test_models_that_it_is_not_for(spec: str, sentence: str) -> None:
    reason = unsuited(ASK, TASK, build(spec, TASK))
    assert reason is not None
    assert sentence in reason
    assert unsuited(ASK, TASK, build(SPEC, TASK)) is None


def test_wrong_settings() -> None:
    with pytest.raises(UsageError, match="number of texts"):
        Gating(texts=0)


def test_the_figure_draws_what_was_measured() -> None:
    summary = ASK.summary(cell(ASK.rows(subject())))
    table = gating_levels(summary)
    assert table.height == 3 + 2 + 2 + 1
    assert set(table["measure"]) == {"accuracy", "same prediction", "τ-b with attention", "mean gate"}
    assert "another seed" in to_svg(ASK.figures(pl.DataFrame(), summary)["gating"])
    assert "nothing to show" in to_svg(ASK.figures(pl.DataFrame(), summary.head(0))["gating"])


@pytest.mark.slow
def test_a_study_from_end_to_end(tmp_path: Path) -> None:
    file = reviews(tmp_path / "reviews.csv", 60)
    study = check_study(
        Study.model_validate(
            {
                "name": "gating",
                "tasks": [f"file:{file}:text=review,label=sentiment,tokenizer=whitespace"],
                "models": ["bilstm:size=8,hidden=8,projection=sparsegen,lam=0.5", "ladder:size=8"],
                "training": {"epochs": 2, "metric": "accuracy", "lr": 0.02},
                "experiments": [{"name": "gating"}],
            }
        )
    )
    run = run_study(study, tmp_path / "run", engine=LocalEngine(1))
    rows = pl.read_parquet(run / "tables" / "gating.parquet")
    assert set(rows["model"]) == {study.models[0]}  # ladder is left out, and the notes say why
    told: Sections = import_module("exegete.experiments.gating.section")
    found = QuestionResult(run, "gating", study.built_experiments()["gating"])
    assert len(told.headline(found).cells()) == 8
    assert next(iter(told.sections(found))).tables


def test_small_task_is_learnt_with_gates_as_with_attention() -> None:
    from exegete.training.evaluation import evaluate
    from exegete.training.fit import Fit
    from exegete.training.settings import TrainingSettings

    task = small_task(longest=5)
    model = build("average:size=8,hidden=8,scale=1,projection=gates", task)
    Fit(model, task, TrainingSettings(epochs=6, patience=6, lr=0.05, metric="accuracy"), 0).run()
    assert (evaluate(model, task.split("train"))["accuracy"] or 0) > 0.85
