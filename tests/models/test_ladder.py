"""The ladder: its formula word by word, its claims exactly, its rungs linear; and what importances make of it."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import Importance, Target
from exegete.measures.rank import kendall
from exegete.models.build import build, make_classifier
from exegete.models.contract import Site
from exegete.models.ours.attention import Additive
from exegete.models.ours.classifier import SITE
from exegete.models.settings import MODELS
from exegete.models.truths.ladder import NULL, Ladder, NullKey
from exegete.tasks.batching import collate
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import fit_vocabulary
from exegete.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from exegete.training.evaluation import evaluate
from exegete.training.fit import Fit
from exegete.training.settings import TrainingSettings
from tests.small import batch_of, small_task, texts

TEXTS = texts(12)
SHARES = (0.0, 0.25, 1.0)
APART = tuple(Example(i, (tuple("abcdefghij"[i : i + 5]),), i % 2) for i in range(6))  # no word twice: nothing ties


def made(share: float = 1.0, more: str = "", labels: tuple[str, ...] = ("no", "yes")) -> Ladder:
    """Untrained, in float64, with gates and leanings that differ from word to word; a bias that is not 0."""
    torch.manual_seed(0)
    model = make_classifier(f"ladder:size=6,scale=1,share={share}{more}", fit_vocabulary(TEXTS), labels).eval().double()
    assert isinstance(model, Ladder)
    with torch.no_grad():
        for parameter in model.scorer.parameters():
            parameter.mul_(3)
        model.decoder.bias.copy_(torch.linspace(-0.3, 0.4, model.outputs))
        model.project.bias.fill_(-0.7)
    return model


def slow(model: Ladder, words: tuple[str, ...], share: float) -> tuple[list[float], list[float]]:
    """Logits and the weights of the words by the formula, a word at a time (two classes, one output)."""
    assert isinstance(model.scorer, Additive)
    room, m = model.settings.room, model.settings.room * math.log1p(math.exp(float(model.encoder.raw)))
    gates, leanings = [], []
    for word in words:
        e = model.embedding.weight[model.vocabulary.index[word]]
        linear, outer = model.scorer.linear, model.scorer.outer
        score = float(outer.weight[0] @ torch.tanh(linear.weight @ e + linear.bias)) + float(model.project.bias)
        gates.append(1 / (1 + math.exp(-score)))
        leanings.append(math.tanh(float(model.encoder.linear.weight[0] @ e + model.encoder.linear.bias[0])))
    alpha = [g / max(room, sum(gates)) for g in gates]
    half = sum(
        m * (share * a * (1 if r >= 0 else -1) + (1 - share) * r / max(room, len(words)))
        for a, r in zip(alpha, leanings, strict=True)
    )
    z = 2 * half + float(model.decoder.bias[0])
    return [-z / 2, z / 2], alpha


def draws_of(encoded_mask: Tensor) -> Tensor:
    """Some weights on real keys that sum to anything: [batch, 5, key]."""
    torch.manual_seed(5)
    return torch.rand(len(encoded_mask), 5, encoded_mask.shape[1], dtype=torch.float64) * encoded_mask[:, None]


@pytest.mark.parametrize("room", [3, 64])
@pytest.mark.parametrize("share", SHARES)
@torch.no_grad()
def test_it_predicts_as_the_formula_says(share: float, room: int) -> None:
    model = made(share, f",room={room}")
    for e in TEXTS:
        trace = model.trace(batch_of(model, [e]))
        logits, alpha = slow(model, e.words, share)
        weights = trace.attention[SITE][0, 0, 0].tolist()
        assert trace.logits[0].tolist() == pytest.approx(logits, abs=1e-12)
        assert weights[1:-1] == pytest.approx(alpha, abs=1e-12)
        assert (weights[0], weights[-1]) == pytest.approx((1 - sum(alpha), 0), abs=1e-12)  # null key, end symbol
        assert trace.owner[SITE][0].tolist() == [-1, *range(1, 1 + len(e)), -1]


@pytest.mark.parametrize(
    ("labels", "more"), [(("no", "yes"), ""), (("x", "y", "z"), ""), (("no", "yes"), ",outputs=classes")]
)
def test_the_faithful_claim_for_weights_and_for_deletion(labels: tuple[str, ...], more: str) -> None:
    """With share=1: m α_t s_t, to the last digits, whichever way word t goes."""
    model = made(1.0, more, labels)
    batch = batch_of(model, APART)
    whole = model.trace(batch)
    alpha, strength = whole.attention[SITE][:, 0, 0], float(model.encoder.strength.detach())
    effects = model.effects(batch)
    assert (effects.abs() - strength * alpha[..., None] * batch.words[..., None]).abs().max() < 1e-12
    deleted = IMPORTANCES.make("leave_one_out:of=logit")
    for c in range(len(labels)):
        label = torch.full((len(APART),), c)
        lost = deleted(model, batch, Target(label)).values
        assert (lost - effects[..., c])[batch.words].abs().max() < 1e-12
    for t in range(1, 6):

        def to_the_null_key(site: Site, t: int = t) -> Tensor:
            moved = site.weights.clone()
            moved[..., 0] += moved[..., t]
            moved[..., t] = 0
            return moved

        after = model.trace(batch, intervene=to_the_null_key).logits
        assert (whole.logits - after - effects[:, t]).abs().max() < 1e-12


def test_leave_one_out_ranks_as_attention_does_and_no_wonder_not_without_attention() -> None:
    def tau(share: float) -> Tensor:
        model = made(share)
        batch = batch_of(model, APART)
        ours, theirs = (IMPORTANCES.make(name)(model, batch).values for name in ("attention", "leave_one_out:of=logit"))
        return kendall(ours[:, 1:-1], theirs[:, 1:-1].abs()).tau

    assert tau(1.0).tolist() == pytest.approx([1] * len(APART))
    assert tau(0.0).mean() < 0.7


@pytest.mark.parametrize("share", SHARES)
def test_deletion_costs_what_effects_say_on_every_rung(share: float) -> None:
    model = made(share)
    batch = batch_of(model, TEXTS)
    scores = IMPORTANCES.make("leave_one_out:of=logit")(model, batch)
    truth = model.effects(batch).gather(-1, scores.target.label[:, None, None].expand(*batch.tokens.shape, 1))[..., 0]
    assert (scores.values - truth)[batch.words].abs().max() < 1e-12


def test_with_more_open_gates_than_room_words_compete() -> None:
    model = made(1.0, ",room=1")
    with torch.no_grad():
        model.project.bias.fill_(2.0)
    batch = batch_of(model, APART)
    lost = IMPORTANCES.make("leave_one_out:of=logit")(model, batch, Target(torch.ones(6, dtype=torch.int64))).values
    assert (lost - model.effects(batch)[..., 1])[batch.words].abs().max() > 0.01
    assert model.trace(batch).attention[SITE][:, 0, 0, 0].max() < 1e-12  # nothing is left for the null key


def test_without_share_no_weights_change_anything() -> None:
    model = made(0.0)
    batch = batch_of(model, TEXTS)
    encoded, logits = model.encode(batch), model.trace(batch).logits
    assert torch.equal(model.decode(encoded, draws_of(encoded.mask)), logits[:, None].expand(-1, 5, -1))
    for factor, power in ((0, 1), (1, 0), (7, 2)):
        after = model.trace(batch, intervene=lambda site, f=factor, p=power: f * site.weights**p * site.mask)  # type: ignore[misc]
        assert torch.equal(after.logits, logits)


@settings(max_examples=20, deadline=None)
@given(st.floats(0, 1))
def test_logits_are_linear_in_the_share(share: float) -> None:
    ends, between = [made(0.0), made(1.0)], made(share)
    batch = batch_of(between, TEXTS)
    draws = draws_of(between.encode(batch).mask)
    unheeded, heeded, mixed = (model.decode(model.encode(batch), draws) for model in (*ends, between))
    assert (mixed - (share * heeded + (1 - share) * unheeded)).abs().max() < 1e-12


@pytest.mark.parametrize("share", SHARES)
def test_decoding_is_what_values_and_no_weights_say(share: float) -> None:
    """logits = weights @ values + decode(0): what all fast ways rely on; also with values in float64 alone."""
    model = made(share).float()
    encoded = model.encode(batch_of(model, TEXTS))
    assert encoded.values is not None
    draws = draws_of(encoded.mask)
    nothing = model.decode(encoded, torch.zeros_like(draws))
    values = encoded.values.double()
    assert torch.equal(model.decode(encoded._replace(values=values), draws), draws @ values + nothing)
    assert model.decode(encoded, draws.float()).dtype == torch.float32


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-6, 6), min_size=1, max_size=6), st.integers(1, 8), st.integers(0, 6))
def test_null_key_weights_sum_to_one(words: list[float], room: int, place: int) -> None:
    project = NullKey(room).double()
    place = min(place, len(words))
    scores = torch.tensor([*words[:place], NULL, *words[place:]], dtype=torch.float64)
    weights = project(scores, torch.ones_like(scores, dtype=torch.bool)).detach()
    gates = [1 / (1 + math.exp(-z)) for z in words]
    expected = [g / max(room, sum(gates)) for g in gates]
    assert [w for i, w in enumerate(weights.tolist()) if i != place] == pytest.approx(expected, abs=1e-12)
    assert float(weights.sum()) == pytest.approx(1, abs=1e-12)
    assert float(weights.min()) >= 0
    without = project(scores, scores != NULL).detach()  # the null key masked away: words share everything
    assert float(without[place]) == 0
    assert [w for i, w in enumerate(without.tolist()) if i != place] == pytest.approx([g / sum(gates) for g in gates])
    assert not project(scores, torch.zeros_like(scores, dtype=torch.bool)).any()


def test_null_key_gradients_are_exact() -> None:
    project = NullKey(2).double()
    mask = torch.tensor([True, True, True, False, True])

    def weights(z: Tensor) -> Tensor:
        marked = torch.cat([torch.full((len(z), 1), NULL, dtype=z.dtype), z], 1)
        result: Tensor = project(marked, mask)
        return result

    torch.manual_seed(0)
    for shift in (-2.0, 3.0):  # below and above room
        assert torch.autograd.gradcheck(weights, ((torch.randn(3, 4, dtype=torch.float64) + shift).requires_grad_(),))


def test_straight_through_gradients() -> None:
    """Forward the sign, backward tanh: with weights held still, share α m (1 − r²) w and the leaning's own."""
    model = made(0.5)
    batch = batch_of(model, APART)
    importance: Importance = IMPORTANCES.make("gradient:detach=true,norm=l2")
    found = importance(model, batch, Target(torch.ones(6, dtype=torch.int64))).values
    with torch.no_grad():
        linear, m = model.encoder.linear, float(model.encoder.strength)
        slope = 1 - linear(model.embed(batch)).tanh().square()[..., 0]  # [batch, token]
        alpha = model.trace(batch).attention[SITE][:, 0, 0]
        expected = 0.5 * m * (alpha + 1 / 64) * slope * linear.weight[0].norm()
    assert (found - expected)[batch.words].abs().max() < 1e-10


def test_the_start_symbol_in_a_text_is_a_word() -> None:
    model = made()
    batch = batch_of(model, [Example(0, (("a", "<s>", "b"),), 0)])
    encoded = model.encode(batch)
    assert (encoded.scores == NULL).tolist() == [[True, False, False, False, False]]
    assert encoded.mask.tolist() == [[True, True, True, True, False]]


def test_a_text_without_words_leaves_the_bias() -> None:
    model = made(0.5)
    batch = batch_of(model, [Example(0, ((),), 0)])
    trace = model.trace(batch)
    assert torch.equal(trace.logits[0], model.two_sided(model.decoder.bias))
    assert trace.attention[SITE][0, 0, 0].tolist() == [1, 0]


def test_wrappers_are_forced_and_wrong_settings_refused() -> None:
    assert made().vocabulary.wrap
    for spec, sentence in (
        ("ladder:wrap=false", "start symbol is its null key"),
        ("ladder:share=1.1", "share"),
        ("ladder:room=0", "room"),
        ("ladder:attention=none", "tanh"),
        ("ladder:projection=sparsemax", "softmax"),
    ):
        with pytest.raises(UsageError, match=sentence):
            MODELS.make(spec)


def test_a_checkpoint_brings_the_same_model_back(tmp_path: Path) -> None:
    model = made(0.25).float()
    save_checkpoint(tmp_path / "ladder", Checkpoint(model, "small", "", 0, {}, {}))
    loaded = load_checkpoint(tmp_path / "ladder").model
    assert isinstance(loaded, Ladder)
    batch = batch_of(model, TEXTS)
    assert torch.equal(loaded.trace(batch).logits, model.trace(batch).logits)


def test_attention_that_will_not_learn_is_spread() -> None:
    task = small_task()
    settled, plain = (build(f"ladder:size=6,scale=1,share={share},spread=2", task) for share in (0, 1))
    assert isinstance(settled, Ladder)
    assert isinstance(plain, Ladder)
    with torch.no_grad():
        scores = settled.scorer(settled.embedding.weight[4:]) + settled.project.bias
    assert (float(scores.mean()), float(scores.std())) == pytest.approx((-2, 2), abs=1e-4)
    assert float(plain.project.bias.detach()) == 0


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_it_learns_and_only_where_it_can(share: float) -> None:
    task = small_task(longest=5)
    task = replace(task, splits={**task.splits, "dev": task.split("train")})
    model = build(f"ladder:size=8,scale=1,share={share}", task)
    before = [parameter.detach().clone() for parameter in model.attention_parameters()]
    Fit(model, task, TrainingSettings(epochs=12, patience=12, lr=0.02, metric="accuracy"), 0).run()
    assert (evaluate(model, task.split("train"))["accuracy"] or 0) > 0.85
    moved = any(not torch.equal(a, b) for a, b in zip(before, model.attention_parameters(), strict=True))
    assert moved == (share > 0)
    batch = collate(task.split("test"), model.vocabulary)
    assert model.trace(batch).attention[SITE].sum(-1).sub(1).abs().max() < 1e-5


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("share", [0, 1])
def test_it_classifies_reviews(share: int) -> None:
    from exegete.tasks.catalogue import load_task

    task = load_task("rotten_tomatoes")
    model = build(f"ladder:vectors=glove-50,share={share}", task)
    Fit(model, task, TrainingSettings(), 0).run()
    assert (evaluate(model, task.split("test"))["accuracy"] or 0) >= 0.7
