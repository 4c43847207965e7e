"""Reliance: points known by hand, the adversary chosen on other texts, and what is said of too few points."""

import itertools
from dataclasses import replace

import polars as pl
import pytest

from exegete.base.errors import UsageError
from exegete.experiments.adversary_training.experiment import AdversaryTraining
from exegete.experiments.diagnostic.experiment import Diagnostic
from exegete.experiments.necessity.experiment import Necessity
from exegete.experiments.reliance.experiment import SHARED, Reliance
from exegete.experiments.reliance.figure import reliance_points
from exegete.interventions.uniform import Uniform
from exegete.report.theme import to_svg
from exegete.tasks.example import Example
from exegete.training.recipe import Companion, Recipe
from tests.experiments.beside_models import beside, shaken, slow, slow_jsd, slow_tvd
from tests.margins import clear, lead
from tests.small import texts
from tests.subjects import cell

EXAMPLES = (*texts(12, longest=6), Example(90, (("a",),), 1))
SPEC = "bilstm:size=7,hidden=6,scale=1"
ASK = Reliance(lams=(0.001, 0.01))


def companions() -> dict[str, Companion]:
    return {
        "uniform": Companion(shaken(SPEC, EXAMPLES, 1), Uniform()),
        "adversary_0.001": Companion(shaken(SPEC, EXAMPLES, 2)),
        "adversary_0.01": Companion(shaken(SPEC, EXAMPLES, 3)),
    }


def test_rows_written_again_slowly() -> None:
    others = companions()
    subject = beside(SPEC, EXAMPLES, others)
    rows = ASK.rows(subject)
    assert rows.height == 3 * len(EXAMPLES)
    assert rows.filter(companion="uniform")["lam"].null_count() == len(EXAMPLES)
    with clear() as sure:
        for e, (name, other) in itertools.product(EXAMPLES, others.items()):
            ours, p = slow(subject.model, e)
            theirs, q = slow(other.classifier, e, other.intervene)
            kind, _, lam = name.partition("_")
            same = pl.col("lam").eq_missing(pl.lit(float(lam) if lam else None, pl.Float64))
            (row,) = rows.filter(same, companion=kind, example=e.id).to_dicts()
            if sure(lead(p), lead(q)):
                assert row["correct"] == int((p[1] > p[0]) == (e.label == 1))
                assert row["companion_correct"] == int((q[1] > q[0]) == (e.label == 1))
            assert row["tvd"] == pytest.approx(slow_tvd(p, q), abs=1e-6)
            assert row["jsd"] == (pytest.approx(slow_jsd(ours, theirs), abs=1e-6) if len(e) > 1 else None)


def by_hand(split: str, adversaries: dict[float, tuple[float, float]], right: int = 3) -> pl.DataFrame:
    """Four texts: the base is right in all, uniform in `right`, an adversary in two; TVD and JSD by λ."""
    companions = [("uniform", None, (0.2, 0.1)), *(("adversary", lam, found) for lam, found in adversaries.items())]
    rows = [
        {
            "example": i, "n": 5, "gold": "no", "predicted": "no", "correct": 1, "companion": kind, "lam": lam,
            "companion_correct": int(i < (right if kind == "uniform" else 2)), "tvd": tvd, "jsd": jsd,
        }
        for kind, lam, (tvd, jsd) in companions
        for i in range(4)
    ]  # fmt: skip
    return cell(pl.DataFrame(rows, schema_overrides={"lam": pl.Float64}), split=split)


def test_a_point_known_by_hand() -> None:
    """On dev 0.003 is the furthest that predicts the same; on test another one would be."""
    dev = by_hand("dev", {0.001: (0.01, 0.2), 0.003: (0.05, 0.3), 0.01: (0.06, 0.6)})
    test = by_hand("test", {0.001: (0.01, 0.5), 0.003: (0.04, 0.25), 0.01: (0.02, 0.6)})
    (point,) = ASK.summary(pl.concat([dev, test])).to_dicts()
    assert point["lam"] == 0.003
    assert (point["drop"], point["jsd"], point["tvd"], point["lost"]) == pytest.approx((0.25, 0.25, 0.04, 0.5))
    assert point["drop_low"] <= 0.25 <= point["drop_high"]
    assert (point["jsd_low"], point["jsd_high"]) == pytest.approx((0.25, 0.25))
    assert (point["n"], point["undefined"]) == (4, 0)


def test_an_adversary_that_never_predicts_the_same_is_no_number() -> None:
    far = {0.001: (0.3, 0.5), 0.01: (0.06, 0.6)}
    both = pl.concat([by_hand("dev", far), by_hand("test", far)])
    (point,) = ASK.summary(both).to_dicts()
    assert (point["lam"], point["jsd"], point["lost"], point["drop"]) == (None, None, None, 0.25)
    assert replace(ASK, tolerance=0.1).summary(both)["lam"].to_list() == [0.01]
    relation = ASK.tables(both)["relation"]
    assert set(relation["n"]) == {0}
    assert set(relation["undefined"]) == {1}
    assert not ASK.tables(both)["adversaries"]["same"].any()
    assert "nothing to show" in to_svg(ASK.figures(both, ASK.summary(both))["reliance"])


def many(n: int, seeds: int = 1) -> pl.DataFrame:
    """Points of other models: what uniform weights cost falls, and JSD grows, a little with the seed too."""
    parts = []
    for model, seed in itertools.product(range(n), range(seeds)):
        found = {0.001: (0.01, 0.1 + 0.1 * model + 0.01 * seed)}
        which = {"model": pl.lit(f"bilstm:hidden={model + 1}"), "seed": pl.lit(seed)}
        parts += [by_hand(split, found, right=model).with_columns(**which) for split in ("dev", "test")]
    return pl.concat(parts)


def test_the_relation_over_points() -> None:
    relation = ASK.tables(many(4))["relation"]
    for row in relation.filter(y="jsd").to_dicts():
        assert (row["n"], row["value"], row["note"]) == (4, pytest.approx(-1), "")
        assert row["p"] == pytest.approx(2 / 24)  # two of the 24 orders of four points are as extreme
    assert set(relation.filter(y="lost")["note"]) == {"one of the two does not vary"}
    few = ASK.tables(many(3))["relation"]
    assert set(few["note"]) == {"too few"}
    assert few["value"].null_count() == few.height


def test_seeds_are_no_points() -> None:
    """Four models of three seeds are four points, and three models are too few whatever their seeds."""
    rows = many(4, seeds=3)
    assert ASK.summary(rows).height == 12
    tables = ASK.tables(rows)
    assert tables["points"]["jsd"].to_list() == pytest.approx([0.11, 0.21, 0.31, 0.41])
    assert tables["points"].select("seeds", "without").unique().rows() == [(3, 0)]
    for row in tables["relation"].filter(y="jsd").to_dicts():
        assert (row["n"], row["p"]) == (4, pytest.approx(2 / 24))
    assert set(ASK.tables(many(3, seeds=5))["relation"]["note"]) == {"too few"}


def test_a_seed_without_an_adversary_is_left_out_of_both_means() -> None:
    near, far = {0.001: (0.01, 0.3)}, {0.001: (0.9, 0.6)}
    seeds = [(0, near, 3), (1, near, 1), (2, far, 0)]
    rows = pl.concat(
        by_hand(split, found, right).with_columns(seed=pl.lit(seed))
        for seed, found, right in seeds
        for split in ("dev", "test")
    )
    (point,) = ASK.tables(rows)["points"].to_dicts()
    assert (point["drop"], point["jsd"], point["seeds"], point["without"]) == pytest.approx((0.5, 0.3, 2, 1))


def test_what_shares_the_bases_accuracy_has_no_p() -> None:
    """Adversaries and uniform models are all alike; only the base's luck differs, and x and y go together fully."""
    parts = []
    for model in range(6):
        right = pl.when(pl.col("example") < model % 4).then(0).otherwise(1)
        which = {"model": pl.lit(f"bilstm:hidden={model + 1}"), "correct": right}
        parts += [by_hand(split, {0.001: (0.01, 0.1 * model)}).with_columns(**which) for split in ("dev", "test")]
    relation = ASK.tables(pl.concat(parts))["relation"]
    for row in relation.filter(y="lost").to_dicts():
        assert (row["value"], row["low"], row["high"], row["p"]) == (pytest.approx(1), None, None, None)
        assert row["note"] == SHARED
    assert relation.filter(y="jsd")["p"].null_count() == 0


def test_the_figure_draws_every_trained_model() -> None:
    rows = many(4, seeds=2)
    summary = ASK.summary(rows)
    table = reliance_points(summary)
    assert table.height == 2 * 4 * 2
    assert table.filter(what="JSD of the best adversary")["y"].to_list()[::2] == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert table["x"].to_list()[:8:2] == pytest.approx([1, 0.75, 0.5, 0.25])
    assert "accuracy lost with uniform attention" in to_svg(ASK.figures(rows, summary)["reliance"])


def test_the_recipes() -> None:
    assert Reliance(lams=(0.001,), epochs=7, patience=2).companions("bilstm", 3) == {
        "uniform": Recipe(attention="uniform"),
        "adversary_0.001": Recipe(objective="adversary:lam=0.001", epochs=7, patience=2, seed=4),
    }
    assert ASK.splits == ("dev", "test")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"lams": ()}, "at least one"),
        ({"lams": (0.1, 0.1)}, "every one once"),
        ({"lams": (-0.1,)}, "0 or above"),
        ({"epochs": 0}, "1 or more"),
        ({"tolerance": 0.0}, "TVD"),
        ({"choose_on": "test"}, "another split"),
    ],
)
def test_wrong_settings(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Reliance(**settings)  # type: ignore[arg-type]


def test_trainings_are_shared_with_other_experiments() -> None:
    """Recipes that are equal are trained once, whoever asks for them."""
    ours = Reliance().companions("bilstm", 0)
    theirs = [*AdversaryTraining().companions("bilstm", 0).values(), *Necessity().companions("bilstm", 0).values()]
    assert all(recipe in theirs for recipe in ours.values())
    assert Diagnostic().companions("bilstm", 0)["adversary"] in ours.values()
