"""Knockout and blocking: edges cut, recomputed by hand on tiny models, and known by construction."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.experiments.common.section import QuestionResult
from exegete.experiments.faithfulness.experiment import Faithfulness
from exegete.experiments.knockout import section
from exegete.experiments.knockout.experiment import Knockout, knockout_words
from exegete.experiments.knockout.figure import knockout_points
from exegete.importance.blocking import Blocking, unblocked
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import refusal
from exegete.importance.erasure import erased
from exegete.importance.sharing import sharing
from exegete.interventions.cut import Cut
from exegete.models.build import make_model
from exegete.models.contract import Site
from exegete.report.theme import to_svg
from exegete.tasks.example import Example, Task
from tests.models.tiny import bert, in_memory
from tests.small import batch_of, small_model, texts, vocabulary
from tests.subjects import cell, subject_of

TEXTS = texts(8)
TASK = Task("small", ("no", "yes"), {"train": TEXTS, "test": TEXTS}, "made up")
WORDS = (("a", "charming", "movie", "."), ("dull",), ("a", "plot", ",", "unbelievably", "bad"), ("terrific", "ok"))
REVIEWS = tuple(Example(i, (words,), i % 2) for i, words in enumerate(WORDS))
SMALL = Task("reviews", ("no", "yes"), {"train": REVIEWS, "test": REVIEWS}, "made up")


def layers() -> Any:
    return small_model("transformer:size=6,hidden=6,heads=2,inner=10,scale=1,layers=3", TEXTS).double()


def margin(logits: Tensor, label: Tensor) -> Tensor:
    """Of two classes: log-odds."""
    rows = torch.arange(len(label))
    return (logits[rows, label] - logits[rows, 1 - label]).double()


def test_an_edge_that_is_cut_has_no_weight_and_the_rest_is_as_masked_before() -> None:
    """By hand, from the scores: softmax over the keys that are left; the word itself still looks."""
    model = layers()
    batch = batch_of(model, TEXTS)
    word = batch.words & (batch.words.cumsum(-1) == 2)
    seen: dict[str, Site] = {}

    def watch(site: Site) -> Tensor:
        seen[site.name] = site
        return Cut(word, ("encoder.0",))(site)

    with torch.no_grad():
        found = model.trace(batch, intervene=watch).attention
    site = seen["encoder.0"]
    allowed = site.mask.expand_as(site.weights) & ~(word[:, None, None] & ~word[:, None, :, None])
    by_hand = site.scores.masked_fill(~allowed, -torch.inf).softmax(-1).nan_to_num(0.0)
    torch.testing.assert_close(found["encoder.0"], by_hand.masked_fill(~site.mask, 0.0))
    torch.testing.assert_close(found["encoder.1"], seen["encoder.1"].weights, atol=0, rtol=0)


def test_cutting_nothing_leaves_the_very_same() -> None:
    model = in_memory(*bert())
    batch = model.collate(REVIEWS)
    with torch.no_grad():
        own, cut = model.logits(batch), model.logits(batch, intervene=Cut(torch.zeros_like(batch.words)))
    assert torch.equal(own, cut)


@pytest.mark.parametrize("make", [layers, lambda: in_memory(*bert())])
def test_a_blocked_word_may_be_any_other(make: Any) -> None:
    """Nothing of it gets through, while its place stays: another word there gives the same logits."""
    model = make()
    assert unblocked(model) is None
    some = TEXTS if model.reader.words else REVIEWS
    batch = model.collate(some)
    word = batch.words & (batch.words.cumsum(-1) == 1)
    noise = torch.randn(model.embed(batch).shape, generator=torch.Generator().manual_seed(0))
    other = model.embed(batch) + (3 * noise * word[..., None]).to(model.embed(batch).dtype)
    with torch.no_grad():
        own, blocked = model.logits(batch), model.logits(batch, intervene=Cut(word))
        moved, seen = model.logits(batch, embedded=other, intervene=Cut(word)), model.logits(batch, embedded=other)
    torch.testing.assert_close(blocked, moved, atol=1e-5, rtol=1e-5)
    assert float((own - blocked).abs().max()) > 1e-3
    assert float((own - seen).abs().max()) > 1e-3


def test_blocked_is_a_removal_of_its_own() -> None:
    """Not deletion, not zeroing: also within one block of shared results."""
    model = in_memory(*bert())
    batch = model.collate(REVIEWS)
    rows = torch.tensor([0, 0, 2])
    gone = torch.zeros(3, batch.tokens.shape[1], dtype=torch.bool)
    gone[0, 2] = gone[2, 4] = True
    with sharing():
        found = {by: erased(model, batch, rows, gone, by) for by in ("zero", "blocked", "delete", "unknown")}
    with torch.no_grad():
        by_hand = model.logits(batch.rows(rows), intervene=Cut(gone)).double()
        plain = model.logits(batch).double()
    torch.testing.assert_close(found["blocked"], by_hand, atol=1e-5, rtol=0)
    torch.testing.assert_close(found["blocked"][1], plain[0], atol=1e-5, rtol=0)
    for by in ("zero", "delete", "unknown"):
        assert float((found[by] - found["blocked"])[[0, 2]].abs().min()) > 1e-4


def test_blocking_scores_words_by_what_is_lost() -> None:
    model = layers()
    batch = batch_of(model, TEXTS)
    scores = Blocking()(model, batch)
    with torch.no_grad():
        own = model.logits(batch)
        label = own.argmax(-1)
        for place in range(batch.tokens.shape[1]):
            word = batch.words & (torch.arange(batch.tokens.shape[1]) == place)
            lost = own.gather(1, label[:, None]) - model.logits(batch, intervene=Cut(word)).gather(1, label[:, None])
            there = word.any(-1)
            torch.testing.assert_close(scores.values[there, place], lost[there, 0], atol=1e-6, rtol=1e-6)
    assert isinstance(IMPORTANCES.make("blocking:of=tvd"), Blocking)


@pytest.mark.parametrize(
    "spec", ["bilstm:size=4,hidden=4", "spelled:size=4,hidden=4,inner=8,pool=mean", "cnn:size=4,hidden=4"]
)
def test_a_model_in_which_words_act_otherwise_is_refused(spec: str) -> None:
    """States of neighbours, or a mean over all states, take a word past its attention."""
    torch.manual_seed(0)
    model = make_model(spec, vocabulary(TEXTS), ("no", "yes")).eval()
    assert "words act in other ways" in (refusal(Blocking(), model) or "")
    assert "words act in other ways" in (refusal(IMPORTANCES.make("lime:removal=blocked"), model) or "")
    assert refusal(IMPORTANCES.make("lime"), model) is None
    assert Faithfulness(removals=("delete", "blocked")).unsuited(TASK, model) is not None
    assert Faithfulness(removals=("delete",)).unsuited(TASK, model) is None


def test_words_that_act_through_weights_alone_can_be_blocked() -> None:
    assert unblocked(small_model("average:size=4,hidden=4", TEXTS)) is None


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    return cell(Knockout(window=1, words=2).rows(subject_of(in_memory(*bert()), SMALL)))


def test_rows_are_what_cutting_costs(rows: pl.DataFrame) -> None:
    """Every row by a pass of its own, text by text."""
    model = in_memory(*bert())
    for example in REVIEWS:
        batch = model.collate([example])
        asked = knockout_words(batch, 2, 0)
        with torch.no_grad():
            own = model.logits(batch)
            label = own.argmax(-1)
            for token in asked[0].nonzero()[:, 0].tolist():
                word = torch.arange(batch.tokens.shape[1])[None] == token
                cls = torch.arange(batch.tokens.shape[1])[None] == 0
                whole = margin(own, label) - margin(model.logits(batch, intervene=Cut(word)), label)
                kept = rows.filter(pl.col("example") == example.id, pl.col("place") == token - 1)
                everywhere = kept.filter(pl.col("first").is_null())
                assert everywhere["value"].item() == pytest.approx(float(whole.abs()), abs=1e-5)
                for source, by in (("all", None), ("readout", cls)):
                    for layer in (0, 1):
                        cut = model.logits(batch, intervene=Cut(word, (f"encoder.{layer}",), by))
                        lost = (margin(own, label) - margin(cut, label)) * whole.sign()
                        found = kept.filter(pl.col("source") == source, pl.col("first") == layer)["value"].item()
                        assert found == pytest.approx(float(lost), abs=1e-5)


def test_in_the_last_layer_only_the_read_token_counts(rows: pl.DataFrame) -> None:
    """By construction: nobody reads what others saw in the last layer, so both sources cost the same there."""
    last = rows.filter(pl.col("first") == 1).sort("example", "place")
    both = [last.filter(pl.col("source") == source)["value"].to_numpy() for source in ("all", "readout")]
    np.testing.assert_allclose(both[0], both[1], atol=1e-5)
    first = rows.filter(pl.col("first") == 0).sort("example", "place")
    early = [first.filter(pl.col("source") == source)["value"].to_numpy() for source in ("all", "readout")]
    assert float(np.abs(early[0] - early[1]).max()) > 1e-3


def test_one_word_of_a_text_is_the_strongest(rows: pl.DataFrame) -> None:
    whole = rows.filter(pl.col("first").is_null())
    for (_,), own in whole.group_by("example"):
        assert (own["words"] == "strongest").sum() == 1
        assert own.sort("value", descending=True)["words"][0] == "strongest"


def test_a_window_of_all_layers_is_all_sites_but_the_pool() -> None:
    """Of a model without a pool both are the same."""
    found = Knockout(window=9, words=2, sources=("all",)).rows(subject_of(in_memory(*bert()), SMALL))
    whole, window = (found.filter(pl.col("first").is_null() == null) for null in (True, False))
    assert window["last"].unique().to_list() == [1]
    np.testing.assert_allclose(whole["value"].to_numpy(), window["value"].to_numpy(), atol=1e-6)


def test_a_pooling_model_has_no_token_that_is_read() -> None:
    found = Knockout(window=2, words=2).rows(subject_of(layers(), TASK))
    assert found["source"].unique().to_list() == ["all"]
    assert found.filter(pl.col("first").is_not_null()).select("first", "last").unique().sort("first").rows() == [
        (0, 1), (1, 2),
    ]  # fmt: skip


def test_the_token_that_is_read() -> None:
    model = in_memory(*bert())
    batch, reads = model.collate(REVIEWS), list[torch.Tensor]()

    def watch(site: Site) -> torch.Tensor:
        assert model.readout is not None
        reads.append(model.readout.reads(site))
        return site.weights

    model.logits(batch, intervene=watch)
    assert [found.nonzero()[:, 1].tolist() for found in reads] == [[0] * 4] * 2


def test_it_is_summed_up_drawn_and_told(rows: pl.DataFrame, tmp_path: Path) -> None:
    ask = Knockout(window=1, words=2)
    summary = ask.summary(rows)
    kept = rows.filter(pl.col("words") == "others", pl.col("source") == "all", pl.col("first") == 0)
    own = summary.filter(pl.col("words") == "others", pl.col("source") == "all", pl.col("first") == 0)
    assert own["mean"].item() == pytest.approx(kept.group_by("example").agg(pl.col("value").mean())["value"].mean())
    assert own["low"].item() <= own["mean"].item() <= own["high"].item()
    assert knockout_points(summary).height == summary.filter(pl.col("first").is_not_null()).height
    for chart in ask.figures(rows, summary).values():
        assert to_svg(chart).startswith("<svg")
    (tmp_path / "tables").mkdir()
    rows.write_parquet(tmp_path / "tables" / "knockout.parquet")
    summary.write_parquet(tmp_path / "tables" / "knockout_summary.parquet")
    found = QuestionResult(tmp_path, "knockout", ask)
    assert section.headline(found).frame.height == summary.height
    assert len(list(section.sections(found))) == 1


def test_what_can_not_be_asked_is_refused() -> None:
    with pytest.raises(UsageError, match="no layers of self-attention"):
        Knockout().rows(subject_of(small_model("bilstm:size=4,hidden=4", TEXTS), TASK))
    with pytest.raises(UsageError, match="window is 1 or more"):
        Knockout(window=0)
    with pytest.raises(UsageError, match="each once"):
        Knockout(sources=("all", "all"))
