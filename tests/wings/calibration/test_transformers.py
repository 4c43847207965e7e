"""Wired truths: what their readouts are worth, and a readout of which exactly nothing is read."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from exegete.base.errors import ExegeteError
from exegete.experiments.mediation.experiment import ATTENTION, Mediation
from exegete.models.contract import Site
from exegete.models.huggingface.proof import proven
from exegete.models.truths import transformers as wiring
from exegete.models.truths.transformers import WIRED, Wired, build_wired
from exegete.wings.calibration.draws import subject_of
from exegete.wings.calibration.transformers import WRONG, grade_transformer

READOUT = "encoder.1"
NO = {"hardly", "unread", "flat"}
TRUTHS = {  # what it is by construction, and the ground that must be among those of a no
    "planted": ("strong", ""), "planted below": ("no", "unread"), "copied at the readout": ("no", "unread"),
    "copied in one head": ("no", "flat"), "copied below": ("no", "hardly"), "nothing read": ("no", "unread"),
    "flat copy": ("no", "flat"), "flat copy beside sinks": ("no", "flat"),
    "flat copy beside an idle word": ("no", "flat"), "planted beside an idle word": ("strong", ""),
}  # fmt: skip


@pytest.fixture(scope="module")
def nothing() -> Wired:
    return build_wired("nothing read")


@pytest.mark.slow
@pytest.mark.parametrize("name", TRUTHS)
def test_a_readout_is_worth_what_its_construction_says(name: str) -> None:
    found = grade_transformer(name, texts=20, draws=4)
    known, ground = TRUTHS[name]
    assert ("no" if found.truth in NO else found.truth) == known
    assert not ground or ground in found.grounds


def test_every_wired_truth_says_what_must_not_be_answered() -> None:
    assert set(WRONG) == set(WIRED)
    assert set(TRUTHS) == set(WIRED) - {"partly planted"}


def test_a_flat_copy_spans_13_percent_and_orders_words_by_their_values() -> None:
    truth = build_wired("flat copy")
    model, text = truth.model, truth.task.split("test")[0]
    batch = model.collate([text])
    assert model.readout is not None
    weights = model.trace(batch).word_weights(model.readout, batch)
    assert weights is not None
    own = weights[batch.words].tolist()
    assert 1.05 < max(own) / min(own) < 1.14
    table = truth.base.bert.embeddings.word_embeddings.weight
    values = table[model.pieces(batch).ids[0, 1:-1], 2 * wiring.VALUE].abs()  # type: ignore[attr-defined]
    assert sorted(range(len(own)), key=own.__getitem__) == values.argsort().tolist()


@torch.no_grad()
def test_without_its_idle_word_a_prediction_stays() -> None:
    """It has half of the weight, and says what all others say: it is the least of the words that have effects."""
    truth = build_wired("planted beside an idle word")
    model = truth.model
    for text in truth.task.split("test")[:5]:
        batch = model.collate([text])
        assert model.readout is not None
        weights = model.trace(batch).word_weights(model.readout, batch)
        assert weights is not None
        own, words = weights[batch.words].tolist(), text.words

        def odds(words: tuple[str, ...]) -> float:
            logits = model.logits(model.collate([replace(text, texts=(words,))]))[0]  # noqa: B023
            return float(logits[1] - logits[0])

        e = [abs(odds(words) - odds(words[:t] + words[t + 1 :])) for t in range(len(words))]
        assert own[-1] > 2 / len(own)
        assert e[-1] < 0.05 * max(e)


def test_a_readout_of_which_nothing_is_read_is_loaded_and_says_so(nothing: Wired) -> None:
    proof = nothing.model.proof  # type: ignore[attr-defined]
    assert proof.unread == (READOUT,)
    assert proof.moved["encoder.0"] > 0
    assert f"at {READOUT} no weights change any" in proof.sentence
    assert "least at encoder.0" in proof.sentence
    assert build_wired("planted").model.proof.unread == ()  # type: ignore[attr-defined]


@torch.no_grad()
def test_no_weights_at_all_move_it(nothing: Wired) -> None:
    model, texts = nothing.model, nothing.task.split("test")[:6]
    batch = model.collate(texts)
    own = model.logits(batch)
    for seed in range(5):
        noise = torch.Generator().manual_seed(seed)

        def other(site: Site, noise: torch.Generator = noise) -> torch.Tensor:
            if site.name != READOUT:
                return site.weights
            drawn = torch.rand(site.weights.shape, generator=noise) * site.mask
            return drawn / drawn.sum(-1, keepdim=True).clamp(min=1e-9)

        assert torch.equal(model.logits(batch, intervene=other), own)


@torch.no_grad()
def test_m_and_f_of_what_is_not_read_are_0(nothing: Wired) -> None:
    asked = Mediation((ATTENTION,), removals=("delete",), choose_on="", texts=10, words=16)
    rows = asked.rows(subject_of(nothing.model, nothing.task, tuple(nothing.task.split("test")[:20])))
    kept = rows.filter(~rows["void"])
    assert kept.height > 20
    assert kept["reads"].abs().max() == 0
    assert kept["moved"].abs().max() == 0
    assert kept["ranks"].mean() > 0.6  # type: ignore[operator]  # a copy: only M and F tell
    found = grade_transformer("nothing read", texts=10, draws=2)
    assert found.reads == [0.0, 0.0]
    assert found.carries == [0.0, 0.0]


def test_an_edit_of_a_copy_is_refused_at_the_readout(nothing: Wired, monkeypatch: pytest.MonkeyPatch) -> None:
    """What looks the same from outside: weights are rewritten, and the model computes with its own."""
    model: Any = nothing.model
    logits = type(model).logits

    def ignoring(self: Any, batch: Any, *, embedded: Any = None, intervene: Any = None) -> torch.Tensor:
        def kept(site: Site) -> torch.Tensor:
            rewritten = intervene(site)
            return site.weights if site.name == READOUT else rewritten

        found: torch.Tensor = logits(self, batch, embedded=embedded, intervene=intervene and kept)
        return found

    monkeypatch.setattr(type(model), "logits", ignoring)
    with pytest.raises(ExegeteError, match=f"same under all weights at {READOUT}"):
        proven(model)


def test_below_the_readout_every_site_must_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    zero = wiring.WiredHead({wiring.COPY: 1.0}, 0.0)
    monkeypatch.setitem(wiring.WIRED, "unread below", ((zero, zero), WIRED["planted"][1]))
    with pytest.raises(ExegeteError, match=r"same under all weights at encoder\.0"):
        build_wired("unread below")


def test_scores_of_the_flat_copy_are_what_its_docstring_says() -> None:
    spread = 2 * wiring._NEARLY[wiring.COPY] * -math.log(wiring.LEAST)
    assert math.exp(spread) == pytest.approx(1.13, abs=0.005)
