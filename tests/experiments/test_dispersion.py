"""Dispersion: rows known by hand and recomputed slowly, ceilings, the sign of table 2, and what is not for it."""

import math
from dataclasses import replace
from functools import cache

import polars as pl
import pytest
import torch
from scipy import stats

from exegete.base.errors import UsageError
from exegete.experiments.common.contract import Subject, unsuited
from exegete.experiments.dispersion import figure as drawn
from exegete.experiments.dispersion.experiment import GRADIENT, Dispersion
from exegete.experiments.dispersion.state_importance import state_importance
from exegete.experiments.dispersion.summary import COEFFICIENTS, MEASURES, OF_STATES, PAIRS, dial, tidy, with_dials
from exegete.experiments.dispersion.sweep import FEW_POINTS, FEW_SEEDS, moves
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import Importance
from exegete.measures.statistics import bootstrap_mean
from exegete.models.build import make_classifier
from exegete.models.ours.classifier import PoolingClassifier
from exegete.report.theme import numbers, to_svg
from exegete.tasks.example import Example, Task
from exegete.tasks.vocabulary import fit_vocabulary
from tests.experiments.test_state_importance import slow_shares
from tests.small import batch_of, small_model, texts, without_repeats
from tests.subjects import cell, subject_of

EXAMPLES = (*without_repeats(texts(11, seed=3, longest=7)), Example(50, (("a",),), 0))
TASK = Task("hand", ("no", "yes"), {"train": EXAMPLES[:4], "test": EXAMPLES}, "by hand")
ASK = Dispersion(jacobian_texts=None)
BILSTM = "bilstm:size=7,hidden=6,scale=1"
SPARSE = f"{BILSTM},projection=sparsemax"


def subject(spec: str = BILSTM, ask: Dispersion = ASK, examples: tuple[Example, ...] = EXAMPLES) -> Subject:
    model = small_model(spec, EXAMPLES)
    return of_model(model, ask, examples)


@cache
def rows_of(spec: str = BILSTM) -> pl.DataFrame:
    return ASK.rows(subject(spec))


def of_model(model: PoolingClassifier, ask: Dispersion = ASK, examples: tuple[Example, ...] = EXAMPLES) -> Subject:
    scores = {}
    for name in ask.importances:
        importance: Importance = IMPORTANCES.make(name)
        values = importance(model, batch_of(model, examples)).values.detach().double()
        words = batch_of(model, examples).words
        scores[name] = torch.full((len(examples), max(map(len, examples))), math.nan, dtype=torch.float64)
        for row, e in enumerate(examples):
            scores[name][row, : len(e)] = values[row][words[row]]
    return subject_of(model, TASK, examples, scores=scores)


def entropy(p: list[float]) -> float | None:
    if len(p) < 2 or sum(p) == 0:
        return None
    return -sum(x / sum(p) * math.log(x / sum(p)) for x in p if x > 0) / math.log(len(p))


def close(got: float | None, expected: float | None) -> bool:
    if got is None or expected is None or expected != expected:
        return got is None and (expected is None or expected != expected)
    return abs(got - expected) < 1e-5


@pytest.mark.parametrize("spec", [BILSTM, SPARSE, "bigru:size=5,hidden=4,scale=1", "cnn:size=5,hidden=8,scale=1"])
def test_rows_recomputed_slowly(spec: str) -> None:
    whole = subject(spec)
    assert isinstance(whole.model, PoolingClassifier)
    states = state_importance(whole.model, whole.examples, whole.predicted)
    for i, row in enumerate(rows_of(spec).iter_rows(named=True)):
        n = len(EXAMPLES[i])
        of = {name: whole.scores[name][i, :n].tolist() for name in ASK.importances}
        alpha = of["attention"]
        names = ("attention", "gradient_inputs", "leave_one_out_inputs")
        for name, importance in zip(names, ASK.importances, strict=True):
            assert close(row[f"entropy_{name}"], entropy(of[importance]))
        assert row["support"] == sum(a > 0 for a in alpha)
        others = [of[GRADIENT], of["leave_one_out"], *(s[i, :n].tolist() for s in states)]
        for pair, other in zip(PAIRS, others, strict=True):
            expected = stats.kendalltau(alpha, other).statistic if n > 1 else None
            assert close(row[f"tau_{pair}"], expected)
            kept = [(a, o) for a, o in zip(alpha, other, strict=True) if a > 0]
            inside = stats.kendalltau(*zip(*kept, strict=True)).statistic if len(kept) > 1 else None
            assert close(row[f"inside_{pair}"], inside)
        shares = slow_shares(whole.model, EXAMPLES[i])
        by_state = [h for p in shares if (h := entropy(p)) is not None and h == h]
        own = [p[k] for k, p in enumerate(shares) if p[k] == p[k]]
        assert close(row["entropy_gradient_on_states"], sum(by_state) / len(by_state) if by_state else None)
        assert close(row["own_share"], sum(own) / len(own) if own and n > 1 else None)


def test_single_words_are_their_own_states() -> None:
    """Without a context word i is all of h_i: share 1, rank 1, entropy 0."""
    rows = rows_of("average:size=7,hidden=6,scale=1").filter(pl.col("n") > 1)
    assert rows["own_share"].to_list() == pytest.approx([1] * rows.height)
    assert rows["own_rank"].unique().to_list() == [1]
    assert rows["entropy_gradient_on_states"].to_list() == pytest.approx([0] * rows.height, abs=1e-12)


def test_one_word_has_no_entropy_and_no_tau() -> None:
    row = rows_of().row(by_predicate=pl.col("example") == 50, named=True)
    assert row["n"] == row["support"] == 1
    assert all(row[measure] is None for measure in MEASURES if measure != "support_share")
    summary = ASK.summary(cell(rows_of()))
    ones = sum(len(e) == 1 for e in EXAMPLES)
    counted = summary.filter(pl.col("measure") == "entropy_attention")
    assert (counted["n"].item(), counted["undefined"].item()) == (len(EXAMPLES) - ones, ones)


def test_one_hot_attention_and_its_ceiling() -> None:
    """s non-zeros among n words: τ-b with an untied ranking can't exceed √(1 − C(n−s,2)/C(n,2))."""
    rows = rows_of(f"{BILSTM},projection=sparsegen,lam=0.9999").filter(pl.col("n") > 2)
    assert set(rows["support"]) == {1}
    assert rows["entropy_attention"].abs().max() == 0
    for row in rows.iter_rows(named=True):
        n = row["n"]
        ceiling = math.sqrt(1 - math.comb(n - 1, 2) / math.comb(n, 2))
        assert row["maximum_gradient_inputs"] == pytest.approx(ceiling)
        assert row["corrected_gradient_inputs"] == pytest.approx(row["tau_gradient_inputs"] / ceiling)
        assert row["tau_gradient_states"] == pytest.approx(1)  # by construction: zeros meet zeros
        assert row["tau_leave_one_out_states"] == pytest.approx(1)
        assert row["inside_gradient_states"] is None  # nothing to order


def test_states_of_sparse_attention_tie_where_it_does() -> None:
    sparse = rows_of(SPARSE)
    assert (sparse["support"] < sparse["n"]).any()
    assert sparse["maximum_leave_one_out_states_projected"].drop_nulls().min() == pytest.approx(1)
    dense = rows_of()
    assert dense["tau_gradient_states_detached"].drop_nulls().min() == pytest.approx(1)
    assert dense.filter(pl.col("tau_gradient_states") < 1).height


def test_shards_agree_on_who_is_asked_for_states() -> None:
    some = Dispersion(jacobian_texts=5)
    whole = some.rows(subject(ask=some))
    halves = [some.rows(subject(ask=some, examples=part)) for part in (EXAMPLES[:6], EXAMPLES[6:])]
    parts = pl.concat(halves)
    assert whole["jacobian"].sum() == 5
    assert whole["jacobian"].to_list() == parts["jacobian"].to_list()
    assert whole.filter(~pl.col("jacobian"))["own_share"].null_count() == whole.height - 5
    full = rows_of()
    for name in (*MEASURES[:-1],):
        for got, expected, asked in zip(parts[name], full[name], whole["jacobian"], strict=True):
            assert (name in OF_STATES and not asked) or close(got, expected)
    counted = some.summary(cell(whole)).filter(pl.col("measure") == "own_share")
    assert counted["n"].item() + counted["undefined"].item() == 5  # those that weren't asked are not undefined
    assert Dispersion(jacobian_texts=0).rows(subject())["own_rank"].null_count() == len(EXAMPLES)


def test_the_summary_recomputed() -> None:
    rows = cell(rows_of())
    summary = ASK.summary(rows)
    assert summary.height == len(MEASURES)
    for row in summary.filter(pl.col("measure") != "support_share").iter_rows(named=True):
        values = rows[row["measure"]]
        expected = bootstrap_mean(torch.tensor(values.drop_nulls().to_list(), dtype=torch.float64))
        assert (row["n"], row["undefined"]) == (expected.n, values.null_count())
        got = (row["mean"], row["low"], row["high"])
        assert got == pytest.approx((expected.mean, expected.low, min(1, expected.high)), abs=1e-9) or (
            row["measure"] == "own_rank" and got == pytest.approx(expected[:3])
        )
    reference = dict(summary.select("measure", "reference").iter_rows())
    n = rows.filter(pl.col("n") > 1)["n"]
    assert reference["own_share"] == pytest.approx((1 / n).mean())
    assert reference["own_rank"] == pytest.approx(((n + 1) / 2).mean())
    assert (reference["entropy_attention"], reference["tau_gradient_states"]) == (1, 0)
    assert reference["maximum_gradient_inputs"] is None


def swept(slope: float, texts: int = 12, seed: int = 0) -> pl.DataFrame:
    """Made-up rows: the entropy of the gradient moves with λ, everything else stays."""
    parts = []
    for place, lam in enumerate((-10, -1, 0, 0.5, 0.9)):
        model = SPARSE if lam == 0 else f"{BILSTM},projection=sparsegen,lam={lam}"
        base = {
            "example": list(range(texts)), "n": [9] * texts, "gold": ["no"] * texts, "predicted": ["no", "yes"] * 6,
            "support": [9 - place] * texts, "train_texts": [40] * texts, "split_texts": [texts] * texts,
            "jacobian": [True] * texts,
        }  # fmt: skip
        rest = {m: [0.375 + i / 32 for i in range(texts)] for m in MEASURES if m != "support_share"}
        moved = {"entropy_gradient_inputs": [0.5 + slope * place + 0.01 * i for i in range(texts)]}
        parts.append(cell(pl.DataFrame(base | rest | moved), seed, model))
    return pl.concat(parts)


@pytest.mark.parametrize(("slope", "sign", "says"), [(-0.02, -1, "falls"), (0.02, 1, "rises")])
def test_the_sign_of_table_2(slope: float, sign: int, says: str) -> None:
    """Larger λ is sparser: an entropy that falls with λ has a negative τ."""
    tables = ASK.tables(swept(slope))
    two = tables["meister_2"]
    assert two["reading"].to_list() == ["grid", "pooled", "text"]
    assert two["small"].to_list()[0::2] == [sign, sign]
    assert two["small n"].to_list() == [5, 60, 12]
    lams = [lam for lam in (-10, -1, 0, 0.5, 0.9) for _ in range(12)]
    values = [0.5 + slope * place + 0.01 * i for place in range(5) for i in range(12)]
    expected = stats.kendalltau(lams, values)
    assert two["small"].to_list()[1] == pytest.approx(expected.statistic)
    assert two["small p"].to_list() == [pytest.approx(2 / 120), None, None]  # 2 of the 120 orders of 5 points
    moving = f"{says} as attention gets sparser"
    assert two["small meaning"].to_list() == [moving, FEW_SEEDS, FEW_SEEDS]
    for seeds, expected_meaning in ((4, FEW_SEEDS), (5, moving)):
        many = with_dials(tidy(pl.concat([swept(slope, seed=seed) for seed in range(seeds)])))
        found = moves(many.filter(measure="entropy_gradient_inputs"))
        assert found["seeds"].to_list() == [seeds] * 3
        assert found["meaning"].to_list() == [moving, expected_meaning, expected_meaning]
        assert found["p"].null_count() == (2 if seeds == 4 else 0)
    still = tables["sweep"].filter(measure="tau_gradient_inputs", reading="grid")
    assert still["tau"].item() is None  # the same at every λ: undefined, and it says so
    assert still["meaning"].item() == "undefined"
    falls = tables["sweep"].filter(measure="support_share", reading="grid")["tau"].item()
    assert falls == -1


def test_four_values_of_lambda_are_too_few_for_a_claim() -> None:
    """In perfect order they have p = 2/24."""
    four = ASK.tables(swept(-0.02).filter(~pl.col("model").str.contains("lam=0.9")))["sweep"]
    grid = four.filter(measure="entropy_gradient_inputs", reading="grid").row(0, named=True)
    assert (grid["tau"], grid["p"], grid["meaning"]) == (-1, pytest.approx(2 / 24), FEW_POINTS)


def test_too_few_values_of_lambda_are_no_sweep() -> None:
    two = swept(-0.02).filter(pl.col("model").str.contains("lam=-1") | pl.col("model").str.contains("sparsemax"))
    two = two.filter(~pl.col("model").str.contains("lam=-10"))
    assert "meister_2" not in ASK.tables(two)
    assert set(ASK.figures(two, ASK.summary(two))) == {"correlation", "entropy"}


def test_the_papers_tables() -> None:
    rows = pl.concat([cell(rows_of(spec), model=spec, task=task) for spec in (BILSTM, SPARSE) for task in ("x", "y")])
    tables = ASK.tables(rows)
    one, three, six = (tables[f"meister_{k}"] for k in (1, 3, 6))
    assert one.columns == ["model", "x", "x std", "x n", "y", "y std", "y n"]
    mine = rows.filter(pl.col("model") == SPARSE, pl.col("task") == "x")
    values = mine["entropy_gradient_on_states"].drop_nulls()
    assert one.row(1) == pytest.approx((SPARSE, *(values.mean(), values.std(ddof=0), len(values)) * 2))
    right = (mine["gold"] == mine["predicted"]).mean()
    assert three.row(0, named=True) == pytest.approx(three.row(0, named=True) | {SPARSE: right, "train_texts": 4})
    assert (three["split_texts"][0], three["asked"][0]) == (12, 12)
    assert six.height == len(COEFFICIENTS) * 2 * 2
    shown = six.filter(coefficient="tau", of="states").row(1, named=True)
    assert shown["y leave_one_out"] == pytest.approx(mine["tau_leave_one_out_states"].mean())
    other = replace(ASK, detach=True, removal="project").tables(rows)["meister_6"]
    shown = other.filter(coefficient="tau", of="states").row(1, named=True)
    assert shown["y gradient"] == pytest.approx(mine["tau_gradient_states_detached"].mean())
    assert shown["y leave_one_out"] == pytest.approx(mine["tau_leave_one_out_states_projected"].mean())


@pytest.mark.slow
def test_figures_draw_what_was_measured() -> None:
    rows = swept(-0.02)
    summary = ASK.summary(rows)
    charts = ASK.figures(rows, summary)
    assert set(charts) == {"correlation", "entropy", "correlation_by_lambda", "entropy_by_lambda"}
    assert all(to_svg(chart).startswith("<svg") for chart in charts.values())
    table = numbers(charts["entropy_by_lambda"])
    assert table is not None
    line = table.filter(series="gradient, words for the output")
    assert line["lam"].to_list() == [-10, -1, 0, 0.5, 0.9]
    assert line["mean"].to_list() == pytest.approx([0.555 - 0.02 * place for place in range(5)])
    assert (
        drawn.dispersion_lines(summary, {"gradient_inputs": "g"}, {"maximum": "τ"})["kind"].unique().item() == "maximum"
    )
    assert drawn.spreads(rows.with_columns(projection=pl.lit("softmax"), lam=pl.lit(None)))["median"].null_count() == 0
    empty = summary.head(0)
    assert "nothing to show" in to_svg(drawn.correlation(empty))
    assert "nothing to show" in to_svg(drawn.correlation_by_lambda(empty))


def test_dials_of_a_model() -> None:
    assert dial("bilstm:projection=entmax,alpha=1.3,hidden=9") == ("bilstm:hidden=9", "entmax", None)
    assert dial("runs/one") == ("runs/one", None, None)
    assert dial(SPARSE)[0] == dial(BILSTM)[0] == BILSTM


def other(spec: str) -> PoolingClassifier:
    model = make_classifier(spec, fit_vocabulary(EXAMPLES), TASK.labels).eval()
    assert isinstance(model, PoolingClassifier)
    return model


def test_a_model_that_attends_over_sentences_is_not_for_it() -> None:
    model = other("hierarchical:size=6,hidden=4")
    reason = unsuited(ASK, TASK, model)
    assert reason is not None
    assert "ask about a model with one state per word" in reason
    with pytest.raises(UsageError, match="one state per word"):
        ASK.rows(replace(subject(), model=model))


@pytest.mark.parametrize("spec", ["ladder:size=6,share=1", "flat:size=6,encoder=none", "rationale:size=6,hidden=4"])
def test_other_models_with_a_state_per_word(spec: str) -> None:
    model = other(spec)
    assert unsuited(ASK, TASK, model) is None
    rows = ASK.rows(of_model(model))
    defined = (rows["support"] > 0) & (rows["n"] > 1)  # an untrained rationale model may select nothing
    assert rows["entropy_attention"].is_not_null().to_list() == defined.to_list()
    if spec.startswith("ladder"):  # a vote is its word's own, and counts as much as its weight
        assert rows["own_share"].drop_nulls().min() == pytest.approx(1)
        assert rows["tau_gradient_states"].drop_nulls().min() == pytest.approx(1)


def test_wrong_settings_and_refusals() -> None:
    with pytest.raises(UsageError, match="jacobian_texts is a number of texts"):
        Dispersion(jacobian_texts=-1)
    with pytest.raises(UsageError, match="needs attention: not today"):
        ASK.rows(replace(subject(), refused={"attention": "not today"}))
    with pytest.raises(UsageError, match="less than 1"):
        other("bilstm:projection=sparsegen,lam=1")


def test_logits_instead_of_probabilities() -> None:
    ask = Dispersion(of="logit")
    assert ask.importances[2] == "leave_one_out:of=logit"
    rows, usual = ask.rows(subject(ask=ask)), rows_of()
    assert rows["entropy_leave_one_out_inputs"].to_list() != usual["entropy_leave_one_out_inputs"].to_list()
    assert rows["entropy_gradient_inputs"].to_list() == usual["entropy_gradient_inputs"].to_list()
