"""Known answer: precision known by hand, disobedient texts left out, and trained models that obey what was planted."""

import math
from dataclasses import replace

import polars as pl
import pytest
import torch
from torch import Tensor

from exegete.base.errors import ExegeteError, UsageError
from exegete.experiments.common.contract import Subject
from exegete.experiments.known_answer.experiment import KnownAnswer
from exegete.experiments.known_answer.figure import planted_precisions
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import Importance
from exegete.measures.statistics import bootstrap_mean
from exegete.models.build import build
from exegete.models.contract import Intervention, Trace
from exegete.models.ours.classifier import PoolingClassifier
from exegete.models.ours.module import KeptSites
from exegete.report.theme import to_svg
from exegete.tasks.batching import Batch, collate
from exegete.tasks.example import Example, Task
from exegete.tasks.planting import Planting, PlantKind
from exegete.training.fit import Fit
from exegete.training.settings import TrainingSettings
from tests.small import small_model, small_task
from tests.subjects import cell, subject_of, tensors

NAN = math.nan
EXAMPLES = (
    Example(1, (("a", "zqx", "b", "zqy"),), 1, (1, 3)),
    Example(2, (("zqy", "zqx", "c"),), 0, (0, 1)),
    Example(3, (("zqx", "zqy", "c", "d"),), 1, (0, 1)),
)
TASK = Task("hand:planted=pair", ("no", "yes"), {"train": EXAMPLES, "test": EXAMPLES}, "by hand")
SCORES: dict[str, list[list[float]]] = {
    "attention": [[0.1, 0.4, 0.2, 0.3], [0.2, 0.2, 0.6, NAN], [0.25] * 4],
    "gradient_x_input": [[1, -3, 0, 2], [1, 2, 3, NAN], [4, 3, 2, 1]],
}
ASK = KnownAnswer(methods=("attention", "gradient_x_input", "random"))


class Obedient(PoolingClassifier):
    """Says yes where zqx and zqy are both there, whatever their order."""

    def _trace(self, batch: Batch, embedded: Tensor | None, intervene: Intervention | None, keep: KeptSites) -> Trace:
        x, y = (self.vocabulary.index[word] for word in ("zqx", "zqy"))
        both = (batch.tokens == x).any(1) & (batch.tokens == y).any(1)
        found = super()._trace(batch, embedded, intervene, keep)
        return found._replace(logits=torch.stack([~both, both], 1).float())


def subject() -> Subject:
    model = small_model("average:size=2,hidden=2", EXAMPLES)
    model.__class__ = Obedient
    signed = {"attention": False, "gradient_x_input": True}
    return subject_of(model, TASK, scores=tensors(SCORES), signed=signed, refused={"random": "not today"})


def values(rows: pl.DataFrame, **where: str) -> list[float | None]:
    return rows.filter(*(pl.col(k) == v for k, v in where.items())).sort("example")["value"].to_list()


def test_rows_known_by_hand() -> None:
    rows = ASK.rows(subject())
    assert rows["shortcut"].unique().to_list() == ["pair"]
    assert set(rows["method"]) == {"attention", "gradient_x_input"}  # what is refused is left out
    found = {
        (method, ranking, measure): values(rows, method=method, ranking=ranking, measure=measure)
        for method in SCORES for ranking in ("signed", "magnitude") for measure in ("precision_at_k", "first")
    }  # fmt: skip
    assert found["attention", "signed", "precision_at_k"] == [1, None, 0.5]  # the second text is not obeyed; ties
    assert found["attention", "signed", "first"] == [1, None, 0.5]
    assert found["gradient_x_input", "signed", "precision_at_k"] == [0.5, None, 1]
    assert found["gradient_x_input", "magnitude", "precision_at_k"] == [1, None, 1]
    assert found["gradient_x_input", "signed", "first"] == [1, None, 1]
    assert rows.unique("example").sort("example")["chance"].to_list() == pytest.approx([0.5, 2 / 3, 0.5])


def test_obedience_and_need() -> None:
    rows = ASK.rows(subject()).unique("example").sort("example")
    assert rows["obeys"].to_list() == [True, False, True]
    assert rows["needed"].to_list() == [True, True, True]
    summary = ASK.summary(cell(ASK.rows(subject())))
    assert summary["obedience"].to_list() == pytest.approx([2 / 3] * summary.height)
    assert not summary["learnt"].any()
    assert replace(ASK, obedience=0.6).summary(cell(ASK.rows(subject())))["learnt"].all()


def test_a_part_that_is_enough_is_told() -> None:
    """A model that looks for zqx alone obeys too, but does not need zqy."""

    class Half(Obedient):
        def _trace(
            self, batch: Batch, embedded: Tensor | None, intervene: Intervention | None, keep: KeptSites
        ) -> Trace:
            only = (batch.tokens == self.vocabulary.index["zqx"]).any(1)
            found = super()._trace(batch, embedded, intervene, keep)
            return found._replace(logits=torch.stack([~only, only], 1).float())

    half = subject()
    assert isinstance(half.model, Obedient)
    half.model.__class__ = Half
    rows = ASK.rows(half)
    assert not rows["needed"].any()
    assert ASK.tables(cell(rows))["obedience"]["needed"].to_list() == [0]


def test_the_summary_recomputed() -> None:
    rows = cell(ASK.rows(subject()))
    summary = ASK.summary(rows)
    assert summary.height == 2 * 2 * 2 * 2
    for row in summary.filter(pl.col("where") == "obeys").iter_rows(named=True):
        mine = values(rows, **{key: row[key] for key in ("method", "ranking", "measure")})
        defined = [value for value in mine if value is not None]
        interval = bootstrap_mean(torch.tensor(defined))
        assert (row["n"], row["undefined"], row["seeds"]) == (2, 1, 1)
        assert (row["mean"], row["low"], row["high"]) == pytest.approx(
            (sum(defined) / 2, interval.low, interval.high), abs=1e-6
        )
        assert row["chance"] == pytest.approx(0.5)


def test_where_every_planted_word_is_needed_is_told_apart() -> None:
    rows = cell(ASK.rows(subject()))
    needed = ASK.summary(rows).filter(pl.col("where") == "needed")
    sure = rows.filter("needed", pl.col("value").is_not_null())
    assert 0 < sure["example"].n_unique() < rows["example"].n_unique()
    assert set(needed["n"]) == {sure["example"].n_unique()}
    assert ASK.summary(rows.with_columns(needed=pl.lit(False)))["where"].unique().to_list() == ["obeys"]


def test_one_seed_that_has_not_learnt_is_enough() -> None:
    obeyed = cell(ASK.rows(subject()).with_columns(obeys=pl.lit(True)), seed=1)
    both = pl.concat([cell(ASK.rows(subject())), obeyed])
    summary = ASK.summary(both)
    assert summary["obedience"][0] == pytest.approx(5 / 6)
    assert not summary["learnt"].any()
    assert ASK.tables(both)["obedience"]["learnt"].to_list() == [False, True]


def test_the_toys_are_a_table() -> None:
    table = KnownAnswer(methods=("attention",)).tables(cell(ASK.rows(subject())))["toys"]
    assert {"toy", "method", "precision_at_k", "sign", "chance"} <= set(table.columns)


def test_the_figure_draws_what_was_measured() -> None:
    summary = ASK.summary(cell(ASK.rows(subject())))
    table = planted_precisions(summary)
    assert set(table["column"]) == {"an ordered pair"}
    assert set(table["note"]) == {"not learnt: obeyed in 67 %"}
    assert sorted(table["mean"]) == pytest.approx([0.75, 0.75, 0.75, 1])
    assert ">not learnt: obeyed in 67 %<" in to_svg(ASK.figures(pl.DataFrame(), summary)["known_answer"])
    assert "nothing to show" in to_svg(ASK.figures(pl.DataFrame(), summary.head(0))["known_answer"])


def test_a_panel_without_dots_keeps_its_place() -> None:
    """Vega closes up a grid of panels that has gaps: other panels would stand under the wrong heading."""
    summary = ASK.summary(cell(ASK.rows(subject())))
    task = pl.lit("hand:planted=token").alias("task")
    other = summary.with_columns(task, model=pl.lit("cnn"), shortcut=pl.lit("token"), learnt=pl.lit(True))
    table = planted_precisions(pl.concat([summary, other]))
    assert table.select("panel", "column").n_unique() == 4
    assert table.filter(pl.col("mean").is_null()).height == 2
    assert table["panel"].n_unique() == 2  # what is planted is no other task


@pytest.mark.parametrize(
    ("name", "hint"), [("sst", "write sst:planted=token"), ("sst:lower=true", "write sst:lower=true,planted=token")]
)
def test_a_task_without_planted_words(name: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        ASK.rows(replace(subject(), task=replace(TASK, name=name)))


def test_a_rationale_beyond_the_text() -> None:
    wrong = (*EXAMPLES[:2], replace(EXAMPLES[2], rationale=(0, 4)))
    with pytest.raises(ExegeteError, match="the rationale of example 3 marks word 4, but the text has 4 words"):
        ASK.rows(replace(subject(), examples=wrong))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [({"methods": ()}, "at least one"), ({"methods": ("lime", "lime")}, "once"), ({"obedience": 0}, "share")],
)
def test_wrong_settings(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        KnownAnswer(**settings)  # type: ignore[arg-type]


def trained(kind: PlantKind) -> tuple[Task, PoolingClassifier]:
    plain = small_task(1000, longest=7)
    held_out = {
        "dev": plain.split("train")[:200],
        "test": plain.split("train")[200:300],
        "train": plain.split("train")[300:],
    }
    splits, _ = Planting(kind, 0.3)(held_out, plain.labels)
    task = replace(plain, name=f"small:planted={kind}", splits=splits)
    model = build("bilstm:size=16,hidden=16,scale=1", task)
    assert isinstance(model, PoolingClassifier)
    Fit(model, task, TrainingSettings(epochs=15, patience=15, lr=0.01, metric="accuracy"), 0).run()
    return task, model


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["token", "context", "pair"])
def test_a_model_learns_the_shortcut_and_erasure_finds_it(kind: PlantKind) -> None:
    task, model = trained(kind)
    examples = task.split("test")
    methods = ("leave_one_out:of=logit", "occlusion", "random")
    scores = {}
    for method in methods:
        importance: Importance = IMPORTANCES.make(method)
        scores[method] = importance(model, collate(examples, model.vocabulary)).values.double()
    asked = KnownAnswer(methods)
    whole = subject_of(model, task, scores=scores, signed=dict.fromkeys(methods, True))
    summary = asked.summary(cell(asked.rows(whole)))
    assert summary["learnt"].all()
    assert summary["needed"][0] > 0.9
    best = summary.filter(measure="precision_at_k", ranking="signed")
    level = dict(best.select("method", "mean").iter_rows())
    assert level["leave_one_out:of=logit"] > 0.9
    assert level["occlusion"] > 0.9
    assert level["random"] == pytest.approx(best["chance"][0], abs=0.12)
