"""Seed stability: divergences and medians written again slowly, texts that tell nothing, and toys known by hand."""

import math
from dataclasses import replace
from functools import partial
from itertools import permutations
from statistics import median

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from exegete.base.errors import UsageError
from exegete.experiments.common.pooling import open_pooled
from exegete.experiments.common.summaries import interval_of
from exegete.experiments.seed_stability.experiment import SeedStability, per_text
from exegete.experiments.seed_stability.figure import seed_points, seed_spread
from exegete.interventions import search as searching
from exegete.interventions.search import Search, find
from exegete.interventions.uniform import Uniform
from exegete.measures.bins import BINS
from exegete.models.projections import Gates
from exegete.report.theme import to_svg
from exegete.tasks.example import Example
from exegete.training.recipe import Companion, Recipe
from tests.experiments.beside_models import beside, shaken, slow, slow_jsd, slow_tvd
from tests.small import small_model, texts
from tests.subjects import cell

EXAMPLES = (*texts(14, longest=6), Example(90, (("a",),), 1), Example(91, (("b", "a"),), 1))
DENSE, SPARSE = "bilstm:size=7,hidden=6,scale=1", "average:size=7,hidden=6,scale=1,projection=sparsemax"
ASK = SeedStability(seeds=(0, 1, 2, 3), draws=3)


def companions(spec: str) -> dict[str, Companion]:
    return {f"seed_{seed}": Companion(shaken(spec, EXAMPLES, seed)) for seed in (1, 2, 3)}


@pytest.mark.parametrize("spec", [DENSE, SPARSE])
def test_rows_written_again_slowly(spec: str) -> None:
    others = companions(spec)
    subject = beside(spec, EXAMPLES, others)
    rows = ASK.rows(subject)
    assert rows.height == len(EXAMPLES) * 3
    assert rows["adversary_jsd"].null_count() == rows.height  # nobody asked
    zeros = 0
    for e in EXAMPLES:
        ours, p = slow(subject.model, e)
        zeros += sum(w == 0 for w in ours)
        entropy = -sum(w * math.log(w) for w in ours if w) / math.log(len(e)) if len(e) > 1 else None
        for seed in (1, 2, 3):
            theirs, q = slow(others[f"seed_{seed}"].classifier, e)
            (row,) = rows.filter(example=e.id, other=seed).to_dicts()
            assert row["n"] == len(e)
            assert row["max_attention"] == pytest.approx(max(ours), abs=1e-6)
            assert row["entropy"] == pytest.approx(entropy, abs=1e-5)
            assert row["tvd"] == pytest.approx(slow_tvd(p, q), abs=1e-6)
            assert row["jsd"] == (pytest.approx(slow_jsd(ours, theirs), abs=1e-6) if len(e) > 1 else None)
            assert (row["permuted_jsd"] is None) == (len(e) == 1)
    assert (zeros > 0) == (spec == SPARSE)


def test_the_permuted_divergence_is_the_mean_over_all_orders() -> None:
    """With many draws: every order of the other's weights is as likely as any."""
    examples = tuple(e for e in EXAMPLES if 2 <= len(e) <= 4)
    others = {"seed_1": Companion(shaken(DENSE, EXAMPLES, 1))}
    subject = replace(beside(DENSE, EXAMPLES, others), examples=examples)
    subject = replace(subject, predicted=subject.predicted[: len(examples)])
    rows = SeedStability(draws=3000).rows(subject)
    for e, found in zip(examples, rows["permuted_jsd"], strict=True):
        ours, theirs = slow(subject.model, e)[0], slow(others["seed_1"].classifier, e)[0]
        every = [slow_jsd(ours, order) for order in permutations(theirs)]
        assert found == pytest.approx(sum(every) / len(every), abs=4 * (max(every) - min(every)) / math.sqrt(3000))


def test_a_text_alone_is_a_text_among_others() -> None:
    subject = beside(DENSE, EXAMPLES, companions(DENSE))
    parts = [
        ASK.rows(replace(subject, examples=(e,), predicted=subject.predicted[i : i + 1]))
        for i, e in enumerate(EXAMPLES)
    ]
    whole = ASK.rows(subject)
    assert_frame_equal(pl.concat(parts).sort("example", "other"), whole.sort("example", "other"), abs_tol=1e-5)


def test_the_same_model_is_stable_and_flat_weights_say_nothing() -> None:
    twin = beside(DENSE, EXAMPLES, {"seed_1": Companion(small_model(DENSE, EXAMPLES))})
    rows = cell(ASK.rows(twin))
    long = rows.filter(pl.col("n") > 1)
    assert long["jsd"].to_list() == pytest.approx([0] * long.height, abs=1e-12)
    summary = ASK.summary(rows).filter(pl.col("class") == "all", pl.col("bin") == "all")
    found = {row["measure"]: row for row in summary.to_dicts()}
    assert found["ratio"]["mean"] == pytest.approx(0, abs=1e-9)
    assert found["jsd"]["reference"] == pytest.approx(found["permuted_jsd"]["mean"])
    assert found["jsd"]["reference"] > 0.01
    still = [row for row in rows.to_dicts() if row["n"] == 1 or row["permuted_jsd"] < 1e-9]  # draws that change nothing
    assert found["ratio"]["undefined"] == len(still)
    assert found["jsd"]["undefined"] == sum(len(e) == 1 for e in EXAMPLES) > 0

    flat = small_model("average:size=7,hidden=6,scale=1", EXAMPLES)
    for parameter in flat.scorer.parameters():
        parameter.data.zero_()  # every score is 0: uniform weights, whatever the seed
    subject = beside("average:size=7,hidden=6,scale=1", EXAMPLES, {"seed_1": Companion(flat, Uniform())})
    even = ASK.summary(cell(ASK.rows(replace(subject, model=flat))))
    said = {row["measure"]: row for row in even.filter(pl.col("class") == "all", pl.col("bin") == "all").to_dicts()}
    assert said["jsd"]["mean"] == pytest.approx(0, abs=1e-9)  # as stable as can be, and it means nothing:
    assert (said["ratio"]["n"], said["ratio"]["undefined"], said["ratio"]["mean"]) == (0, len(EXAMPLES), None)


def test_the_summary_written_again_slowly() -> None:
    rows = cell(ASK.rows(beside(DENSE, EXAMPLES, companions(DENSE))))
    summary = ASK.summary(rows)
    by_text: dict[int, list[dict[str, float]]] = {}
    for row in rows.to_dicts():
        by_text.setdefault(row["example"], []).append(row)
    for said in summary.to_dicts():
        values, references = [], []
        for found in by_text.values():
            first = found[0]
            place = BINS[min(3, math.floor(4 * first["max_attention"]))]
            if said["class"] not in ("all", first["predicted"]) or said["bin"] not in ("all", place):
                continue
            if said["measure"] == "tvd":
                values.append(sum(row["tvd"] for row in found) / 3)
            elif first["n"] > 1:
                jsd, shuffled = ([row[name] for row in found] for name in ("jsd", "permuted_jsd"))
                values.append(
                    {"jsd": median(jsd), "permuted_jsd": median(shuffled), "ratio": sum(jsd) / sum(shuffled)}[
                        said["measure"]
                    ]
                )
                references.append(median(shuffled))
        assert said["n"] == len(values)
        assert said["mean"] == (pytest.approx(sum(values) / len(values)) if values else None)
        if said["measure"] == "jsd":
            assert said["reference"] == (pytest.approx(sum(references) / len(references)) if references else None)
        if len(values) > 1:
            assert said["low"] <= said["mean"] <= said["high"]
    counted = summary.filter(pl.col("class") == "all", pl.col("measure") == "jsd")
    bins = counted.filter(pl.col("bin") != "all")
    assert sum(bins["n"]) == counted["n"][0]
    assert sum(bins["undefined"]) == counted["undefined"][0] == sum(len(e) == 1 for e in EXAMPLES)


def test_several_bases_have_an_interval_over_seeds_and_texts() -> None:
    rows = ASK.rows(beside(DENSE, EXAMPLES, companions(DENSE)))
    wider = rows.with_columns(pl.col("jsd") * 1.5)
    both = pl.concat([cell(rows), cell(wider, seed=1)])
    (said,) = ASK.summary(both).filter(pl.col("class") == "all", pl.col("bin") == "all", measure="jsd").to_dicts()
    values = per_text(both).pivot("seed", index="example", values="jsd").drop("example").fill_null(math.nan)
    expected = interval_of(values.to_torch().T)
    assert said["seeds"] == 2
    assert (said["mean"], said["high"]) == pytest.approx((expected.mean, min(math.log(2), expected.high)))


def test_searched_adversaries_stand_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "Search", partial(Search, steps=60, lr=0.05))
    few = EXAMPLES[-3:]
    subject = replace(beside(DENSE, EXAMPLES, companions(DENSE)), examples=few)
    subject = replace(subject, predicted=subject.predicted[: len(few)])
    asked = replace(ASK, adversaries=True)
    rows = asked.rows(subject)
    for e in few:
        (value,) = rows.filter(example=e.id)["adversary_jsd"].unique().to_list()
        if len(e) == 1:
            assert value is None
            continue
        model = small_model(DENSE, EXAMPLES)
        (batch,) = open_pooled(model, [e])
        found = find(batch.opened, searching.Search())
        near = [j for j, t in zip(found.jsd[0].tolist(), found.tvd[0].tolist(), strict=True) if t <= 0.01]
        assert value == pytest.approx(max([0.0, *near]), abs=1e-3)  # steps of single precision
    assert "adversary_jsd" in asked.summary(cell(rows))["measure"].to_list()
    assert "adversary_jsd" not in ASK.summary(cell(rows))["measure"].to_list()


def test_the_pairs_are_a_table() -> None:
    rows = cell(ASK.rows(beside(DENSE, EXAMPLES, companions(DENSE))))
    pairs = ASK.tables(rows)["pairs"]
    assert pairs["other"].to_list() == [1, 2, 3]
    one = rows.filter(other=2)
    assert pairs["jsd"][1] == pytest.approx(one["jsd"].mean())
    assert pairs["undefined"][1] == one["jsd"].null_count()


def test_the_figures_draw_what_was_measured() -> None:
    rows = cell(ASK.rows(beside(DENSE, EXAMPLES, companions(DENSE))))
    drawn = seed_spread(per_text(rows))
    medians = drawn.filter(kind="median", group="other seeds")
    mine = per_text(rows).filter(pl.col("jsd").is_not_null())
    for row in medians.to_dicts():
        own = mine.filter(bin=row["bin"])
        assert row["n"] == own.height
        assert row["x"] == pytest.approx(own["jsd"].median(), abs=1e-4)
    assert set(medians["bin"]) == {name for (name,), own in mine.group_by("bin") if own.height >= 5}  # ticks otherwise
    assert drawn["x"].max() == pytest.approx(math.log(2), abs=1e-4)
    assert seed_points(per_text(rows)).height == mine.height
    charts = ASK.figures(rows, ASK.summary(rows))
    assert "other seeds, permuted" in to_svg(charts["violins"])
    assert "TVD of predictions" in to_svg(charts["scatter"])
    lone = rows.filter(pl.col("n") == 1)
    assert all("nothing to show" in to_svg(chart) for chart in ASK.figures(lone, ASK.summary(lone)).values())


def test_a_models_own_seed_is_left_out() -> None:
    assert SeedStability(seeds=(0, 1, 2)).companions("bilstm", 1) == {
        "seed_0": Recipe(seed=0),
        "seed_2": Recipe(seed=2),
    }
    assert list(SeedStability().companions("bilstm", 0)) == ["seed_1", "seed_2", "seed_3", "seed_4"]


def test_gates_are_no_distribution() -> None:
    model = small_model("bilstm:size=7,hidden=6,projection=gates", EXAMPLES)
    assert isinstance(model.project, Gates)
    subject = beside(DENSE, EXAMPLES, {})
    assert "don't sum to 1" in str(ASK.unsuited(subject.task, model))
    assert ASK.unsuited(subject.task, subject.model) is None


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [({"seeds": (1,)}, "at least two seeds"), ({"seeds": (1, 1)}, "every one once"), ({"draws": 0}, "1 or more")],
)
def test_wrong_settings(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        SeedStability(**settings)  # type: ignore[arg-type]
