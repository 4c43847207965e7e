"""Adversary training: rows by hand, its summary recomputed, stand-in adversaries, and a small study end to end."""

import math
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import torch

from exegete.base.errors import UsageError
from exegete.experiments.adversary_training import section as told
from exegete.experiments.adversary_training.experiment import AdversaryTraining
from exegete.experiments.adversary_training.figure import adversary_points
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.section import QuestionResult
from exegete.interventions import search
from exegete.models.openings import Opened
from exegete.models.ours.classifier import SITE, PoolingClassifier
from exegete.report.theme import to_svg
from exegete.runs.engine.local import LocalEngine
from exegete.runs.run import run_study
from exegete.runs.study import Study, check_study
from exegete.tasks.example import Example, Task
from exegete.training.evaluation import predict
from exegete.training.recipe import Companion
from tests.margins import BY, lead
from tests.small import small_model, texts
from tests.subjects import cell, subject_of

EXAMPLES = (*texts(8, seed=2, longest=6), Example(50, (("a",),), 1))  # the last has a single word
SINGLE = sum(len(e) == 1 for e in EXAMPLES)
TASK = Task("hand", ("no", "yes"), {"train": EXAMPLES, "test": EXAMPLES}, "by hand")
SPEC = "bilstm:size=5,hidden=4,scale=1"
ASK = AdversaryTraining(lams=(0.1, 1.0), frozen_lams=(2.0,), seeds=(0, 1, 2))


def other(seed: int) -> PoolingClassifier:
    model = small_model(SPEC, EXAMPLES)
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def subject() -> Subject:
    model = small_model(SPEC, EXAMPLES)
    companions = {name: Companion(other(i)) for i, name in enumerate(ASK.companions(SPEC, 0))}
    return subject_of(model, TASK, companions=companions)


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    return ASK.rows(subject())


def test_the_companions() -> None:
    found = ASK.companions("bilstm", 5)
    assert list(found) == ["unfrozen_0.1", "unfrozen_1", "frozen_2", "seed_0", "seed_1", "seed_2"]
    assert found["unfrozen_1"].objective == "adversary:lam=1"
    assert (found["unfrozen_1"].seed, found["unfrozen_1"].warm) == (6, False)
    assert (found["frozen_2"].warm, found["frozen_2"].moves, found["frozen_2"].redrawn) == (True, "attention", True)
    assert found["seed_2"].plain
    assert "seed_2" not in ASK.companions("bilstm", 2)  # its own
    assert replace(ASK, legacy=True).companions("bilstm", 0)["frozen_2"].objective == "adversary:lam=2,legacy=true"


@torch.no_grad()
def slowly(a: PoolingClassifier, b: PoolingClassifier, example: Example) -> tuple[float, float]:
    """TVD of predictions and JSD of weights of one text, from the definitions."""
    batch = a.collate([example])
    p, q = (m.trace(batch) for m in (a, b))
    changed = [abs(x - y) for x, y in zip(*(t.logits[0].double().softmax(-1).tolist() for t in (p, q)), strict=True)]
    apart = 0.0
    for x, y in zip(*(t.attention[SITE][0, 0, 0].double().tolist() for t in (p, q)), strict=True):
        apart += sum(w * math.log(2 * w / (x + y)) / 2 for w in (x, y) if w > 0)
    return sum(changed) / 2, apart


def test_rows_by_hand(rows: pl.DataFrame) -> None:
    asked = subject()
    assert rows.height == len(EXAMPLES) * (2 + 1 + 2 + 2)  # λ, frozen λ, other seeds, tolerances
    for name, companion in asked.companions.items():
        kind, _, which = name.partition("_")
        own = rows.filter(pl.col("kind") == kind, pl.col("other" if kind == "seed" else "lam") == float(which))
        assert own["example"].to_list() == sorted(e.id for e in EXAMPLES)
        for e in EXAMPLES:
            row = own.row(by_predicate=pl.col("example") == e.id, named=True)
            changed, apart = slowly(asked.model, companion.model, e)  # type: ignore[arg-type]
            assert row["tvd"] == pytest.approx(changed, abs=1e-6)
            assert row["jsd"] == (None if len(e) == 1 else pytest.approx(apart, abs=1e-6))
            logits = predict(companion.classifier, [e])[0].tolist()
            said = logits.index(max(logits))
            assert lead(logits) > BY
            assert (row["adversary_predicted"], row["adversary_correct"]) == (TASK.labels[said], said == e.label)
            assert (row["n"], row["positive"]) == (len(e), "yes")


def test_the_searched_are_within_their_tolerance(rows: pl.DataFrame) -> None:
    found = rows.filter(pl.col("kind") == "searched")
    assert (found["tvd"] <= found["tolerance"]).all()
    assert found.filter(pl.col("n") > 1)["jsd"].mean() > 0.1  # type: ignore[operator]
    assert found.filter(pl.col("n") == 1)["jsd"].null_count() == 2 * SINGLE


def test_a_search_that_finds_nothing_leaves_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    def far(texts: Opened, _: search.Search) -> search.Adversaries:
        moved, ones = texts.weights[:, None].roll(1, -1), torch.ones(len(texts.ids), 1).double()
        return search.Adversaries(moved, ones, ones)

    monkeypatch.setattr(search, "find", far)
    found = ASK.rows(subject()).filter(pl.col("kind") == "searched")
    assert set(found["tvd"]) == {0.0}
    assert set(found["jsd"].drop_nulls()) == {0.0}
    assert (found["predicted"] == found["adversary_predicted"]).all()


def test_a_shard_says_the_same(rows: pl.DataFrame) -> None:
    asked = subject()
    alone = ASK.rows(replace(asked, examples=EXAMPLES[3:4], predicted=asked.predicted[3:4]))
    whole = rows.filter(pl.col("example") == EXAMPLES[3].id)
    for name in ("tvd", "jsd", "permuted_jsd"):
        trained = pl.col("kind") != "searched"
        assert alone.filter(trained)[name].to_list() == pytest.approx(whole.filter(trained)[name].to_list(), abs=1e-6)


def test_the_summary_recomputed(rows: pl.DataFrame) -> None:
    summary = ASK.summary(cell(rows))
    assert summary.height == 2 + 1 + 1 + 2  # other seeds are one kind
    one = summary.filter(pl.col("lam") == 1.0).row(0, named=True)
    own = rows.filter(pl.col("lam") == 1.0)
    defined = own["jsd"].drop_nulls()
    assert (one["n"], one["undefined"], one["seeds"]) == (9, SINGLE, 1)
    assert one["jsd"] == pytest.approx(sum(defined) / (9 - SINGLE))
    assert one["jsd_low"] < one["jsd"] < one["jsd_high"]
    assert one["tvd"] == pytest.approx(sum(own["tvd"]) / 9)
    assert one["within_0.05"] == pytest.approx(sum(v <= 0.05 for v in own["tvd"]) / 9)
    assert one["ratio"] == pytest.approx(one["jsd"] / (sum(own["permuted_jsd"].drop_nulls()) / (9 - SINGLE)))
    assert one["difference"] == pytest.approx(one["adversary_accuracy"] - one["base_accuracy"])
    both = sum(g == a == "yes" for g, a in own.select("gold", "adversary_predicted").iter_rows())
    either = sum((g == "yes") + (a == "yes") for g, a in own.select("gold", "adversary_predicted").iter_rows())
    assert one["adversary_f1"] == pytest.approx(2 * both / either)


def test_other_seeds_are_averaged_per_text(rows: pl.DataFrame) -> None:
    seeds = ASK.summary(cell(rows)).filter(pl.col("kind") == "seed").row(0, named=True)
    own = rows.filter(pl.col("kind") == "seed")
    assert seeds["n"] == len(EXAMPLES)
    assert seeds["tvd"] == pytest.approx(own["tvd"].mean())
    assert seeds["adversary_accuracy"] == pytest.approx(own["adversary_correct"].mean())


def test_the_papers_tables(rows: pl.DataFrame) -> None:
    tables = ASK.tables(cell(rows))
    theirs = tables["wiegreffe_pinter"]
    assert set(theirs["kind"]) == {"unfrozen", "frozen", "seed"}
    assert theirs["tvd_halved"].to_list() == pytest.approx((theirs["tvd"] / 2).to_list())
    assert set(tables["meister_5"]["kind"]) == {"unfrozen", "frozen"}
    assert {"jsd", "accuracy", "difference", "difference_low"} <= set(tables["meister_5"].columns)


def test_the_figures_draw_what_was_measured(rows: pl.DataFrame) -> None:
    summary = ASK.summary(cell(rows))
    table = adversary_points(summary)
    assert table["label"].str.join(" ").item().split() == ["0.1", "1", "2", "ε", "0.01,", "0.05"]  # the last are one
    assert table["jsd"].to_list() == pytest.approx(summary["jsd"].to_list())
    drawn = ASK.figures(cell(rows), summary)
    assert ">TVD of predictions<" in to_svg(drawn["curve"])
    assert ">largest weight<" in to_svg(drawn["violins"])
    empty = ASK.figures(cell(rows).head(0), summary.head(0))
    assert all("nothing to show" in to_svg(chart) for chart in empty.values())


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"frozen": False, "unfrozen": False}, "train frozen or unfrozen"),
        ({"lams": (0.1, 0.1)}, "every one of `lams` once"),
        ({"lams": (-1.0,)}, "lam is 0 or above"),
        ({"seeds": (1, 1)}, "every one of `seeds` once"),
        ({"epochs": 0}, "1 or more"),
    ],
)
def test_wrong_settings(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        AdversaryTraining(**settings)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*one class:exegete.base.errors.DataWarning")
def test_a_small_study(tmp_path: Path) -> None:
    lines = ["text,label", *(f"{' '.join(e.texts[0])},{e.label}" for e in texts(80, seed=9))]
    file = tmp_path / "texts.csv"
    file.write_text("\n".join(lines) + "\n")
    asked = {"name": "adversary_training", "lams": [0.5], "frozen_lams": [0.5], "epochs": 2, "seeds": [1]}
    study = check_study(
        Study.model_validate(
            {
                "name": "small",
                "tasks": [f"file:{file}:tokenizer=whitespace"],
                "models": [SPEC, f"{SPEC},projection=sparsemax"],
                "training": {"epochs": 2, "metric": "accuracy", "lr": 0.02},
                "experiments": [asked],
            }
        )
    )
    run = run_study(study, tmp_path / "run", engine=LocalEngine(1))
    found = QuestionResult(run, "adversary_training", study.built_experiments()["adversary_training"])
    assert set(found.rows["kind"]) == {"unfrozen", "frozen", "seed", "searched"}
    assert found.rows["tvd"].null_count() == 0
    assert told.headline(found).cells()
    assert next(section.tables for section in told.sections(found))[2].cells()
