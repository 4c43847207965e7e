"""Readings: every number again, slowly, on transformers whose truth is known."""

import polars as pl
import pytest
import torch

from exegete.base.errors import UsageError
from exegete.experiments.common.contract import Subject
from exegete.experiments.mediation.experiment import ATTENTION, Mediation
from exegete.experiments.readings.baselines import inverse_frequency, mean_effects
from exegete.experiments.readings.candidates import candidates
from exegete.experiments.readings.cuts import Cuts
from exegete.experiments.readings.experiment import Readings
from exegete.experiments.readings.idle_heads import Moving, TextEffects, find_idle_heads
from exegete.experiments.readings.statistics import by_reading
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.reading import Reading
from exegete.interventions.sites import Head
from exegete.measures.divergence import class_log_odds
from exegete.models.contract import Site
from exegete.models.truths.transformers import Wired, build_wired
from exegete.tasks.selection import choose_texts
from exegete.wings.calibration.draws import subject_of
from tests.small import small_model, small_task

HEADS = [Head(f"encoder.{layer}", head) for layer in (0, 1) for head in (0, 1)]
ASKED = Readings(removals=("delete",), companies=("alone",), texts=12, choosing=12, flattened=6)
MEDIATION = Mediation((ATTENTION,), removals=("delete",), companies=("alone",), choose_on="", texts=12, words=16)


@pytest.fixture(scope="module")
def truth() -> Wired:
    return build_wired("copied in one head")


@pytest.fixture(scope="module")
def subject(truth: Wired) -> Subject:
    return subject_of(truth.model, truth.task, tuple(choose_texts(truth.task.split("test"), MEDIATION.texts)))


@pytest.fixture(scope="module")
def rows(subject: Subject) -> pl.DataFrame:
    return ASKED.rows(subject)


@torch.no_grad()
def test_the_readout_is_asked_what_mediation_asks(subject: Subject, rows: pl.DataFrame) -> None:
    """Edges cut from CLS at the last layer are zeroed weights: M and Γ are the same numbers."""
    own = MEDIATION.rows(subject).sort("example", "scale")
    kept = rows.filter(pl.col("on") == "test", pl.col("kind") == "readout").sort("example", "scale")
    assert kept["example"].to_list() == own["example"].to_list()
    for name in ("ranks", "reads"):
        torch.testing.assert_close(kept[name].to_torch(), own[name].to_torch(), rtol=1e-4, atol=1e-4)
    assert kept["void"].to_list() == own["void"].to_list()


@torch.no_grad()
def test_cuts_one_word_at_a_time(truth: Wired) -> None:
    """Against scores of −∞ written by hand: from CLS alone, from all tokens, in one head."""
    model, texts = truth.model, truth.task.split("test")[:3]
    batch = model.collate(texts)
    readings = [Reading(site="every"), Reading(site="every", query="every"), Reading(site="encoder.1", head=1)]
    asked = batch.words & (batch.words.cumsum(-1) <= 2)
    whole, cut = Cuts(model, readings)(model, batch, asked)
    torch.testing.assert_close(whole, model.logits(batch).double())

    def by_hand(row: int, token: int, reading: Reading) -> torch.Tensor:
        def without(site: Site) -> torch.Tensor:
            if reading.site not in ("every", site.name):
                return site.weights
            weights = site.weights.clone()
            for head in range(2):
                for query in range(weights.shape[2]):
                    looks = (
                        (query == 0 or reading.query == "every")
                        and query != token
                        and bool(site.mask[0, 0, query].any())
                    )
                    if looks and reading.head in (None, head):
                        weights[0, head, query, token] = 0
                        weights[0, head, query] /= weights[0, head, query].sum()
            return weights

        return model.logits(model.collate([texts[row]]), intervene=without)[0].double()

    for place, (row, token) in enumerate(asked.nonzero().tolist()):
        for way, reading in enumerate(readings):
            torch.testing.assert_close(cut[way, place], by_hand(row, token, reading), rtol=1e-4, atol=1e-4)


def test_unread_heads(truth: Wired) -> None:
    """Head 0 of the readout copies and gives nothing, head 1 is flat already: no order is read anywhere."""
    model, texts = truth.model, truth.task.split("dev")[:8]
    batch = model.collate(texts)
    label = torch.tensor([text.label for text in texts])
    shown = [TextEffects(batch, label, torch.ones(batch.tokens.shape).where(batch.words, torch.nan))]
    assert find_idle_heads(model, shown, HEADS, one=True) == frozenset(HEADS)
    read = build_wired("planted")
    shown = [TextEffects(read.model.collate(texts), label, shown[0].removed)]
    assert find_idle_heads(read.model, shown, HEADS, one=True) == {head for head in HEADS if head.site == "encoder.0"}


@torch.no_grad()
def test_how_far_flat_heads_move(truth: Wired) -> None:
    """√(Σ Δ² / Σ e²), with weights of words made flat by hand."""
    model, texts = build_wired("planted").model, truth.task.split("dev")[:4]
    batch = model.collate(texts)
    label = torch.tensor([text.label for text in texts])

    def flat(site: Site) -> torch.Tensor:
        weights = site.weights.clone()
        if site.name == "encoder.1":
            for text in range(len(weights)):
                words = site.batch.words[text]
                weights[text, 0, 0, words] = weights[text, 0, 0, words].mean()
        return weights

    change = class_log_odds(model.logits(batch, intervene=flat), label) - class_log_odds(model.logits(batch), label)
    shown = TextEffects(batch, label, torch.full(batch.tokens.shape, 2.0).where(batch.words, torch.nan))
    expected = (change.square().sum() / (4 * batch.words.sum())).sqrt()
    assert Moving(model, [shown], one=True).by([Head("encoder.1", 0)]) == pytest.approx(float(expected), rel=1e-4)


def test_candidates_can_be_asked_for_by_name(truth: Wired) -> None:
    every = candidates(truth.model, {"encoder.0": 2, "encoder.1": 2})
    assert len({each.name for each in every}) == len(every) == 6 + 1 + 4
    for each in every:
        assert IMPORTANCES.make(each.name) == each.reading


def test_what_chose_and_what_judges_are_told_apart(rows: pl.DataFrame) -> None:
    asked = rows.filter(pl.col("reads").is_not_null())["kind"].value_counts()
    assert set(asked["kind"]) == {
        "readout", "layers", "columns", "columns of all layers", "rollout", "flow", "layer", "head",
    }  # fmt: skip
    assert set(rows.filter(pl.col("reading") == "word type")["on"]) == {"test"}  # it was taken from the others
    one = rows.filter(pl.col("kind") == "head", pl.col("reads").is_not_null())["reading"].unique().to_list()
    assert len(one) == 1  # the best head where readings were chosen
    ids = rows.group_by("on").agg(pl.col("example").unique())["example"].to_list()
    assert not set(ids[0]) & set(ids[1])


def test_summary_and_figure(rows: pl.DataFrame) -> None:
    said = rows.with_columns(task=pl.lit("t"), model=pl.lit("m"), seed=pl.lit(0), split=pl.lit("test"))
    summary = ASKED.summary(said)
    line = summary.filter(pl.col("on") == "test", pl.col("kind") == "layers", pl.col("scale") == "log-odds")
    kept = said.filter(
        pl.col("on") == "test", pl.col("kind") == "layers", pl.col("scale") == "log-odds", ~pl.col("void")
    )
    assert line["ranks"].item() == pytest.approx(kept["ranks"].mean())
    assert line["n"].item() == kept.height
    assert list(ASKED.figures(said, summary)) == ["readings"]


def test_every_fine_tuning_is_a_specification_of_its_own(rows: pl.DataFrame) -> None:
    one = by_reading(rows.with_columns(seed=pl.lit(0)))
    both = by_reading(pl.concat([rows.with_columns(seed=pl.lit(seed)) for seed in (0, 1)]))
    for alone, two in zip(one, both, strict=True):
        names = [f"{name}, seed {seed}" for name in alone.values["ranks"] for seed in (0, 1)]
        assert sorted(two.values["ranks"]) == sorted(names)
        assert two.level == pytest.approx(alone.level, nan_ok=True)


def test_baselines() -> None:
    assert mean_effects([("a", 1.0), ("a", -3.0), ("b", 0.5)]) == {"a": 2.0, "b": 0.5}
    task = small_task()
    idf = inverse_frequency(task, ())
    train = task.splits["train"]
    word = train[0].words[0]
    assert idf[word] == pytest.approx(torch.tensor(len(train) / sum(word in e.words for e in train)).log().item())


def test_what_cannot_be_asked() -> None:
    task = small_task()
    assert "has none" in (Readings().unsuited(task, small_model("bilstm", task.split("train"))) or "")
    for wrong in ({"choose_on": "test"}, {"draws": 0}, {"removals": ()}, {"words": 2}):
        with pytest.raises(UsageError, match="experiment 'readings'"):
            Readings(**wrong)
