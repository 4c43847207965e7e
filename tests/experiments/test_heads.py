"""Heads: silenced, pruned and looked at, recomputed by hand on tiny models, and known by construction."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from scipy import stats

from exegete.base.errors import UsageError
from exegete.base.ties import levels
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.common.section import QuestionResult
from exegete.experiments.heads import section
from exegete.experiments.heads.experiment import Heads
from exegete.experiments.heads.figure import curve_drawn, effects_drawn, looks_drawn
from exegete.experiments.heads.patterns import patterns, punctuation_of
from exegete.experiments.heads.pruning import all_heads, by_chance, by_sensitivity, normalise_heads, slopes, stairs
from exegete.interventions.sites import Head
from exegete.measures.statistics import bootstrap_mean
from exegete.models.contract import Site
from exegete.report.theme import to_svg
from exegete.tasks.example import Example, Task
from exegete.training.evaluation import predict
from tests.models.tiny import bert, in_memory
from tests.small import small_model, texts
from tests.subjects import cell, subject_of

TEXTS = texts(24)
TASK = Task("small", ("no", "yes"), {"train": TEXTS[:8], "dev": TEXTS[8:14], "test": TEXTS}, "made up")
ASK = Heads(importance="", steps=4, draws=2, order_texts=6, texts=None)
WORDS = (("a", "charming", "movie", "."), ("dull",), ("a", "plot", ",", "bad"), ("terrific", "ok"))
REVIEWS = tuple(Example(i, (words,), i % 2) for i, words in enumerate(WORDS))
SMALL = Task("reviews", ("no", "yes"), {"train": REVIEWS, "test": REVIEWS}, "made up")


def layers(heads: int = 3) -> Any:
    return small_model(f"transformer:size=6,hidden=6,heads={heads},inner=10,scale=1,layers=2", TEXTS).double()


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    model = layers()
    longest = max(map(len, TEXTS))
    made = [[float((7 * e.id + i) % 5) if i < len(e) else torch.nan for i in range(longest)] for e in TEXTS]
    scores = {"leave_one_out": torch.tensor(made).double()}
    return cell(Heads(steps=4, draws=2, order_texts=6).rows(subject_of(model, TASK, scores=scores)))


def test_silence_zeroes_what_a_head_gives() -> None:
    """As if the head's columns of the output's weights were 0: a mask ξ = 0 (Michel et al. 2019)."""
    model, other = layers(), layers()
    found = predict(model, TEXTS, lambda site: site.weights * (torch.arange(3) != 1)[:, None, None]
                    if site.name == "encoder.1" else site.weights)  # fmt: skip
    rows = Heads(how=("silence",), importance="", steps=0).rows(subject_of(model, TASK))
    with torch.no_grad():
        other.encoder.layers[1].attention.out.weight[:, 2:4] = 0  # head 1 of size 2
    gone = predict(other, TEXTS)
    torch.testing.assert_close(found, gone)
    own = rows.filter(pl.col("how") == "silence", pl.col("site") == "encoder.1", pl.col("head") == 1).sort("example")
    before = predict(model, TEXTS)
    margins = [z.gather(-1, before.argsort(-1)).diff(dim=-1)[:, 0] for z in (before, gone)]  # of two classes
    loss = margins[0] - margins[1]
    order = np.argsort([e.id for e in TEXTS])
    np.testing.assert_allclose(own["value"].to_numpy(), loss.numpy()[order], atol=1e-9)
    right = (gone.argmax(-1) == torch.tensor([e.label for e in TEXTS])).double().numpy()[order]
    assert own["right"].to_list() == right.tolist()


def test_sinks_are_spared_on_request() -> None:
    """A head of BERT keeps what it has on CLS and SEP, and nothing else."""
    model = in_memory(*bert())
    rows = Heads(importance="", steps=0).rows(subject_of(model, SMALL))

    def by_hand(site: Site) -> torch.Tensor:
        if site.name != "encoder.0":
            return site.weights
        weights = site.weights.clone()
        weights[:, 1] = weights[:, 1].where((site.batch.sentence < 0)[:, None], 0.0)
        return weights

    gone = predict(model, REVIEWS, by_hand).double()
    before = predict(model, REVIEWS).double()
    predicted = before.argmax(-1)
    margin = [z[torch.arange(4), predicted] - z[torch.arange(4), 1 - predicted] for z in (before, gone)]
    own = rows.filter(pl.col("how") == "silence:sinks=false", pl.col("layer") == 0, pl.col("head") == 1)
    np.testing.assert_allclose(own["value"].to_numpy(), (margin[0] - margin[1]).numpy(), atol=1e-5)
    whole = rows.filter(pl.col("how") == "silence", pl.col("layer") == 0, pl.col("head") == 1)
    assert float((whole["value"] - own["value"]).abs().max()) > 1e-3  # type: ignore[arg-type]


def test_a_head_that_nothing_reads_is_worth_nothing() -> None:
    """By construction: its part of the output's weights is 0, so that silencing, slope and pruning all know it."""
    model = layers()
    with torch.no_grad():
        model.encoder.layers[0].attention.out.weight[:, 4:6] = 0
    found = Heads(importance="", steps=6, draws=1, order_texts=6).rows(subject_of(model, TASK))
    dead = pl.col("site") == "encoder.0", pl.col("head") == 2
    assert float(found.filter(pl.col("how") == "silence", *dead)["value"].abs().max()) == 0  # type: ignore[arg-type]
    others = found.filter(pl.col("how") == "silence", ~(dead[0] & dead[1]))
    assert float(others.group_by("site", "head").agg(pl.col("value").abs().max())["value"].min()) > 1e-6  # type: ignore[arg-type]
    assert float(found.filter(pl.col("how") == "unaltered", *dead)["sensitivity"].max()) == 0  # type: ignore[arg-type]
    first = next(iter(by_sensitivity(model, TEXTS[:6], all_heads(model, TEXTS[0]), [1])))
    assert first.gone == (Head("encoder.0", 2),)
    one = found.filter(pl.col("how") == "pruned", pl.col("order") == "sensitivity", pl.col("gone") == 1)
    assert one["value"].abs().to_list() == [0.0] * len(TEXTS)


def test_slopes_are_those_of_small_steps() -> None:
    """∂L/∂ξ by differences, also with a head gone already."""
    model = layers()
    heads, gone = all_heads(model, TEXTS[0]), (Head("encoder.1", 0),)
    assert heads == tuple(Head(f"encoder.{layer}", head) for layer in range(2) for head in range(3))
    found, gold = slopes(model, TEXTS, heads, gone), torch.tensor([e.label for e in TEXTS])
    for place, head in enumerate(heads):
        losses = []
        for step in (-1e-4, 1e-4):

            def scaled(site: Site, step: float = step, head: Head = head) -> torch.Tensor:
                if not site.name.startswith("encoder"):
                    return site.weights
                factor = torch.ones(site.weights.shape[1], dtype=torch.float64)
                factor[0] *= site.name != "encoder.1"
                factor[head.head] *= 1 + step * (site.name == head.site)
                return site.weights * factor[:, None, None]

            logits = predict(model, TEXTS, scaled)
            losses.append(torch.nn.functional.cross_entropy(logits, gold, reduction="none"))
        np.testing.assert_allclose(found[:, place], (losses[1] - losses[0]) / 2e-4, rtol=1e-4, atol=1e-6)
    assert float(found[:, 3].abs().max()) == 0


def test_slopes_of_a_model_of_transformers() -> None:
    model = in_memory(*bert())
    heads = all_heads(model, REVIEWS[0])
    found = slopes(model, REVIEWS, heads)
    step = 1e-2
    for place in (0, 3):
        head = heads[place]
        losses = []
        for sign in (-1, 1):

            def scaled(site: Site, sign: int = sign, head: Head = head) -> torch.Tensor:
                if site.name != head.site:
                    return site.weights
                return site.weights * (1 + sign * step * (torch.arange(2) == head.head))[:, None, None]

            logits = predict(model, REVIEWS, scaled).double()
            losses.append(torch.nn.functional.cross_entropy(logits, torch.tensor([0, 1, 0, 1]), reduction="none"))
        np.testing.assert_allclose(found[:, place], (losses[1] - losses[0]) / (2 * step), atol=2e-3)


def test_importance_is_normalised_within_layers() -> None:
    heads = [Head("a", 0), Head("a", 1), Head("b", 0)]
    found = normalise_heads(torch.tensor([3.0, 4.0, 0.0]), heads)
    torch.testing.assert_close(found, torch.tensor([0.6, 0.8, 0.0]))


def test_orders_of_pruning() -> None:
    assert stairs(4, 10) == [1, 2, 3, 4]
    assert stairs(72, 10)[-1] == 72
    heads = tuple(Head("a", i) for i in range(6))
    steps = list(by_chance(heads, [2, 6], seed=1, draws=3))
    assert [len(step.gone) for step in steps] == [2, 6] * 3
    assert all(set(whole.gone) == set(heads) and whole.gone[:2] == part.gone
               for part, whole in zip(steps[::2], steps[1::2], strict=True))  # fmt: skip
    assert len({step.gone for step in steps}) > 3


def test_the_least_sensitive_heads_go_first_and_are_asked_anew() -> None:
    model = layers()
    heads, some = all_heads(model, TEXTS[0]), TEXTS[8:14]
    gone: tuple[Head, ...] = ()
    for step in by_sensitivity(model, some, heads, [2, 3, 6]):
        left = [head for head in heads if head not in gone]
        size = slopes(model, some, left, gone).abs().mean(0)
        share = [float(size[i] / size[[j for j, o in enumerate(left) if o.site == h.site]].norm())
                 for i, h in enumerate(left)]  # fmt: skip
        least = [left[i] for i in np.argsort(share, kind="stable")[: len(step.gone) - len(gone)]]
        assert set(step.gone) == {*gone, *least}
        gone = step.gone


def test_pruned_heads_give_nothing(rows: pl.DataFrame) -> None:
    """All heads gone: as with no weight at any site of self-attention."""
    model = layers()
    gone = predict(model, TEXTS, lambda site: site.weights * (not site.name.startswith("encoder"))).argmax(-1)
    right = float((gone == torch.tensor([e.label for e in TEXTS])).double().mean())
    curve = Heads(steps=4, draws=2).tables(rows)["pruning"]
    for order in ("sensitivity", "random"):
        last = curve.filter(pl.col("order") == order, pl.col("gone") == 6)
        assert last["mean"].item() == pytest.approx(right)
    assert curve["gone"].unique().sort().to_list() == stairs(6, 4)
    assert curve["unaltered"].n_unique() == 1


def test_patterns_by_hand() -> None:
    """Rows written down: CLS looks at itself, a word at SEP and at the word before, SEP at a comma."""
    model = in_memory(*bert())
    example = Example(0, (("bad", ","),), 0)
    batch = model.collate([example])
    weights = torch.tensor([[1.0, 0, 0, 0], [0, 0.5, 0, 0.5], [0, 0.75, 0.25, 0], [0, 0, 1, 0]])[None, None]
    reach, marks = torch.ones(1, 1, 4, 4).bool(), punctuation_of([example], batch)
    found = {name: float(value) for name, value in patterns(weights, reach, batch, marks).items()}
    entropy = (0 + np.log(2) - (0.75 * np.log(0.75) + 0.25 * np.log(0.25)) + 0) / np.log(4) / 4
    assert found == pytest.approx(
        {
            "first": 0.25, "end": 0.125, "punctuation": 1.25 / 4, "same": (1 + 0.5 + 0.25) / 4,
            "previous": (0.75 + 1) / 4, "next": 0.0, "entropy": entropy, "distance": (0 + 1 + 0.75 + 1) / 4,
            "entropy_without_sinks": -(0.75 * np.log(0.75) + 0.25 * np.log(0.25)) / np.log(2) / 2,
            "distance_without_sinks": 0.75 / 2,
        }
    )  # fmt: skip


def test_patterns_beside_a_sink_are_shares_of_what_words_get() -> None:
    model = in_memory(*bert())
    example = Example(0, (("bad", ","),), 0)
    batch, whole = model.collate([example]), torch.full((1, 1, 4, 4), 0.25)
    marks, reach = punctuation_of([example], batch), torch.ones(1, 1, 4, 4).bool()
    whole_found, part = patterns(whole, reach, batch, marks), patterns(whole * 0.3, reach, batch, marks)
    for name, value in whole_found.items():
        torch.testing.assert_close(part[name], value, atol=1e-7, rtol=0)


@pytest.mark.slow
def test_patterns_within_a_batch_are_those_alone() -> None:
    model = in_memory(*bert())
    together = ASK.rows(subject_of(model, SMALL)).filter(pl.col("how") == "unaltered")
    for example in REVIEWS:
        alone = ASK.rows(subject_of(model, SMALL, (example,))).filter(pl.col("how") == "unaltered")
        for name in ("first", "end", "punctuation", "entropy", "distance_without_sinks"):
            both = [
                f.filter(pl.col("example") == example.id).sort("layer", "head")[name].to_list()
                for f in (together, alone)
            ]
            assert both[0] == pytest.approx(both[1], abs=1e-6, nan_ok=True)


def test_weights_are_held_against_an_importance(rows: pl.DataFrame) -> None:
    """τ-b by scipy: at the first layer, of what words get from all words on average."""
    model = layers()
    for example in TEXTS[:6]:
        with torch.no_grad():
            weights = model.trace(model.collate([example])).attention["encoder.0"][0]
        own = [float((7 * example.id + i) % 5) for i in range(len(example))]
        for head in range(3):
            tau = stats.kendalltau(levels(weights[head].mean(0)), own).statistic
            kept = rows.filter(pl.col("how") == "unaltered", pl.col("site") == "encoder.0", pl.col("head") == head)
            found = kept.filter(pl.col("example") == example.id)["tau"].item()
            assert (found is None and np.isnan(tau)) or found == pytest.approx(tau, abs=1e-9)


def test_the_summary_is_of_texts(rows: pl.DataFrame) -> None:
    summary = ASK.summary(rows)
    assert summary.height == 2 * 6
    kept = rows.filter(pl.col("how") == "silence", pl.col("site") == "encoder.1", pl.col("head") == 0)
    interval = bootstrap_mean(torch.from_numpy(kept["value"].to_numpy().copy()))
    own = summary.filter(pl.col("how") == "silence", pl.col("site") == "encoder.1", pl.col("head") == 0)
    assert own.select("mean", "low", "high").row(0) == pytest.approx(interval[:3])
    before = rows.filter(pl.col("how") == "unaltered", pl.col("site") == "encoder.0", pl.col("head") == 0)[
        "right"
    ].mean()
    assert own["unaltered"].item() == pytest.approx(before)
    assert own["accuracy"].item() == pytest.approx(kept["right"].mean())
    assert own["change"].item() == pytest.approx(kept["right"].mean() - before)  # type: ignore[operator]


def test_correlations_are_over_heads(rows: pl.DataFrame) -> None:
    found = Heads(steps=4).tables(rows)["correlations"]
    worth = rows.filter(pl.col("how") == "silence").group_by("site", "head", maintain_order=True).agg(
        pl.col("value").abs().mean())  # fmt: skip
    looks = rows.filter(pl.col("how") == "unaltered").group_by("site", "head", maintain_order=True).agg(
        pl.col("same", "sensitivity").mean())  # fmt: skip
    for name in ("same", "sensitivity"):
        own = found.filter(pl.col("measure") == name)
        assert own["rho"].item() == pytest.approx(stats.spearmanr(worth["value"], looks[name]).statistic)
        assert own["low"].item() <= own["rho"].item() <= own["high"].item()
    assert found["heads"].unique().to_list() == [6]
    few = Heads(steps=0, importance="").rows(subject_of(layers(1), TASK))
    assert Heads(steps=0, importance="").tables(cell(few))["correlations"]["rho"].null_count() == 11


@pytest.mark.slow
def test_it_is_drawn_and_told(rows: pl.DataFrame, tmp_path: Path) -> None:
    two = pl.concat([rows, rows.with_columns(seed=pl.lit(1), value=pl.col("value") + 0.1)])
    summary, tables = ASK.summary(two), ASK.tables(two)
    drawn = effects_drawn(summary)
    assert drawn["shade"].max() == 1
    assert set(drawn["way"]) == {"all of it", "all but sinks"}
    assert looks_drawn(tables["looks"])["shade"].is_between(0, 1).all()
    assert curve_drawn(tables["pruning"]).filter(pl.col("gone") == 0).height == 2
    charts = ASK.figures(two, summary)
    assert set(charts) == {"heads", "looks", "pruning"}
    for chart in charts.values():
        assert to_svg(chart).startswith("<svg")
    folder = tmp_path / "tables"
    folder.mkdir()
    two.write_parquet(folder / "heads.parquet")
    summary.write_parquet(folder / "heads_summary.parquet")
    for name, table in tables.items():
        table.write_csv(folder / f"heads_{name}.csv")
    found = QuestionResult(tmp_path, "heads", ASK)
    assert section.headline(found).frame.height == 6
    assert [part.title for part in section.sections(found)] == [
        "Which heads does the prediction hang on?", "Where do heads look?", "How many heads can go?",
    ]  # fmt: skip


def test_what_can_not_be_asked_is_refused() -> None:
    with pytest.raises(UsageError, match="no layers of it"):
        ASK.rows(subject_of(small_model("bilstm:size=4,hidden=4", TEXTS), TASK))
    with pytest.raises(UsageError, match="each way once"):
        EXPERIMENTS["heads"].load()(how=("silence", "silence"))
    with pytest.raises(UsageError, match="unknown intervention 'silense'"):
        Heads(how=("silense",))
    with pytest.raises(UsageError, match="steps is 0 or more"):
        Heads(steps=-1)
