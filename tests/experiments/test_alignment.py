"""Alignment: links and error rates by hand, chance, seeds, sentences without gold links, figures, the report."""

import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.experiments.alignment import section
from exegete.experiments.alignment.experiment import Alignment, alignment_pseudo_values
from exegete.experiments.alignment.figure import alignment_lines, best_first, shown_methods, word_lines
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.common.contract import asks_whole, builds, unsuited
from exegete.experiments.common.section import QuestionResult
from exegete.measures.alignment import agreement, alignment_error_rate
from exegete.measures.statistics import crossed_mean
from exegete.report.theme import numbers, to_svg
from exegete.tasks.example import Link, Task
from tests.experiments.aligned_pairs import (
    FEW,
    GOLD,
    KNOWN,
    SENTENCES,
    TASK,
    subject,
    translator,
)
from tests.small import small_model, texts
from tests.subjects import cell

ASK = Alignment(methods=FEW)


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    return ASK.rows(subject(translator()))


def row_of(frame: pl.DataFrame, **which: Any) -> dict[str, Any]:
    return frame.row(by_predicate=pl.all_horizontal(*(pl.col(k) == v for k, v in which.items())), named=True)


# Rows and numbers.


def test_counts_by_hand(rows: pl.DataFrame) -> None:
    """Straight from sets of links."""
    assert rows.height == len(SENTENCES) * len(FEW)
    for row in rows.iter_rows(named=True):
        made = {(i, j) for j, i in enumerate(row["aligned"])}
        gold = GOLD[row["example"]]
        sure, possible = {(g[0], g[1]) for g in gold if g[2]}, {(g[0], g[1]) for g in gold}
        expected = (len(made & sure), len(made & possible), len(made), len(sure), len(possible))
        assert (row["both_sure"], row["both_possible"], row["links"], row["sure"], row["possible"]) == expected
        own = row_of(rows, example=row["example"], method="attention")["aligned"]
        assert row["same"] == sum(a == b for a, b in zip(row["aligned"], own, strict=True)) / len(own)
        assert row["links"] == row["target_words"] == len(row["aligned"])
    assert rows.filter(pl.col("method") == "attention")["same"].to_list() == [1, 1, 1]


def test_a_sentence_of_one_word_can_only_be_right(rows: pl.DataFrame) -> None:
    one = rows.filter(pl.col("example") == 4)
    assert one["aligned"].to_list() == [[0]] * len(FEW)
    assert one.select("both_sure", "both_possible", "links", "sure", "same").unique().row(0) == (1, 1, 1, 1, 1)


def of_links(links: dict[str, list[list[int]]]) -> pl.DataFrame:
    """Rows with the given links of every sentence; counts from comparing each with the list of people's."""
    base = Alignment(methods=("attention",), shown=0).rows(subject(translator()))
    made = []
    for method, found in links.items():
        for row, aligned in zip(base.iter_rows(named=True), found, strict=True):
            gold = GOLD[row["example"]]
            assert max(aligned) < row["source_words"]
            sure = sum(Link(i, j) in gold for j, i in enumerate(aligned))
            possible = sure + sum(Link(i, j, sure=False) in gold for j, i in enumerate(aligned))
            made.append(row | {"method": method, "aligned": aligned, "both_sure": sure, "both_possible": possible})
    return pl.DataFrame(made, schema=base.schema)


def test_error_rates_of_known_links() -> None:
    """Attention finds all, the other links every word to word 0."""
    made = of_links({"attention": [[0, 1], [0], [0, 1, 3]], "gradient": [[0, 0], [0], [0, 0, 0]]})
    summary = Alignment().summary(cell(made))
    errors = {row["method"]: row for row in summary.filter(pl.col("measure") == "error_rate").iter_rows(named=True)}
    # |A| = 6, |S| = 5; attention: 5 sure, 6 possible. Word 0 for all: sure (4: 0-0, 7: 0-0), possible 3: 0-0 as well.
    assert errors["attention"]["mean"] == pytest.approx(1 - (5 + 6) / 11)
    assert errors["gradient"]["mean"] == pytest.approx(1 - (2 + 3) / 11)
    assert errors["gradient"]["difference"] == pytest.approx(6 / 11)
    assert errors["attention"]["difference"] is None
    # Sources have 2, 1 and 4 words: each link of people is hit with 1/2, 1 and 1/4.
    sure, possible = 1 / 2 + 1 + 3 / 4, 2 / 2 + 1 + 4 / 4
    assert errors["gradient"]["chance"] == pytest.approx(1 - (sure + possible) / 11)
    recall = summary.filter(pl.col("measure") == "recall")
    assert recall["mean"].to_list() == pytest.approx([1, 2 / 5])
    assert recall["chance"].to_list() == pytest.approx([sure / 5] * 2)
    precision = summary.filter(pl.col("measure") == "precision")
    assert precision["mean"].to_list() == pytest.approx([1, 3 / 6])
    assert precision["chance"].to_list() == pytest.approx([possible / 6] * 2)


def test_chance_is_the_mean_of_all_links() -> None:
    """Every way to link the words of sentence 7, one after the other: 4³ of them."""
    sure, possible = {(0, 0), (1, 1), (3, 2)}, {(0, 0), (1, 1), (2, 2), (3, 2)}
    rates = []
    for aligned in product(range(4), repeat=3):
        made = {(i, j) for j, i in enumerate(aligned)}
        rates.append(1 - (len(made & sure) + len(made & possible)) / (len(made) + len(sure)))
    only = replace(KNOWN, splits={"test": SENTENCES[2:]})
    ask = Alignment(methods=("random",))
    summary = ask.summary(cell(ask.rows(subject(translator(), only))))
    row = row_of(summary, measure="error_rate")
    assert row["chance"] == pytest.approx(sum(rates) / len(rates))
    assert row_of(summary, measure="same_as_attention")["chance"] == pytest.approx(1 / 4)


def test_the_summary_is_that_of_the_measures(rows: pl.DataFrame) -> None:
    summary = ASK.summary(cell(rows))
    assert set(summary["n"]) == {3}
    assert not any(summary[c].is_nan().any() for c, kind in summary.schema.items() if kind == pl.Float64)
    for method in FEW:
        own = rows.filter(pl.col("method") == method).sort("example")
        counts = torch.tensor(own.select("both_sure", "both_possible", "links", "sure").rows())
        for measure, expected in zip(("error_rate", "precision", "recall"), agreement(counts), strict=True):
            row = row_of(summary, method=method, measure=measure)
            assert (row["mean"], row["low"], row["high"]) == pytest.approx(expected[:3])
        same = row_of(summary, method=method, measure="same_as_attention")
        assert same["mean"] == pytest.approx(own["same"].mean())
        assert same["chance"] == pytest.approx((1 / 2 + 1 + 1 / 4) / 3)
    equal = row_of(summary, method="random", measure="recall")
    assert equal["difference_low"] <= equal["difference"] <= equal["difference_high"]


def test_several_seeds() -> None:
    """The mean over seeds; pseudo-values by taking each sentence out, in a loop."""
    one = of_links({"attention": [[0, 1], [0], [0, 1, 3]], "gradient": [[0, 0], [0], [0, 0, 0]]})
    two = of_links({"attention": [[0, 0], [0], [0, 2, 3]], "gradient": [[1, 1], [0], [1, 1, 1]]})
    summary = Alignment().summary(pl.concat([cell(one), cell(two, seed=1)]))
    row = row_of(summary, method="gradient", measure="error_rate")

    def slowly(frame: pl.DataFrame, method: str) -> Tensor:
        kept = frame.filter(pl.col("method") == method).sort("example")
        table = kept.select("both_sure", "both_possible", "links", "sure").rows()

        def rate(some: list[tuple[int, ...]]) -> float:
            a, b, c, d = (sum(column) for column in zip(*some, strict=True))
            return float(1 - (a + b) / (c + d))

        values = [3 * rate(table) - 2 * rate(table[:i] + table[i + 1 :]) for i in range(3)]
        return torch.tensor([v - sum(values) / 3 + rate(table) for v in values], dtype=torch.float64)

    own, other = (torch.stack([slowly(f, m) for f in (one, two)]) for m in ("attention", "gradient"))
    expected = crossed_mean(other)
    assert (row["seeds"], row["n"]) == (2, 6)
    assert row["mean"] == pytest.approx(expected.mean)
    assert (row["low"], row["high"]) == pytest.approx((max(0, expected.low), min(1, expected.high)))
    assert row["difference"] == pytest.approx(float((other - own).mean()))


def test_pseudo_values_where_one_sentence_has_all() -> None:
    counts = torch.tensor([[1, 2, 3, 2]])
    assert alignment_pseudo_values(alignment_error_rate, counts).tolist() == pytest.approx([1 - 3 / 5])


def test_without_gold_links_only_agreement_is_told() -> None:
    rows = ASK.rows(subject(translator(), TASK))
    assert rows["sure"].null_count() == rows.height
    summary = ASK.summary(cell(rows))
    assert set(summary["measure"]) == {"same_as_attention"}
    assert summary.height == len(FEW)
    assert set(alignment_lines(summary)["column"]) == {"linked as attention does"}
    assert row_of(summary, method="attention")["mean"] == 1


def test_some_sentences_without_gold_are_counted() -> None:
    part = replace(TASK, alignments={"test": {7: GOLD[7]}})
    summary = ASK.summary(cell(ASK.rows(subject(translator(), part))))
    row = row_of(summary, method="attention", measure="error_rate")
    assert (row["n"], row["undefined"]) == (1, 2)
    assert row_of(summary, method="attention", measure="same_as_attention")["n"] == 3


def test_shards_are_the_whole(rows: pl.DataFrame) -> None:
    whole = subject(translator())
    parts = [ASK.rows(replace(whole, examples=some)) for some in (SENTENCES[:1], SENTENCES[1:])]
    both = pl.concat(parts)
    assert both.drop("scores").equals(rows.drop("scores"))


def test_only_the_shown_sentences_keep_their_scores() -> None:
    kept = Alignment(methods=FEW, shown=1).rows(subject(translator())).filter(pl.col("scores").is_not_null())
    assert kept["example"].n_unique() == 1
    assert kept.height == len(FEW)
    row = kept.row(0, named=True)
    assert (len(row["scores"]), len(row["scores"][0])) == (len(row["target"]), len(row["source"]))
    none = Alignment(methods=FEW, shown=0).rows(subject(translator()))
    assert none["scores"].null_count() == none.height


def test_attention_need_not_be_asked_for() -> None:
    rows = Alignment(methods=("random",)).rows(subject(translator()))
    assert set(rows["method"]) == {"random"}
    assert rows["same"].null_count() == 0
    summary = Alignment(methods=("random",)).summary(cell(rows))
    assert row_of(summary, measure="error_rate")["difference"] is None


# What is seen.


def test_figures_draw_what_was_measured(rows: pl.DataFrame) -> None:
    every = cell(rows)
    summary = ASK.summary(every)
    charts = ASK.figures(every, summary)
    assert list(charts) == ["alignment", "alignment_words"]
    table = alignment_lines(summary)
    errors = table.filter(pl.col("column").str.starts_with("alignment error"))
    assert errors["mean"].to_list() == sorted(errors["mean"].to_list())
    assert table.height == len(FEW) + len(FEW) - 1
    assert "error rate" in to_svg(charts["alignment"])
    drawn = numbers(charts["alignment_words"])
    assert drawn is not None
    assert drawn.height == 2 * (2 * 2 + 1 + 3 * 4)
    assert drawn.filter("linked").height == 2 * 6
    assert drawn.group_by("sentence", "method", "target").agg(pl.col("strength").max())["strength"].to_list() == [
        pytest.approx(1.0)
    ] * (2 * 6)
    assert "house" in to_svg(charts["alignment_words"])
    assert "nothing to show" in ASK.figures(every, summary.head(0))["alignment"].description


def test_which_methods_are_shown(rows: pl.DataFrame) -> None:
    summary = ASK.summary(cell(rows))
    assert shown_methods(summary)[0] == "attention"
    assert shown_methods(summary)[1] in ("gradient_x_input", "occlusion")
    assert shown_methods(summary)[1] == next(m for m in best_first(summary) if m in ("gradient_x_input", "occlusion"))
    told = word_lines(cell(rows), ["attention"])
    assert told.filter(pl.col("sentence") == "sentence 7")["people"].to_list().count("sure") == 3
    assert set(told["sign"]) == {"for"}


def test_two_models_have_a_figure_each(rows: pl.DataFrame) -> None:
    both = pl.concat([cell(rows), cell(rows, task="others")])
    charts = ASK.figures(both, ASK.summary(both))
    assert list(charts) == ["alignment", "alignment_words_1", "alignment_words_2"]


@pytest.mark.parametrize("known", [True, False])
def test_the_report(known: bool, rows: pl.DataFrame, tmp_path: Path) -> None:
    every = cell(rows if known else ASK.rows(subject(translator(), TASK)))
    (tmp_path / "tables").mkdir()
    every.write_parquet(tmp_path / "tables" / "alignment.parquet")
    ASK.summary(every).write_parquet(tmp_path / "tables" / "alignment_summary.parquet")
    found = QuestionResult(tmp_path, "alignment", ASK)
    headline = section.headline(found)
    assert headline.title == ("Alignment error rate" if known else "Links that attention has too")
    assert len(headline.cells()) == len(FEW)
    (part,) = section.sections(found)
    assert len(part.tables) == (2 if known else 1)
    assert len(part.figures) == 2
    assert ("Nobody drew" in " ".join(part.paragraphs)) is not known


# Whom it is for.


def test_it_asks_about_whole_translations() -> None:
    made = EXPERIMENTS.make("alignment:shown=1")
    assert made == Alignment(shown=1)
    assert asks_whole(made)
    assert builds(Alignment(methods=("random",))) == ("attention", "random")
    assert (made.importances, made.splits, made.texts, made.tables(pl.DataFrame())) == ((), (), 100, {})


def test_whom_it_is_not_for() -> None:
    some = texts(8)
    model = small_model("bilstm:size=4,hidden=3", some)
    task = Task("small", ("no", "yes"), {"train": some, "test": some}, "made up")
    assert "writes none" in str(unsuited(ASK, task, model))
    with pytest.raises(UsageError, match="writes none"):
        ASK.rows(subject(model, task))
    assert unsuited(ASK, TASK, translator()) is None


def test_what_refuses_a_translator_is_left_out() -> None:
    rows = Alignment(methods=("attention", "lrp")).rows(subject(translator()))
    assert set(rows["method"]) == {"attention"}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"methods": ()}, "at least one method"),
        ({"methods": ("attention", "attention")}, "once"),
        ({"methods": ("nothing",)}, "nothing"),
        ({"of": "loss"}, "quantity"),
        ({"pieces": "mean"}, "pieces"),
        ({"shown": -1}, "0 or more"),
    ],
)
def test_bad_settings(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Alignment(**settings)


def test_an_undefined_number_is_no_nan() -> None:
    """Sentences whose links are all only possible have no recall."""
    only = {e: tuple(link._replace(sure=False) for link in links) for e, links in GOLD.items()}
    summary = ASK.summary(cell(ASK.rows(subject(translator(), replace(TASK, alignments={"test": only})))))
    recall = row_of(summary, method="random", measure="recall")
    assert (recall["mean"], recall["chance"], recall["difference"]) == (None, None, None)
    error = row_of(summary, method="random", measure="error_rate")
    assert not math.isnan(error["mean"])
