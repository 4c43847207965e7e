"""Recurrent translator: both attentions again, slowly, from the equations; all steps at once is step by step."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.interventions.permute import Permute
from exegete.interventions.random import Random
from exegete.interventions.uniform import Uniform
from exegete.models.capabilities import Pooling
from exegete.models.contract import Intervention, Site
from exegete.models.ours.recurrent_translator import RecurrentTranslator
from exegete.models.ours.translator import gold, read_by_decoder
from exegete.models.settings import MODELS
from exegete.tasks.batching import collate
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import END, START
from tests.models.small_translation import BAHDANAU, LUONG, SPECS, sentences, small_translator

Vector = list[float]
EXAMPLES = sentences(7)


def recurrent(spec: str, examples: Sequence[Example] = EXAMPLES) -> RecurrentTranslator:
    model = small_translator(spec, examples)
    assert isinstance(model, RecurrentTranslator)
    return model


# The equations in plain Python.


def times(matrix: Tensor, x: Vector, bias: Tensor | None = None) -> Vector:
    rows = matrix.tolist()
    added = [0.0] * len(rows) if bias is None else bias.tolist()
    return [sum(w * v for w, v in zip(row, x, strict=True)) + b for row, b in zip(rows, added, strict=True)]


def plus(*vectors: Vector) -> Vector:
    return [sum(parts) for parts in zip(*vectors, strict=True)]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def gru(inward: Vector, inside: Vector, state: Vector) -> Vector:
    """r = σ(W_r x + U_r s), z = σ(W_z x + U_z s), n = tanh(W_n x + r ⊙ U_n s), s' = (1 − z) n + z s."""
    h = len(state)
    new = []
    for i in range(h):
        r, z = sigmoid(inward[i] + inside[i]), sigmoid(inward[h + i] + inside[h + i])
        n = math.tanh(inward[2 * h + i] + r * inside[2 * h + i])
        new.append((1 - z) * n + z * state[i])
    return new


def layer_step(layer: torch.nn.GRU, x: Vector, state: Vector, suffix: str = "") -> Vector:
    weight = {name: getattr(layer, f"{name}_l0{suffix}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
    return gru(
        times(weight["weight_ih"], x, weight["bias_ih"]), times(weight["weight_hh"], state, weight["bias_hh"]), state
    )


@dataclass
class Slow:
    """One sentence, token by token."""

    model: RecurrentTranslator

    def encoded(self, tokens: list[int]) -> tuple[list[Vector], Vector]:
        """[h→_j; h←_j] of every token, and the first state of the decoder."""
        inputs, hidden = [self.model.embedding.weight[t].tolist() for t in tokens], self.model.settings.hidden
        forward: list[Vector] = []
        backward: list[Vector] = []
        state = [0.0] * hidden
        for x in inputs:
            state = layer_step(self.model.encoder.gru, x, state)
            forward.append(state)
        state = [0.0] * hidden
        for x in reversed(inputs):
            state = layer_step(self.model.encoder.gru, x, state, "_reverse")
            backward.insert(0, state)
        first = times(self.model.first.weight, forward[-1] + backward[0], self.model.first.bias)
        return [f + b for f, b in zip(forward, backward, strict=True)], [math.tanh(x) for x in first]

    def weights(self, scores: Vector) -> Vector:
        """Softmax over the words, 0 on start and end symbol."""
        parts = [0.0, *(math.exp(s) for s in scores[1:-1]), 0.0]
        return [p / sum(parts) for p in parts]

    def steps(self, source: list[int], target: list[int]) -> tuple[list[Vector], list[Vector]]:
        """Weights and logits of every step."""
        states, state = self.encoded(source)
        step = self.bahdanau if self.model.settings.attention == "bahdanau" else self.luong
        weights, logits = [], []
        for token in target:
            word = self.model.target_embedding.weight[token].tolist()
            state, found, features = step(states, state, word)
            read = times(self.model.decoder.readout.weight, features, self.model.decoder.readout.bias)
            logits.append(
                times(self.model.target_embedding.weight, [math.tanh(x) for x in read], self.model.bias)
            )  # tied
            weights.append(found)
        return weights, logits

    def bahdanau(self, states: list[Vector], state: Vector, word: Vector) -> tuple[Vector, Vector, Vector]:
        """v · tanh(W s_{t−1} + U h_j); the context enters state and output."""
        scorer, decoder = self.model.scorer, self.model.decoder
        query = times(scorer.query.weight, state)  # type: ignore[union-attr,arg-type]
        keys = [times(scorer.key.weight, h, scorer.key.bias) for h in states]
        v = scorer.outer.weight[0].tolist()  # type: ignore[union-attr,index]
        scores = [sum(a * math.tanh(x) for a, x in zip(v, plus(query, key), strict=True)) for key in keys]
        weights = self.weights(scores)
        context = plus(*([w * x for x in h] for w, h in zip(weights, states, strict=True)))
        named = dict(decoder.named_parameters())
        inward = plus(times(named["word.weight"], word, named["word.bias"]), times(named["context.weight"], context))
        state = gru(inward, times(named["state.weight"], state, named["state.bias"]), state)
        return state, weights, state + context + word

    def luong(self, states: list[Vector], state: Vector, word: Vector) -> tuple[Vector, Vector, Vector]:
        """s_t · W h_j; the context enters the output alone."""
        state = layer_step(self.model.decoder.gru, word, state)  # type: ignore[arg-type]
        keys = [times(self.model.scorer.key.weight, h) for h in states]
        weights = self.weights([sum(a * b for a, b in zip(state, key, strict=True)) for key in keys])
        context = plus(*([w * x for x in h] for w, h in zip(weights, states, strict=True)))
        return state, weights, state + context


@pytest.mark.parametrize("spec", [BAHDANAU, LUONG])
def test_weights_and_logits_are_those_of_the_equations(spec: str) -> None:
    model = recurrent(spec)
    trace = model.trace(collate(EXAMPLES, model.vocabulary))
    for i, example in enumerate(EXAMPLES):
        rows = [model.vocabulary.rows(text) for text in example.texts]
        weights, logits = Slow(model).steps([START, *rows[0], END], [START, *rows[1]])
        n, k = len(rows[1]) + 1, len(rows[0]) + 2
        assert torch.allclose(trace.logits[i, :n].double(), torch.tensor(logits).double(), atol=2e-5)
        assert torch.allclose(
            trace.attention["attention"][i, 0, :n, :k].double(), torch.tensor(weights).double(), atol=1e-5
        )
        assert not trace.attention["attention"][i, 0, n:].any()
        assert not trace.attention["attention"][i, 0, :, k:].any()


@pytest.mark.parametrize("spec", SPECS)
def test_the_weights_of_different_steps_and_texts_differ(spec: str) -> None:
    """Otherwise the other tests could not fail."""
    model = recurrent(spec)
    weights = model.trace(collate(EXAMPLES, model.vocabulary)).attention["attention"][:, 0].detach()
    several = [i for i, e in enumerate(EXAMPLES) if len(e) > 2]
    assert sum(float((weights[i, 0] - weights[i, 1]).abs().max()) > 1e-3 for i in several) >= len(several) / 2


def every_second(site: Site) -> Tensor:
    """An intervention of our own that depends on the step."""
    steps = torch.arange(site.weights.shape[2]) + site.first_query
    uniform = site.mask / site.mask.sum(-1, keepdim=True).clamp(min=1)
    return torch.where((steps % 2 == 0)[:, None], uniform, site.weights)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("intervene", [None, Permute(seed=3), Random(seed=1), Uniform(), every_second])
def test_trace_is_begin_and_advance(spec: str, intervene: Intervention | None) -> None:
    model = recurrent(spec)
    batch = collate(EXAMPLES, model.vocabulary)
    trace, target = model.trace(batch, intervene=intervene), read_by_decoder(batch)
    assert intervene is None or not torch.allclose(trace.logits, model.trace(batch).logits, atol=1e-3)
    tokens, writing = target.take(batch.tokens), model.begin(batch, intervene=intervene)
    for step in range(tokens.shape[1]):
        logits, writing = model.advance(writing, tokens[:, step])
        there = target.present[:, step]
        assert torch.allclose(logits[there], trace.logits[there, step], atol=1e-5)
    assert writing.step == tokens.shape[1]


def test_begin_does_not_look_at_targets() -> None:
    model = recurrent(BAHDANAU)
    alone = collate([Example(e.id, e.texts[:1], 0) for e in EXAMPLES], model.vocabulary)
    first = torch.full((len(EXAMPLES),), START)
    one, other = (model.advance(model.begin(b), first)[0] for b in (alone, collate(EXAMPLES, model.vocabulary)))
    assert torch.allclose(one, other, atol=1e-6)


def test_rows_of_a_writing_are_its_examples() -> None:
    model = recurrent(LUONG)
    batch, which = collate(EXAMPLES, model.vocabulary), torch.tensor([2, 2, 0])
    start = torch.full((len(EXAMPLES),), START)
    logits, writing = model.advance(model.begin(batch), start)
    some, _ = model.advance(writing.rows(which), logits.argmax(-1)[which])
    every, _ = model.advance(writing, logits.argmax(-1))
    assert torch.allclose(some, every[which], atol=1e-6)


def test_source_and_target_words_come_from_tables_of_their_own() -> None:
    same = (Example(0, (("a", "b"), ("a", "b")), 0),)
    model = recurrent(BAHDANAU, same)
    embedded = model.embed(collate(same, model.vocabulary))[0]  # ⟨s⟩ a b ⟨/s⟩ ⟨s⟩ a b ⟨/s⟩
    rows = [START, *model.vocabulary.rows(("a", "b")), END]
    assert torch.equal(embedded[:4], model.embedding.weight[rows])
    assert torch.equal(embedded[4:], model.target_embedding.weight[rows])
    assert not torch.allclose(embedded[:4], embedded[4:])


def test_owners_are_keys_of_source_words() -> None:
    model = recurrent(BAHDANAU)
    batch = collate(EXAMPLES, model.vocabulary)
    trace = model.trace(batch)
    for i, example in enumerate(EXAMPLES):
        owner = trace.owner["attention"][i].tolist()
        n = len(example)
        assert owner[: n + 2] == [-1, *range(1, n + 1), -1]
        assert set(owner[n + 2 :]) <= {-1}
    assert trace.states["attention"].shape[:2] == trace.attention["attention"].shape[::3]


@pytest.mark.parametrize("spec", SPECS)
def test_encode_and_decode_are_the_last_step(spec: str) -> None:
    model = recurrent(spec)
    batch = collate(EXAMPLES, model.vocabulary)
    encoded, last = model.encode(batch), model.last(batch)
    weights = model.project(encoded.scores, encoded.mask)
    assert encoded.values is None
    assert isinstance(model, Pooling)
    assert torch.allclose(weights, last.attention["attention"][:, 0, 0], atol=1e-6)
    assert torch.allclose(model.decode(encoded, weights[:, None])[:, 0], last.logits, atol=1e-5)


@pytest.mark.parametrize("spec", SPECS)
def test_decode_under_other_weights_is_an_intervention_at_the_last_step(spec: str) -> None:
    model = recurrent(spec)
    batch = collate(EXAMPLES, model.vocabulary)
    encoded = model.encode(batch).to(torch.float64)
    other = encoded.mask / encoded.mask.sum(-1, keepdim=True)
    final = read_by_decoder(batch).present.sum(-1) - 1  # [batch]

    def at_last(site: Site) -> Tensor:
        steps = torch.arange(site.weights.shape[2]) + site.first_query
        here = (steps == final[:, None])[:, None, :, None]
        return torch.where(here, other[:, None, None].to(site.weights.dtype), site.weights)

    found = model.decode(encoded, other[:, None])[:, 0]
    assert found.dtype == torch.float64
    assert torch.allclose(found.float(), model.last(batch, intervene=at_last).logits, atol=1e-5)
    assert not torch.allclose(found.float(), model.last(batch).logits, atol=1e-2)


@pytest.mark.parametrize("spec", [BAHDANAU, LUONG])
def test_last_is_the_last_step_of_trace(spec: str) -> None:
    model = recurrent(spec)
    batch = collate(EXAMPLES, model.vocabulary)
    own, whole = model.last(batch), model.trace(batch)
    for i, example in enumerate(EXAMPLES):
        step = len(example.texts[1])
        assert torch.allclose(own.logits[i], whole.logits[i, step], atol=1e-6)
        assert torch.equal(own.attention["attention"][i, :, 0], whole.attention["attention"][i, :, step])


def test_gold_is_what_the_decoder_reads_next() -> None:
    model = recurrent(BAHDANAU)
    batch = collate(EXAMPLES, model.vocabulary)
    for row, example in zip(gold(batch).tolist(), EXAMPLES, strict=True):
        words = model.vocabulary.rows(example.texts[1])
        assert row == [*words, END, *[0] * (len(row) - len(words) - 1)]


def test_a_source_without_words_has_no_weights() -> None:
    """What erasing every word leaves: start and end symbol."""
    model = recurrent(BAHDANAU)
    batch = collate([Example(0, ((), ("eins",)), 0)], model.vocabulary)
    trace = model.trace(batch)
    assert not trace.attention["attention"].any()
    assert bool(trace.logits.isfinite().all())


def test_dropout_is_for_training_only() -> None:
    model = recurrent(BAHDANAU)
    batch = collate(EXAMPLES, model.vocabulary)
    still = [model.trace(batch).logits for _ in range(2)]
    model.train()
    moved = [model.trace(batch).logits for _ in range(2)]
    assert torch.equal(*still)
    assert not torch.equal(*moved)


@pytest.mark.parametrize("spec", SPECS)
def test_attention_parameters_decide_the_weights(spec: str) -> None:
    """The gradient of the scores' sum reaches all of them, and a change moves the weights of a first step."""
    model = recurrent(spec)
    batch = collate(EXAMPLES, model.vocabulary)
    before = model.trace(batch).attention["attention"][:, :, 0]
    with torch.no_grad():
        for parameter in model.scorer.parameters():
            parameter.mul_(-1.5)
    assert not torch.allclose(before, model.trace(batch).attention["attention"][:, :, 0])
    names = {id(p): name for name, p in model.named_parameters()}
    assert all(names[id(p)].startswith(("scorer.", "project.")) for p in model.attention_parameters())


def test_settings_that_do_not_fit_are_refused() -> None:
    for spec in ("translator:attention=dot", "translator:lam=0.5", "translator:hidden=0", "translator:wrap=false"):
        with pytest.raises(UsageError):
            MODELS.make(spec)
