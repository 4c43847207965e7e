"""Adversary search: ε-max JSD recomputed from the candidates, what never meets ε counted, references, figures."""

import math
from pathlib import Path

import polars as pl
import pytest
import torch

from exegete.base.errors import UsageError
from exegete.experiments.adversary_search.experiment import AdversarySearch
from exegete.experiments.adversary_search.figure import cells, jsd_masses, telling_rows
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.common.contract import Subject, recipes, unsuited
from exegete.experiments.common.pooling import open_pooled
from exegete.experiments.common.section import QuestionResult
from exegete.interventions.adversarial import Adversarial
from exegete.interventions.contract import bound
from exegete.interventions.search import find_each
from exegete.models.build import build
from exegete.models.ours.classifier import PoolingClassifier
from exegete.models.ours.module import Model
from exegete.report.panels import with_panel
from exegete.report.theme import to_svg
from exegete.tasks.example import Example, Task
from exegete.training.evaluation import predict
from exegete.training.recipe import Companion
from tests.small import batch_of, small_model, texts
from tests.subjects import cell, subject_of
from tests.toy import Toy

SPEC = "bilstm:size=7,hidden=6,scale=1"
EXAMPLES = (*texts(24, longest=10), Example(90, (("a",),), 0))
ASK = AdversarySearch(steps=40, lr=0.05)


TASK = Task("small", ("no", "yes"), {"train": EXAMPLES, "test": EXAMPLES}, "made up")


def balanced(examples: tuple[Example, ...] = EXAMPLES) -> PoolingClassifier:
    """A model that predicts either class for half of the texts."""
    model = small_model(SPEC, examples)
    z = predict(model, examples)
    with torch.no_grad():
        model.decoder.bias.sub_((z[:, 1] - z[:, 0]).median())
    return model


def subject(examples: tuple[Example, ...] = EXAMPLES, **companions: Model) -> Subject:
    model = balanced(examples)
    beside = {name: Companion(other) for name, other in companions.items()}
    return subject_of(model, TASK, examples, companions=beside)


def test_the_largest_divergence_within_epsilon() -> None:
    whole = subject()
    rows = ASK.rows(whole)
    assert rows.height == 2 * len(EXAMPLES)
    pools = list(open_pooled(whole.model, EXAMPLES))
    found = find_each([p.opened for p in pools], ASK)
    for pool, adversaries in zip(pools, found, strict=True):
        for row, text in enumerate(pool.ids.tolist()):
            for epsilon in (0.01, 0.05):
                mine = rows.filter(pl.col("example") == text, pl.col("epsilon") == epsilon).row(0, named=True)
                if pool.mask.shape[1] == 1:
                    assert mine["jsd"] is mine["tvd"] is mine["met"] is mine["within"] is mine["permuted_jsd"] is None
                    continue
                pairs = list(zip(adversaries.jsd[row].tolist(), adversaries.tvd[row].tolist(), strict=True))
                fine = [(j, t) for j, t in pairs if t <= epsilon]
                assert mine["met"] == bool(fine)
                assert mine["within"] == pytest.approx(len(fine) / 5)
                assert (mine["jsd"], mine["tvd"]) == pytest.approx(max([*fine, (0.0, 0.0)]))


def test_weights_that_are_kept_are_those_of_the_adversary() -> None:
    rows = ASK.rows(subject())
    told = rows.filter(pl.col("adversary").is_not_null())
    assert told["epsilon"].unique().to_list() == [0.01]
    assert told.height > 5
    for row in told.iter_rows(named=True):
        assert sum(row["adversary"]) == pytest.approx(1)
        assert row["words"] == list(EXAMPLES[row["example"]].words)
        m = [(a + b) / 2 for a, b in zip(row["attention"], row["adversary"], strict=True)]
        kl = [
            sum(x * math.log(x / y) for x, y in zip(of, m, strict=True) if x)
            for of in (row["attention"], row["adversary"])
        ]
        assert row["jsd"] == pytest.approx(sum(kl) / 2, abs=1e-9)


def test_never_within_epsilon_is_counted() -> None:
    """ε = 0 and weights that must change the prediction: no adversary, JSD 0, never a NaN."""
    strict = AdversarySearch(epsilons=(0.0,), steps=2)
    rows = strict.rows(subject())
    several = rows.filter(pl.col("keys") > 1)
    assert not several["met"].any()
    assert several["jsd"].to_list() == several["tvd"].to_list() == several["within"].to_list() == [0.0] * several.height
    assert several["adversary"].null_count() == several.height
    summary = strict.summary(cell(rows)).row(0, named=True)
    assert (summary["n"], summary["undefined"], summary["mean"], summary["met"]) == (
        several.height,
        rows.height - several.height,
        0,
        0,
    )
    assert "nothing to show" in to_svg(strict.figures(cell(rows), pl.DataFrame())["pairs"])


def test_references_have_rows_of_their_own() -> None:
    """A model that doesn't heed its weights is never caught: any weights will do."""
    faithful, heedless = (build(f"ladder:size=7,scale=1,share={share}", TASK) for share in (1, 0))
    asked = AdversarySearch(references=True, steps=40, lr=0.05)
    rows = asked.rows(subject(faithful=faithful, unfaithful=heedless))
    assert rows["who"].unique(maintain_order=True).to_list() == ["model", "faithful", "unfaithful"]
    free = rows.filter(pl.col("who") == "unfaithful")
    assert free["tvd"].max() == pytest.approx(0, abs=1e-12)
    assert free["within"].min() == 1
    assert free["keys"].to_list() == [n + 1 for n in free["n"]]  # the null key
    assert free["words"].null_count() == free.height
    summary = asked.summary(cell(rows))
    assert set(summary["who"]) == {"model", "faithful", "unfaithful"}
    recipe = recipes(asked, "bilstm:vectors=glove-50,hidden=64", 3)
    assert recipe["faithful"].model == "ladder:share=1,vectors=glove-50"
    assert recipe["unfaithful"].model == "ladder:share=0,vectors=glove-50"
    assert recipes(ASK, "bilstm", 0) == {}


def test_the_summary_recomputed() -> None:
    rows = cell(ASK.rows(subject()))
    summary = ASK.summary(rows)
    first = summary.row(0, named=True)
    strict = rows.filter(pl.col("epsilon") == 0.01)
    assert (first["who"], first["epsilon"], first["class"], first["bin"]) == ("model", 0.01, "all", "all")
    assert first["mean"] == pytest.approx(strict["jsd"].mean())
    assert first["permuted"] == pytest.approx(strict["permuted_jsd"].mean())
    assert first["ratio"] == pytest.approx(first["mean"] / first["permuted"])
    assert first["low"] < first["mean"] < first["high"] < math.log(2)
    parts = summary.filter(pl.col("epsilon") == 0.01, pl.col("class") != "all", pl.col("bin") != "all")
    assert parts["n"].sum() == first["n"]
    table = ASK.tables(rows)["by_entropy"]
    assert table.filter(pl.col("entropy") != "all", pl.col("epsilon") == 0.01)["n"].sum() == first["n"]


def test_figures() -> None:
    rows = cell(ASK.rows(subject()))
    table = jsd_masses(rows.filter(pl.col("epsilon") == 0.01))
    steps = table.filter(pl.col("low") < 0.7 - 1e-6)
    assert steps.group_by("group").agg(pl.col("mass").sum())["mass"].to_list() == pytest.approx([1, 1], abs=1e-4)
    charts = ASK.figures(rows, ASK.summary(rows))
    assert list(charts) == ["histogram", "violins", "pairs"]
    assert ">ε-max JSD<" in to_svg(charts["histogram"])
    assert "adversary's weights" in to_svg(charts["pairs"]).replace("&#39;", "'")
    shown = telling_rows(rows)
    assert shown["predicted"].n_unique() == 2
    assert shown.filter(pl.col("predicted") == "no")["jsd"].max() == rows.filter(
        pl.col("predicted") == "no", pl.col("words").list.len() >= 6
    )["jsd"].max()  # fmt: skip
    placed, lines = cells(with_panel(shown))
    words = placed.filter(pl.col("kind") == "word")
    assert words.height == 2 * shown["words"].list.len().sum()
    assert float(words["bottom"].max()) <= lines  # type: ignore[arg-type]
    assert words["shade"].max() == 1


def test_the_report(tmp_path: Path) -> None:
    from exegete.experiments.adversary_search import section

    rows = cell(ASK.rows(subject()))
    (tmp_path / "tables").mkdir()
    rows.write_parquet(tmp_path / "tables" / "adversary_search.parquet")
    ASK.summary(rows).write_parquet(tmp_path / "tables" / "adversary_search_summary.parquet")
    ASK.tables(rows)["by_entropy"].write_csv(tmp_path / "tables" / "adversary_search_by_entropy.csv")
    found = QuestionResult(tmp_path, "adversary_search", ASK)
    assert [row[0] for row in section.headline(found).cells()] == ["0.010", "0.050"]
    (whole,) = section.sections(found)
    assert all(len(table.cells()) > 0 for table in whole.tables)
    assert len(whole.figures) == 2  # the pairs are told as examples, text beside text


def test_only_single_words() -> None:
    alone = tuple(Example(i, ((word,),), 0) for i, word in enumerate("abc"))
    rows = cell(ASK.rows(subject(examples=alone)))
    summary = ASK.summary(rows)
    assert summary["n"].to_list() == [0] * summary.height
    assert summary["undefined"].max() == 3
    assert ASK.tables(rows)["by_entropy"].is_empty()
    for chart in ASK.figures(rows, summary).values():
        assert "nothing to show" in to_svg(chart)


def test_the_intervention_takes_the_same_weights() -> None:
    whole = subject()
    model = whole.model
    assert isinstance(model, PoolingClassifier)
    batch = batch_of(model, EXAMPLES)
    at = bound(Adversarial(steps=40, lr=0.05), model)
    with torch.no_grad():
        before, after = model.trace(batch), model.trace(batch, intervene=at)
    moved = (before.logits.softmax(-1) - after.logits.softmax(-1)).abs().sum(-1) / 2
    assert moved.max() <= 0.01 + 1e-5
    rows = ASK.rows(whole).filter(pl.col("epsilon") == 0.01)
    weights = after.attention["attention"][:, 0, 0]
    for place, row in enumerate(rows.iter_rows(named=True)):
        if row["adversary"] is not None:
            assert weights[place, : row["n"]].tolist() == pytest.approx(row["adversary"], abs=1e-3)
        elif row["met"] is False:
            torch.testing.assert_close(weights[place], before.attention["attention"][place, 0, 0])


def test_wrong_usage() -> None:
    assert EXPERIMENTS.make("adversary_search:steps=9").steps == 9
    for wrong in ((), (2.0,), (0.01, 0.01)):
        with pytest.raises(UsageError, match="epsilons are changes of a probability"):
            AdversarySearch(epsilons=wrong)
    with pytest.raises(UsageError, match="a search for adversaries needs"):
        AdversarySearch(steps=0)
    with pytest.raises(UsageError, match="epsilon is a change of a probability"):
        Adversarial(epsilon=-1)
    model = small_model(SPEC, EXAMPLES)
    with pytest.raises(UsageError, match="bind it first"):
        model.trace(batch_of(model, EXAMPLES), intervene=Adversarial())
    with pytest.raises(UsageError, match="Toy has none"):
        Adversarial().bound(Toy())
    gates = small_model(SPEC + ",projection=gates", EXAMPLES)
    assert "don't sum to 1" in (unsuited(ASK, subject().task, gates) or "")
