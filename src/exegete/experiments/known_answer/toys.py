"""Toys: small models whose answer is known by hand, as a test of the importances themselves.

Each is a classifier of ours with weights set by hand. Its texts mark the words that make it say *yes*. A correct method
ranks these first; where a method can't (a gradient where the model is saturated, one deletion at a time where either of
two words is enough), that is the method's own limit and no mistake in its code.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl
import torch
from torch import Tensor

from exegete.experiments.common.marked_words import marks
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import refusal
from exegete.measures.plausibility import precision_at, precision_chance
from exegete.models.build import plain_classifier
from exegete.models.ours.classifier import Classifier
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import Vocabulary

ToyWords = Mapping[str, tuple[float, ...]]
FILLER: ToyWords = {"the": (0, 0, 1), "film": (0, 0, -1)}  # words in a direction that no toy reads
LABELS = ("no", "yes")


class Toy(NamedTuple):
    """A model, texts whose rationale is the known answer, and words that must speak against it."""

    model: Classifier
    examples: tuple[Example, ...]
    against: frozenset[str] = frozenset()


def one_word() -> Toy:
    """One word moves the logit and attention is uniform: all but attention must find it."""
    words = {"good": (1, 0, 0), "was": (0, 0, 0.5), **FILLER}
    model = _blank("average:activation=relu,hidden=2", words)
    _set(model.encoder.linear, [[1, 0, 0], [0, 0, 0]], [-0.5, 0])  # off for words that don't have it
    _set(model.decoder, [[4, 0]])
    return Toy(model, _rotated(words, {"good"}))


def bag() -> Toy:
    """logit = mean of the words' values 3, 1, 0 and −2: the positive ones speak for yes, the negative one against."""
    words = {"great": (3, 0, 0), "good": (1, 0, 0), "bad": (-2, 0, 0), **FILLER}
    model = _blank("average:activation=relu,hidden=2", words)
    _set(model.encoder.linear, [[1, 0, 0], [-1, 0, 0]])  # ReLU(v) − ReLU(−v) = v
    _set(model.decoder, [[1, -1]])
    return Toy(model, _rotated(words, {"great", "good"}), frozenset({"bad"}))


def blind_attention() -> Toy:
    """Attention puts 87 % on a word whose value is 0: attention must miss the word that decides."""
    words = {"good": (1, 0, 0), "look": (0, 1, 0), **FILLER}
    model = _blank("average:attention=dot,activation=relu,hidden=2", words)
    _set(model.encoder.linear, [[1, 0, 0], [0, 1, 0]])
    _set(model.scorer.linear, [[0, 3 * math.sqrt(2)]])  # a score of 3, for the scorer divides by the root of the size
    _set(model.decoder, [[8, 0]])
    return Toy(model, _rotated(words, {"good"}))


def saturated() -> Toy:
    """One value is far out where tanh is flat: a gradient must miss it, a finite difference must not."""
    words = {"good": (10, 0, 0), "fine": (0.01, 0, 0), **FILLER}
    model = _blank("average:activation=tanh,hidden=2", words)
    _set(model.encoder.linear, [[1, 0, 0], [0, 0, 0]])
    _set(model.decoder, [[4, 0]])
    return Toy(model, _rotated(words, {"good"}))


def both() -> Toy:
    """Two words that count only together, ReLU(a + b − 1.5): both are needed, both must be found."""
    words = {"salt": (1, 0, 0), "pepper": (1, 0, 0), **FILLER}
    model = _blank("cnn:hidden=4", words)
    _window(model, [-1.5])
    _set(model.decoder, [[0, 0, 0, 4]])
    return Toy(model, _rotated(words, {"salt", "pepper"}))


def either() -> Toy:
    """Either of two words is enough, min(a + b, 1): without one of them nothing changes, without both all does."""
    words = {"salt": (1, 0, 0), "pepper": (1, 0, 0), **FILLER}
    model = _blank("cnn:hidden=8", words)
    _window(model, [0, -1])
    _set(model.decoder, [[0, 0, 0, 0, 0, 0, 4, -4]])  # ReLU(x) − ReLU(x − 1) = min(x, 1) for x ≥ 0
    return Toy(model, _rotated(words, {"salt", "pepper"}))


def first_word() -> Toy:
    """A BiLSTM that copies its first word and closes its gate: every state says what the first word said."""
    words = {"good": (1, 0, 0), "bad": (-1, 0, 0), "dull": (-0.5, 0, 0), **FILLER}
    model = _blank("bilstm:hidden=2", words)
    shut = -30.0
    with torch.no_grad():  # gates i, f, g, o; unit 0 knows that a word was there, unit 1 keeps the first one
        weights = dict(model.encoder.get_submodule("lstm").named_parameters())
        weights["bias_ih_l0"].copy_(torch.tensor([10.0, 10, 10, 10, 10, 0, 10, 10]))
        weights["weight_hh_l0"][1, 0] = shut
        weights["weight_ih_l0"][5, 0] = 1
    _set(model.decoder, [[0, 4, 0, 0]])
    texts = (("good", "bad", "the", "dull"), ("good", "film", "bad", "bad"), ("good", "dull", "film", "good"))
    return Toy(model, tuple(Example(i, (text,), 1, (0,)) for i, text in enumerate(texts)))


TOYS: tuple[Callable[[], Toy], ...] = (one_word, bag, blind_attention, saturated, both, either, first_word)


def toys(methods: Sequence[str]) -> pl.DataFrame:
    """Every method on every toy: precision at k of the known words, and the share of signs that are right."""
    return pl.DataFrame([_line(build, method) for build in TOYS for method in methods], schema=_SCHEMA)


_SCHEMA = {
    "toy": pl.String, "method": pl.String, "signed": pl.Boolean, "n": pl.Int64, "precision_at_k": pl.Float64,
    "chance": pl.Float64, "sign": pl.Float64, "claim": pl.String,
}  # fmt: skip


def _line(build: Callable[[], Toy], method: str) -> dict[str, Any]:
    """One cell of the table; a method that the model does not allow has nulls."""
    toy, importance = build(), IMPORTANCES.make(method)
    line = {"toy": build.__name__, "method": method, "n": len(toy.examples), "claim": build.__doc__}
    if refusal(importance, toy.model) is not None:
        return line
    batch = toy.model.collate(toy.examples)
    scores = importance(toy.model, batch)
    marked = marks(toy.examples, batch.tokens.shape[1])
    values = scores.values.double()
    return line | {
        "signed": scores.signed,
        "precision_at_k": float(precision_at(values, marked, marked.sum(1)).mean()),
        "chance": float(precision_chance(values, marked).mean()),
        "sign": _right_signs(values, marked, toy) if scores.signed else None,
    }


def _right_signs(values: Tensor, marked: Tensor, toy: Toy) -> float:
    """The share of known words with a score above 0, and of those that speak against with one below."""
    against = torch.tensor([[word in toy.against for word in e.words] for e in toy.examples])
    right = torch.cat([values[marked] > 0, values[against] < 0])
    return float(right.double().mean())


def _blank(spec: str, words: ToyWords) -> Classifier:
    """A classifier whose weights are all 0 but the words' vectors: uniform attention, logit 0."""
    with torch.random.fork_rng(devices=[]):  # what it draws is thrown away
        model = plain_classifier(f"{spec},size=3", Vocabulary(tuple(words)), LABELS).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        for word, vector in words.items():
            model.embedding.weight[model.reader.rows([word])[0]] = torch.tensor(vector)
    return model


def _set(layer: Any, weight: Sequence[Sequence[float]], bias: Sequence[float] | None = None) -> None:
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weight))
        if bias is not None:
            layer.bias.copy_(torch.tensor(bias))


def _window(model: Classifier, biases: Sequence[float]) -> None:
    """Filters over 7 words that count the words with a first coordinate: in 4 words every state sees all."""
    weights = dict(model.encoder.get_submodule("convolutions.3").named_parameters())
    with torch.no_grad():
        weights["weight"][:, 0] = 1
        weights["bias"].copy_(torch.tensor(biases))


def _rotated(words: ToyWords, answer: set[str]) -> tuple[Example, ...]:
    """A text of all words, from every start: so that no place is favoured."""
    text = tuple(words)
    turned = [text[i:] + text[:i] for i in range(len(text))]
    places = [tuple(i for i, word in enumerate(t) if word in answer) for t in turned]
    return tuple(Example(i, (t,), 1, p) for i, (t, p) in enumerate(zip(turned, places, strict=True)))
