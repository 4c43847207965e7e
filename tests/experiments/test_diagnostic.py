"""Diagnostic: who is right under which weights, F1 and differences written again slowly, and the recipes themselves."""

from itertools import product

import polars as pl
import pytest
import torch

from exegete.base.errors import UsageError
from exegete.experiments.common.summaries import interval_of
from exegete.experiments.diagnostic.experiment import Diagnostic
from exegete.experiments.diagnostic.figure import diagnostic_levels
from exegete.interventions.impose import Impose
from exegete.interventions.table import WeightTable
from exegete.interventions.uniform import Uniform
from exegete.measures.statistics import paired_difference
from exegete.models.settings import MODELS
from exegete.report.theme import to_svg
from exegete.tasks.example import Example
from exegete.training.recipe import Companion, Recipe
from tests.experiments.beside_models import beside, shaken, slow, slow_jsd, slow_tvd
from tests.margins import clear, lead
from tests.small import small_model, texts
from tests.subjects import cell

EXAMPLES = (*texts(30, longest=6), Example(90, (("a",),), 1))
SPEC, WORDS = "bilstm:size=7,hidden=6,scale=1", "average:size=7,hidden=6,scale=1"
ASK = Diagnostic()
CONDITIONS = ["base", "own", "uniform", "imposed", "adversary", "imposed_adversary"]


def companions() -> dict[str, Companion]:
    base, adversary = small_model(SPEC, EXAMPLES), shaken(SPEC, EXAMPLES, 9)
    words = {name: shaken(WORDS, EXAMPLES, seed) for seed, name in enumerate(("own", "uniform", "imposed", "faked"))}
    ours, theirs = (WeightTable.of(m, EXAMPLES) for m in (base, adversary))
    return {
        "own": Companion(words["own"]),
        "uniform": Companion(words["uniform"], Uniform()),
        "imposed": Companion(words["imposed"], Impose(table=ours)),
        "adversary": Companion(adversary),
        "imposed_adversary": Companion(words["faked"], Impose(table=theirs)),
    }


def rows_of(seed: int = 0) -> pl.DataFrame:
    return cell(ASK.rows(beside(SPEC, EXAMPLES, companions())), seed)


def test_rows_written_again_slowly() -> None:
    others = companions()
    subject = beside(SPEC, EXAMPLES, others)
    rows = ASK.rows(subject)
    assert rows["weights"].unique(maintain_order=True).to_list() == CONDITIONS
    with clear() as sure:
        for e, name in product(EXAMPLES, CONDITIONS):
            own, p = slow(subject.model, e)
            weights, q = (own, p) if name == "base" else slow(others[name].classifier, e, others[name].intervene)
            (row,) = rows.filter(example=e.id, weights=name).to_dicts()
            if sure(lead(q)):
                assert row["correct"] == int((q[1] > q[0]) == (e.label == 1))
                assert row["predicted"] == ("yes" if q[1] > q[0] else "no")
            assert row["positive"] == "yes"
            assert row["tvd"] == pytest.approx(slow_tvd(p, q), abs=1e-6)
            assert row["jsd"] == (pytest.approx(slow_jsd(own, weights), abs=1e-6) if len(e) > 1 else None)
    far = {name: part["jsd"].mean() for (name,), part in rows.group_by("weights")}
    assert far["imposed"] == pytest.approx(0, abs=1e-9)  # per instance, and to the last digit
    assert far["imposed_adversary"] == pytest.approx(far["adversary"])
    assert far["adversary"] > 0.01  # type: ignore[operator]


def slow_f1(rows: list[dict[str, str]], positive: str) -> float:
    both = sum(r["predicted"] == positive == r["gold"] for r in rows)
    wrongly = sum(r["predicted"] == positive != r["gold"] for r in rows)
    missed = sum(r["predicted"] != positive == r["gold"] for r in rows)
    precision, recall = both / max(1, both + wrongly), both / max(1, both + missed)
    return 2 * precision * recall / (precision + recall) if both else 0.0


def test_the_summary_written_again_slowly() -> None:
    rows = rows_of()
    summary = ASK.summary(rows)
    found = {(r["measure"], r["weights"], r["against"]): r for r in summary.to_dicts()}
    assert len(found) == summary.height == 2 * (6 + 3)
    level = {}
    for name in CONDITIONS:
        own = rows.filter(weights=name).to_dicts()
        level["accuracy", name] = sum(r["correct"] for r in own) / len(own)
        level["f1", name] = slow_f1(own, "yes")
        for measure in ("accuracy", "f1"):
            said = found[measure, name, ""]
            assert said["mean"] == pytest.approx(level[measure, name])
            assert (said["n"], said["seeds"]) == (len(EXAMPLES), 1)
            assert 0 <= said["low"] <= said["mean"] <= said["high"] <= 1
    for measure in ("accuracy", "f1"):
        for other in ("uniform", "own", "imposed_adversary"):
            said = found[measure, "imposed", other]
            assert said["mean"] == pytest.approx(level[measure, "imposed"] - level[measure, other])
            assert said["reference"] == 0
    right = {n: rows.filter(weights=n).sort("example")["correct"].to_torch().double() for n in ("imposed", "own")}
    expected, said = paired_difference(right["imposed"], right["own"]), found["accuracy", "imposed", "own"]
    assert (said["low"], said["high"]) == pytest.approx((expected.low, expected.high))
    golds = [r["gold"] for r in rows.filter(weights="base").to_dicts()]
    assert found["accuracy", "own", ""]["reference"] == max(golds.count("yes"), golds.count("no")) / len(golds)


def test_more_classes_have_the_mean_f1_over_classes() -> None:
    labels = ["x", "y", "z"]
    third = pl.col("example") % 3
    name = third.replace_strict(dict(enumerate(labels)), return_dtype=pl.String)
    said = pl.when(pl.col("example") % 4 == 0).then(pl.lit("x")).otherwise(name)
    rows = rows_of().with_columns(gold=name, predicted=said, positive=pl.lit(None, pl.String))
    (found,) = ASK.summary(rows).filter(measure="f1", weights="own", against="").to_dicts()
    own = rows.filter(weights="own").to_dicts()
    assert found["mean"] == pytest.approx(sum(slow_f1(own, label) for label in labels) / 3)


def test_several_seeds_have_the_mean_f1_over_seeds() -> None:
    wrong = pl.when(pl.col("example") % 3 == 0).then(pl.lit("yes")).otherwise(pl.col("predicted"))
    both = pl.concat([rows_of(0), rows_of(1).with_columns(predicted=wrong)])
    (found,) = ASK.summary(both).filter(measure="f1", weights="own", against="").to_dicts()
    each = [slow_f1(both.filter(weights="own", seed=seed).to_dicts(), "yes") for seed in (0, 1)]
    assert each[0] != each[1]
    assert found["mean"] == pytest.approx(sum(each) / 2)
    assert (found["seeds"], found["n"]) == (2, 2 * len(EXAMPLES))
    (correct,) = ASK.summary(both).filter(measure="accuracy", weights="own", against="").to_dicts()
    values = torch.stack([both.filter(weights="own", seed=s)["correct"].to_torch().double() for s in (0, 1)])
    assert correct["high"] == pytest.approx(min(1.0, interval_of(values).high))


def test_without_the_adversary() -> None:
    alone = {name: found for name, found in companions().items() if "adversary" not in name}
    rows = cell(ASK.rows(beside(SPEC, EXAMPLES, alone)))
    summary = ASK.summary(rows)
    assert set(summary["against"]) == {"", "uniform", "own"}
    assert ASK.tables(rows)["weights"]["weights"].to_list() == ["own", "uniform", "imposed"]


def test_the_adversary_is_held_against_the_base() -> None:
    rows = rows_of()
    table = ASK.tables(rows)["weights"]
    (found,) = table.filter(weights="adversary").to_dicts()
    assert found["tvd"] == pytest.approx(rows.filter(weights="adversary")["tvd"].mean())
    assert found["tvd"] > 0
    kept_before = rows.drop("tvd")  # rows of earlier runs
    assert ASK.tables(kept_before)["weights"].equals(table.drop("tvd"))
    assert ASK.summary(kept_before).equals(ASK.summary(rows))


def test_the_recipes() -> None:
    given = "bilstm:hidden=64,vectors=glove-50,projection=sparsemax,trainable=false,wrap=true"
    recipes = Diagnostic(adversary_lam=0.01, epochs=7, patience=3).companions(given, 4)
    words = "average:vectors=glove-50,trainable=false"
    MODELS.make(words)
    assert recipes == {
        "own": Recipe(model=words),
        "uniform": Recipe(model=words, attention="uniform"),
        "imposed": Recipe(model=words, imposed="base"),
        "adversary": Recipe(objective="adversary:lam=0.01", epochs=7, patience=3, seed=5),
        "imposed_adversary": Recipe(model=words, imposed="adversary"),
    }
    assert list(recipes).index("adversary") < list(recipes).index("imposed_adversary")  # trained before it
    own = Diagnostic(encoder="average:hidden=8,size=4", adversary=False).companions("cnn:size=16", 0)
    assert own["own"] == Recipe(model="average:size=4,hidden=8")
    assert "adversary" not in own


def test_the_figure_draws_what_was_measured() -> None:
    summary = ASK.summary(rows_of())
    table = diagnostic_levels(summary)
    assert table.height == 12
    assert table["weights"].unique(maintain_order=True).to_list()[0] == "the model itself"
    svg = to_svg(ASK.figures(pl.DataFrame(), summary)["diagnostic"])
    assert "the adversary's weights" in svg
    assert "nothing to show" in to_svg(ASK.figures(pl.DataFrame(), summary.head(0))["diagnostic"])


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"encoder": "averag"}, "average"),
        ({"encoder": "average:hidden=0"}, "hidden"),
        ({"adversary_lam": -1.0}, "0 or above"),
        ({"epochs": 0}, "1 or more"),
    ],
)
def test_wrong_settings(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Diagnostic(**settings)  # type: ignore[arg-type]
