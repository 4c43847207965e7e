"""Deception: mass and precision by hand, disobedient texts left out, and a small study end to end."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import torch

from exegete.base.errors import UsageError
from exegete.experiments.common.contract import Subject, builds
from exegete.experiments.common.section import QuestionResult
from exegete.experiments.deception import section as told
from exegete.experiments.deception.experiment import DeceptionExperiment
from exegete.experiments.deception.figure import deception_lines
from exegete.models.ours.classifier import SITE, PoolingClassifier
from exegete.report.theme import to_svg
from exegete.runs.engine.local import LocalEngine
from exegete.runs.run import run_study
from exegete.runs.study import Study, check_study
from exegete.tasks.batching import collate
from exegete.tasks.example import Example, Task
from exegete.training.evaluation import predict
from exegete.training.recipe import Companion
from tests.small import small_model, small_task
from tests.subjects import cell, subject_of

EXAMPLES = (
    Example(1, (("a", "zqx", "b", "zqy"),), 1, (1, 3)),
    Example(2, (("zqy", "zqx", "c"),), 0, (0, 1)),
    Example(3, (("zqx", "zqy"),), 1, (0, 1)),  # nothing else to attend to
    Example(4, (("zqx", "b", "zqy", "d", "e"),), 1, (0, 2)),
)
TASK = Task("hand:planted=pair", ("no", "yes"), {"train": EXAMPLES, "test": EXAMPLES}, "by hand")
SPEC = "bilstm:size=4,hidden=3,scale=1"
ASK = DeceptionExperiment(lams=(0.5,), methods=("attention", "gradient_x_input", "random"))


def other() -> PoolingClassifier:
    model = small_model(SPEC, EXAMPLES)
    with torch.no_grad():
        model.decoder.weight.neg_()
        model.decoder.bias.neg_()
    return model


def subject() -> Subject:
    return subject_of(small_model(SPEC, EXAMPLES), TASK, companions={"deceiver_0.5": Companion(other())})


def weights(model: PoolingClassifier, example: Example) -> list[float]:
    with torch.no_grad():
        found: list[float] = model.trace(collate([example], model.vocabulary)).attention[SITE][0, 0, 0].tolist()
    return found


def test_rows_by_hand() -> None:
    asked = subject()
    rows = ASK.rows(asked)
    assert rows.height == len(EXAMPLES) * 2 * 3
    for who, model in (("base", asked.model), ("deceiver", asked.companions["deceiver_0.5"].model)):
        assert isinstance(model, PoolingClassifier)
        for e in EXAMPLES:
            (row,) = rows.filter(example=e.id, who=who, method="attention").to_dicts()
            own = weights(model, e)
            mass = sum(own[place] for place in e.rationale)
            assert row["mass"] == (None if len(e) == 2 else pytest.approx(mass, abs=1e-6))
            assert row["correct"] == (predict(model, [e]).argmax(-1).item() == e.label)
            assert row["lam"] == (None if who == "base" else 0.5)
            if not row["correct"] or len(e) == 2:
                assert row["value"] is None
                continue
            first = sorted(range(len(e)), key=lambda i, own=own: -own[i])[:2]  # type: ignore[misc]
            assert row["value"] == len({*first} & {*e.rationale}) / 2
            assert row["chance"] == pytest.approx(2 / len(e))


def test_the_two_models_contradict_each_other() -> None:
    rows = ASK.rows(subject()).filter(pl.col("method") == "random")
    base, hiding = (rows.filter(pl.col("who") == who)["correct"].to_list() for who in ("base", "deceiver"))
    assert base == [not right for right in hiding]  # the decoder was turned around: each obeys where the other doesn't


def test_the_summary_recomputed() -> None:
    rows = cell(ASK.rows(subject()))
    summary = ASK.summary(rows)
    assert summary.height == 2 * (2 + 3)
    for row in summary.iter_rows(named=True):
        own = rows.filter(pl.col("who") == row["who"])
        if row["measure"] == "precision_at_k":
            values = own.filter(pl.col("method") == row["method"])["value"]
        else:
            column = {"mass": "mass", "accuracy": "correct"}[row["measure"]]
            values = own.unique("example")[column].cast(pl.Float64)
        assert (row["n"], row["undefined"]) == (values.count(), values.null_count())
        assert row["mean"] == pytest.approx(values.mean())
    mass = summary.filter(pl.col("measure") == "mass")
    assert mass["chance"].to_list() == pytest.approx([(2 / 4 + 2 / 3 + 2 / 5) / 3] * 2)
    table = ASK.tables(rows)["pruthi"]
    assert table["mean_mass"].to_list() == pytest.approx(mass["mean"].to_list())


def test_a_model_that_lost_the_words_is_told() -> None:
    rows = cell(ASK.rows(subject()))
    right = rows.with_columns(correct=pl.col("who") == "base")
    learnt = dict(ASK.summary(right).select("who", "learnt").unique().iter_rows())
    assert learnt == {"base": True, "deceiver": False}
    assert " (not learnt)" in deception_lines(ASK.summary(right))["who"].str.join("").item()
    assert ASK.tables(right)["pruthi"]["learnt"].to_list() == [True, False]
    one_seed = pl.concat([right, right.with_columns(pl.lit(1).alias("seed"), correct=pl.lit(False))])
    assert not ASK.summary(one_seed)["learnt"].any()  # every seed must have


def test_what_it_needs() -> None:
    assert builds(ASK) == ASK.methods  # rows depend on their code
    recipe = ASK.companions("bilstm", 3)["deceiver_0.5"]
    assert (recipe.objective, recipe.seed, recipe.warm) == ("deception:lam=0.5", None, False)
    with pytest.raises(UsageError, match="write sst:planted=token"):
        ASK.rows(replace(subject(), task=replace(TASK, name="sst")))


def test_the_figure_draws_what_was_measured() -> None:
    summary = ASK.summary(cell(ASK.rows(subject())))
    table = deception_lines(summary)
    assert {who.removesuffix(" (not learnt)") for who in table["who"]} == {"honest", "deceptive, λ = 0.5"}
    assert "weight on planted words" in set(table["line"])
    assert "deceptive, λ = 0.5" in to_svg(ASK.figures(pl.DataFrame(), summary)["deception"])
    assert "nothing to show" in to_svg(ASK.figures(pl.DataFrame(), summary.head(0))["deception"])


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"lams": ()}, "at least one λ"),
        ({"lams": (-1.0,)}, "lam is 0 or above"),
        ({"methods": ("attention", "attention")}, "once"),
        ({"methods": ("atention",)}, "did you mean 'attention'"),
        ({"epochs": 0}, "1 or more"),
        ({"obedience": 0.0}, "share of texts"),
    ],
)
def test_wrong_settings(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        DeceptionExperiment(**settings)  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_small_study(tmp_path: Path) -> None:
    file = tmp_path / "texts.csv"
    rows = [f"{' '.join(e.words)},{e.label}" for e in small_task(150).split("train")]
    file.write_text("\n".join(["text,label", *rows]) + "\n")
    study = check_study(
        Study.model_validate(
            {
                "name": "small",
                "tasks": [f"file:{file}:tokenizer=whitespace,planted=token,planted_share=0.4"],
                "models": [SPEC],
                "training": {"epochs": 3, "metric": "accuracy", "lr": 0.02},
                "experiments": [{"name": "deception"}],
            }
        )
    )
    run = run_study(study, tmp_path / "run", engine=LocalEngine(1))
    found = QuestionResult(run, "deception", study.built_experiments()["deception"])
    assert set(found.rows["who"]) == {"base", "deceiver"}
    assert found.rows["method"].n_unique() == 6
    assert told.headline(found).cells()
    assert next(iter(told.sections(found))).tables[1].cells()
