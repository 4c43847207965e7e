"""Permutation: medians recomputed slowly, answers known by hand, single keys counted, and the violins."""

import math
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.base.noise import stable_seed
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.common.contract import Subject, unsuited
from exegete.experiments.common.counterfactuals import margins, median
from exegete.experiments.common.pooling import open_pooled
from exegete.experiments.common.section import QuestionResult
from exegete.experiments.common.statistic import Evidence
from exegete.experiments.permutation.experiment import Permutation
from exegete.experiments.permutation.statistics import used
from exegete.interventions.permute import Permute, permuted
from exegete.measures.bins import BINS, bin_of
from exegete.measures.statistics import bootstrap_mean
from exegete.models.capabilities import Encoded
from exegete.models.ours.classifier import PoolingClassifier
from exegete.report.theme import to_svg
from exegete.report.violin import Axis, shapes, violin
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example, Task
from exegete.training.evaluation import predict
from tests.small import decoder_of, small_model, texts
from tests.subjects import cell, subject_of
from tests.toy import Toy

SPEC = "bilstm:size=7,hidden=6,scale=1"
EXAMPLES = (*texts(30), Example(90, (("a",),), 0))
LABELS = ("no", "yes", "maybe")


def subject(labels: tuple[str, ...] = LABELS, examples: tuple[Example, ...] = EXAMPLES) -> Subject:
    model = small_model(SPEC, examples, labels=labels)
    task = Task("small", labels, {"test": examples}, "made up")
    return subject_of(model, task)


def softmax(z: list[float]) -> list[float]:
    total = sum(map(math.exp, z))
    return [math.exp(x) / total for x in z]


def slow(
    model: PoolingClassifier, encoded: Encoded, row: int, own: Tensor, draws: Tensor
) -> tuple[float, float, float]:
    """One text, permutation by permutation, from the states: contexts, decoder, softmax."""

    def logits(weights: Tensor) -> list[float]:
        context = sum(w * h for w, h in zip(weights.float(), encoded.states[row].float(), strict=True))
        return model.decoder(context).tolist()  # type: ignore[no-any-return]

    z = logits(own)
    p, c = softmax(z), z.index(max(z))
    tvds, moved, flips = [], [], 0
    for weights in draws:
        y = logits(weights)
        tvds.append(sum(abs(a - b) for a, b in zip(p, softmax(y), strict=True)) / 2)
        before, after = (x[c] - max(v for k, v in enumerate(x) if k != c) for x in (z, y))
        moved.append(abs(after - before))
        flips += y.index(max(y)) != c
    return statistics.median(tvds), statistics.median(moved), flips / len(draws)


def test_every_text_recomputed_slowly() -> None:
    whole, asked = subject(), Permutation(draws=10, seed=3)
    rows = {row["example"]: row for row in asked.rows(whole).iter_rows(named=True)}
    assert list(rows) == [e.id for e in EXAMPLES]
    for pool in open_pooled(whole.model, EXAMPLES):
        decoder, drawn = decoder_of(pool), permuted(pool.key_weights, pool.mask, pool.ids, 3, 10)
        for row, text in enumerate(pool.ids.tolist()):
            found = rows[text]
            if pool.mask.shape[1] == 1:
                assert found["median_tvd"] is found["median_logit"] is found["flips"] is found["entropy"] is None
                continue
            assert isinstance(decoder.model, PoolingClassifier)
            with torch.no_grad():
                mine = slow(decoder.model, decoder.encoded, row, pool.key_weights[row], drawn[row])
            assert (found["median_tvd"], found["median_logit"], found["flips"]) == pytest.approx(mine, abs=1e-5)
            assert found["max_attention"] == pytest.approx(float(pool.key_weights[row].max()))
            assert found["n"] == found["keys"] == len(whole.examples[pool.members[row]])


def test_words_of_equal_value_move_nothing_and_two_words_move_what_they_must() -> None:
    """z = 2 for all words: nothing moves. Two words with z = ±4, weights 0.9 and 0.1: half of the draws are swaps."""
    whole = subject(("no", "yes"), (Example(0, (("a", "b"),), 1), Example(1, (("a", "c"),), 1)))
    model = whole.model
    assert isinstance(model, PoolingClassifier)

    class Toy(PoolingClassifier):
        def encode(self, batch: Batch, *, embedded: Tensor | None = None) -> Encoded:
            z = torch.tensor([[2.0, 2.0], [4.0, -4.0]])[batch.ids][..., None]
            scores = torch.tensor([0.9, 0.1]).log().expand(len(z), 2)
            return Encoded(torch.zeros(len(z), 2, 12), scores, batch.words, torch.cat([-z / 2, z / 2], -1))

    model.__class__ = Toy
    model.decoder.bias.data.zero_()
    whole = replace(whole, predicted=torch.tensor([1, 1]))
    for draws in (1, 200):
        rows = Permutation(draws=draws).rows(whole)
        assert rows["median_tvd"][0] == pytest.approx(0, abs=1e-9)
        assert rows["flips"][0] == 0
    p = 1 / (1 + math.exp(-3.2))  # z = 0.9 · 4 − 0.1 · 4
    single = Permutation(draws=1)
    swapped = permuted(torch.tensor([[0.9, 0.1]]), torch.ones(1, 2).bool(), torch.tensor([1]), 0, 1)[0, 0, 0] < 0.5
    expected = (2 * p - 1, 6.4, 1.0) if swapped else (0.0, 0.0, 0.0)
    found = single.rows(whole).row(1, named=True)
    assert (found["median_tvd"], found["median_logit"], found["flips"]) == pytest.approx(expected, abs=1e-6)
    assert rows["flips"][1] == pytest.approx(0.5, abs=0.12)


def test_batches_change_nothing() -> None:
    whole, asked = subject(), Permutation(draws=7)
    together = asked.rows(whole)
    one = subject_of(whole.model, whole.task, EXAMPLES[5:6])
    alone = asked.rows(one).row(0, named=True)
    for name, value in together.row(5, named=True).items():
        assert alone[name] == (pytest.approx(value, abs=1e-5) if isinstance(value, float) else value)


def test_the_summary_recomputed() -> None:
    rows = cell(Permutation(draws=9).rows(subject()))
    summary = Permutation().summary(rows)
    assert set(summary["class"]) == {"all", *rows["predicted"]}
    for row in summary.iter_rows(named=True):
        kept = rows.filter((pl.lit(row["class"]) == "all") | (pl.col("predicted") == row["class"]))
        kept = kept.filter((pl.lit(row["bin"]) == "all") | (bin_of(pl.col("max_attention")) == row["bin"]))
        values = kept[row["measure"]].drop_nulls().to_list()
        assert (row["n"], row["undefined"], row["seeds"]) == (len(values), kept.height - len(values), 1)
        if values:
            interval = bootstrap_mean(torch.tensor(values, dtype=torch.float64))
            assert row["mean"] == pytest.approx(statistics.fmean(values))
            assert row["median"] == pytest.approx(statistics.median(values))
            assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high), abs=1e-9)
        if row["measure"] == "median_tvd" and values:
            assert row["moved"] == pytest.approx(sum(v > 0.1 for v in values) / len(values))
    single = summary.filter(pl.col("class") == "all", pl.col("bin") == BINS[-1], pl.col("measure") == "median_tvd")
    assert single["undefined"].item() >= 1  # one word has all the weight


def test_several_seeds() -> None:
    both = pl.concat([cell(Permutation(draws=5).rows(subject()), seed) for seed in (0, 1)])
    first = Permutation().summary(both).row(0, named=True)
    assert first["seeds"] == 2
    assert first["n"] == 2 * both.filter(pl.col("seed") == 0)["median_tvd"].count()
    table = Permutation().tables(both)["seeds"]
    assert table["seed"].to_list() == [0, 1]
    assert table["n"].to_list() == [first["n"] // 2] * 2


def test_only_single_words() -> None:
    """Nothing to permute anywhere: null and counted, and a figure that says so."""
    alone = tuple(Example(i, ((word,),), 0) for i, word in enumerate("abc"))
    rows = cell(Permutation(draws=3).rows(subject(examples=alone)))
    summary = Permutation().summary(rows)
    assert summary["n"].to_list() == [0] * summary.height
    assert summary["mean"].null_count() == summary.height
    assert summary.row(0, named=True)["undefined"] == 3
    assert "nothing to show" in to_svg(Permutation().figures(rows, summary)["tvd"])


def test_median_and_bins() -> None:
    values = torch.rand(5, 10, dtype=torch.float64)
    assert median(values).tolist() == pytest.approx([statistics.median(row) for row in values.tolist()])
    assert median(values[:, :9]).tolist() == pytest.approx([statistics.median(row) for row in values[:, :9].tolist()])
    frame = pl.DataFrame({"x": [0.0, 0.2499, 0.25, 0.5, 0.7499, 0.75, 1.0, None]})
    places = [BINS.index(b) if b else None for b in frame.select(bin_of(pl.col("x"))).to_series()]
    assert places == [0, 0, 1, 2, 2, 3, 3, None]
    z = torch.tensor([[[1.0, 5.0, 2.0]], [[1.0, 5.0, 2.0]]])
    assert margins(z, torch.tensor([1, 0])).tolist() == [[3.0], [-4.0]]


def violin_frame() -> pl.DataFrame:
    n = 40
    return pl.DataFrame(
        {
            "task": "t", "model": "bilstm", "predicted": ["no", "yes"] * (n // 2),
            "max_attention": [0.1] * (n - 3) + [0.9] * 3, "value": [i / n for i in range(n - 1)] + [None],
        }
    )  # fmt: skip


def test_a_violin_is_a_density_with_quartiles() -> None:
    table = shapes(violin_frame(), "value", Axis("x", 1.0))
    low = table.filter(pl.col("bin") == "0–0.25", pl.col("group") == "no")
    values = violin_frame().filter(pl.col("predicted") == "no", pl.col("max_attention") < 0.25)["value"]
    assert low["n"].unique().to_list() == [len(values)]
    lines = low.filter(pl.col("kind").is_in(["quartile", "median"])).sort("x")["x"].to_list()
    quartiles = [values.quantile(q, "linear") for q in (0.25, 0.5, 0.75)]
    assert lines == pytest.approx(quartiles, abs=1e-4)
    outline = low.filter(pl.col("kind") == "density")
    middle = (outline["y"] + outline["y2"]) / 2  # symmetric about its line, up to rounding
    assert float(middle.max()) - float(middle.min()) < 2e-4  # type: ignore[arg-type]
    few = table.filter(pl.col("bin") == "0.75–1")
    assert sorted(few["kind"].unique()) == ["n", "tick"]
    assert few.filter(pl.col("kind") == "tick").height == 2  # one of three has no value
    assert few["y"].min() > low["y2"].max()  # type: ignore[operator]  # higher bins are higher up


def test_violins_are_drawn() -> None:
    svg = to_svg(violin(violin_frame(), "value", Axis("something measured")))
    assert ">something measured<" in svg
    assert ">0.75–1<" in svg
    many = violin_frame().with_columns(predicted=pl.Series([f"class {i % 8}" for i in range(40)]))
    assert "other classes" in to_svg(violin(many, "value", Axis("x", 1.0, (0, 0.5, 1))))


def test_the_report(tmp_path: Path) -> None:
    from exegete.experiments.permutation import section

    asked = Permutation(draws=5)
    rows = cell(asked.rows(subject()))
    (tmp_path / "tables").mkdir()
    rows.write_parquet(tmp_path / "tables" / "permutation.parquet")
    asked.summary(rows).write_parquet(tmp_path / "tables" / "permutation_summary.parquet")
    found = QuestionResult(tmp_path, "permutation", asked)
    head = section.headline(found)
    assert head.frame["class"].to_list()[0] == "all"
    assert len(head.cells()[0]) == len(head.shown)
    (whole,) = section.sections(found)
    assert [len(table.cells()) > 0 for table in whole.tables] == [True, True]
    assert len(whole.figures) == 2


def test_it_is_in_the_catalogue_and_refuses() -> None:
    assert EXPERIMENTS.make("permutation:draws=20") == Permutation(draws=20)
    with pytest.raises(UsageError, match="draws is a number of permutations"):
        Permutation(draws=0)
    assert "has none" in (unsuited(Permutation(), subject().task, Toy()) or "")


def test_weights_below_the_readout_are_permuted_on_request() -> None:
    """By whole passes, draw by draw: medians by numpy; rows of the readout are as they are without."""
    examples = texts(12)
    model = small_model("transformer:size=6,hidden=6,heads=2,inner=10,scale=1,layers=2", examples).double()
    task = Task("small", ("no", "yes"), {"train": examples, "test": examples}, "made up")
    asked = subject_of(model, task)
    plain = Permutation(draws=5).rows(asked)
    both = Permutation(draws=5, sites=("readout", "encoder")).rows(asked)
    assert both.filter(pl.col("sites") == "readout").equals(plain)
    deeper = both.filter(pl.col("sites") == "encoder")
    own = predict(model, examples).softmax(-1).numpy()
    seeds = [stable_seed("permutation", 0, draw) for draw in range(5)]
    drawn = [predict(model, examples, Permute("encoder", seed=seed)).softmax(-1).numpy() for seed in seeds]
    tvd = np.median([np.abs(each - own).sum(-1) / 2 for each in drawn], 0)
    found = deeper["median_tvd"].to_list()
    assert found == pytest.approx([v if len(e) > 1 else None for v, e in zip(tvd, examples, strict=True)], abs=1e-9)
    summary = Permutation(draws=5, sites=("readout", "encoder")).summary(cell(both))
    assert summary["sites"].unique(maintain_order=True).to_list() == ["readout", "encoder"]
    judged = used(Evidence((cell(both),), (Permutation(),), 0.05))
    assert torch.equal(judged.values, used(Evidence((cell(plain).drop("sites"),), (Permutation(),), 0.05)).values)
    with pytest.raises(UsageError, match="unknown site 'decoder'"):
        Permutation(draws=1, sites=("readout", "decoder")).rows(asked)
    with pytest.raises(UsageError, match="each once"):
        Permutation(sites=("every",))
