"""Deletion on a BiLSTM: all predictions without one word, or with another in its place, with nothing computed twice.

Without word t the forward states before t and the backward states after t stay what they were. So every pair (t, s) of
a deleted and a remaining position needs one step of one direction only: the forward LSTM where s > t, the backward one
where s < t. Input projections are computed once per word of the vocabulary, `score` and `W h` of the unchanged half
once per text; the linear part of the score splits over the two halves of a state. Where another word stands at t, each
direction takes one step more, and the state at t is new in both halves.

Here tanh x is 2σ(2x) − 1, which is faster on CPUs, and its factors are moved into the weights: cells are kept doubled
and hidden states halved, so that a step of the LSTM is σ of all gates (that of g doubled), and

    2c ← f · 2c + 4i (σ(2g) − ½),        h/2 ← o (σ(2c) − ½)
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from exegete.base.places import places
from exegete.models.capabilities import Deletions
from exegete.models.ours.attention import Additive
from exegete.models.ours.classifier import Classifier
from exegete.models.ours.encoders import BiLSTM
from exegete.tasks.batching import Batch
from exegete.tasks.vocabulary import PAD

# Rows (texts × deleted positions) that run side by side: enough for fast products, few enough for the cache.
ROWS = 2048


class _DirectionWeights(NamedTuple):
    """One direction of the LSTM, and what reads its half of a state; for hidden states that are halved."""

    inputs: Tensor  # [size, 4 hidden]
    bias: Tensor  # [4 hidden]
    recurrent: Tensor  # [hidden, 4 hidden]
    score: Tensor  # [hidden, scorer's linear part]
    output: Tensor  # [hidden, output]


class _Whole(NamedTuple):
    """One direction over undisturbed texts, in the order in which it reads them."""

    inputs: Tensor  # [position, text, 4 hidden]: W_ih e + b
    hidden: Tensor  # [1 + position, text, hidden]: halved, the zero state in front
    cells: Tensor  # [1 + position, text, hidden]: doubled
    score: Tensor  # [position, text, scorer's linear part]: this half's share
    output: Tensor  # [position, text, output]

    def texts(self, some: slice) -> "_Whole":
        return _Whole(*(column[:, some] for column in self))


# What the word in each place brings into either direction, [text, 4 hidden]; None: words are deleted.
_Instead = tuple[Tensor | None, Tensor | None]


class _Reader:
    """A model's weights as this computation needs them."""

    def __init__(self, model: Classifier) -> None:
        self.model, self.outputs = model, model.decoder.out_features
        # The score's v · tanh(pre) is 2v · σ(2 pre) − Σ v: pre is doubled in the weights, σ is taken in place.
        self.outer = 2 * model.scorer.outer.weight[0] if isinstance(model.scorer, Additive) else None
        self.rest = 0.0 if self.outer is None else float(self.outer.sum()) / 2
        self.scale = 1 if self.outer is None else 2
        bias, half = model.scorer.linear.bias, model.encoder.out // 2
        self.bias = 0 if bias is None else bias * self.scale
        self.forward, self.backward = self._weights("", slice(0, half)), self._weights("_reverse", slice(half, None))

    def _weights(self, suffix: str, half: slice) -> _DirectionWeights:
        """Of one direction, with the g gate doubled so that one σ serves all four gates."""
        lstm = self.model.encoder.lstm
        assert isinstance(lstm, torch.nn.LSTM)
        double = torch.tensor(
            [1.0, 1.0, 2.0, 1.0], dtype=self.model.decoder.weight.dtype, device=self.model.decoder.weight.device
        )[:, None]
        inputs, recurrent, bias_in, bias_out = (
            (p.view(4, -1) * double).view_as(p)
            for p in (getattr(lstm, f"{name}_l0{suffix}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        )
        score, output = (self.model.scorer.linear.weight[:, half].T, self.model.decoder.weight[:, half].T)
        of_state = (2 * recurrent.T, 2 * self.scale * score, 2 * output)
        return _DirectionWeights(inputs.T, bias_in + bias_out, *(weight.contiguous() for weight in of_state))

    def score(self, read: Tensor, out: Tensor) -> Tensor:
        """From a state's linear part [row, scorer's linear part], which is used up, to its score [row]."""
        if self.outer is None:
            return out.copy_(self.model.scorer.finish(read))
        return torch.mv(read.sigmoid_(), self.outer, out=out).sub_(self.rest)


def _step(gates: Tensor, cell: Tensor, hidden: Tensor) -> None:
    """One LSTM step, in place; `gates` hold i, f, 2g, o before σ."""
    i, f, g, o = gates.sigmoid_().chunk(4, -1)
    cell.mul_(f).addcmul_(i, g.sub_(0.5), value=4)
    torch.sigmoid(cell, out=hidden).sub_(0.5).mul_(o)


def _whole(weights: _DirectionWeights, inputs: Tensor) -> _Whole:
    """Run one direction over whole texts."""
    length, texts, _ = inputs.shape
    hidden = inputs.new_zeros(1 + length, texts, weights.recurrent.shape[0])
    cells = torch.zeros_like(hidden)
    for s in range(length):
        cells[s + 1] = cells[s]
        _step(torch.addmm(inputs[s], hidden[s], weights.recurrent), cells[s + 1], hidden[s + 1])
    return _Whole(inputs, hidden, cells, hidden[1:] @ weights.score, hidden[1:] @ weights.output)


class _Changed(NamedTuple):
    """The words that are changed, one in each row, in the order in which one direction reads them."""

    place: Tensor  # [row]: where it reads the word, never falling
    text: Tensor  # [row]

    def before(self, length: int) -> list[int]:
        """How many rows have a place before each one, [1 + length]."""
        ends = torch.arange(1 + length, device=self.place.device)
        return torch.searchsorted(self.place, ends).tolist()


class _Again(NamedTuple):
    """One direction over texts with a word changed: what is read after it, and where it stood."""

    scores: Tensor  # [s, row] for every s read after the changed word; all else means nothing
    outputs: Tensor  # [s, row, output], likewise
    score: Tensor  # [row, scorer's linear part]: this half's share where another word stands
    output: Tensor  # [row, output], likewise


def _rerun(
    reader: _Reader, weights: _DirectionWeights, ways: tuple[_Whole, _Whole], rows: _Changed, instead: Tensor | None
) -> _Again:
    """One direction, the first of two, with a word changed in every row; the other one is not disturbed at s.

    `instead` [text, 4 hidden] is what the word that stands there brings in; None: nothing stands there.
    """
    (own, other), (length, _, gates) = ways, ways[0].inputs.shape
    hidden, cell = own.hidden[rows.place, rows.text], own.cells[rows.place, rows.text]  # as before the word
    beside = other.score.flip(0) + reader.bias
    room, read = hidden.new_empty(len(hidden), gates), hidden.new_empty(len(hidden), beside.shape[-1])
    scores, outputs = hidden.new_zeros(length, len(hidden)), hidden.new_zeros(length, len(hidden), reader.outputs)
    score, output = read.new_zeros(read.shape), outputs.new_zeros(outputs.shape[1:])
    before = rows.before(length)
    for s in range(length):
        n = before[s]  # rows whose word was read already
        m = n if instead is None else before[s + 1]  # and those where another one is read now
        if not m:
            continue
        h, step, pre = hidden[:m], room[:m], read[:m]
        torch.index_select(own.inputs[s], 0, rows.text[:n], out=step[:n])
        if instead is not None:
            torch.index_select(instead, 0, rows.text[n:m], out=step[n:])
        _step(step.addmm_(h, weights.recurrent), cell[:m], h)
        torch.index_select(beside[s], 0, rows.text[:n], out=pre[:n])
        pre[n:] = 0
        pre.addmm_(h, weights.score)
        torch.mm(h, weights.output, out=outputs[s, :m])
        score[n:m], output[n:m] = pre[n:], outputs[s, n:m]
        reader.score(pre[:n], out=scores[s, :n])
    outputs += other.output.flip(0)[:, rows.text]
    return _Again(scores, outputs, score, output)


def _without(reader: _Reader, ways: tuple[_Whole, _Whole], words: Tensor, asked: Tensor, instead: _Instead) -> Tensor:
    """Logits [asked, class] of texts of one length, in the order of texts and places, each with one word changed."""
    text, place = asked.nonzero(as_tuple=True)
    last = words.shape[1] - 1 - place
    first, second = place.argsort(stable=True), last.argsort(stable=True)
    later = _rerun(reader, reader.forward, ways, _Changed(place[first], text[first]), instead[0])  # s > t
    earlier = _rerun(reader, reader.backward, ways[::-1], _Changed(last[second], text[second]), instead[1])  # s < t
    later, earlier = _in_order(later, first), _in_order(earlier, second)
    every, row = places(words, 1)[:, None], places(place)
    scores = later.scores.where(every > place, earlier.scores.flip(0))  # [s, row]
    outputs = later.outputs.where((every > place)[..., None], earlier.outputs.flip(0))
    kept = words[text].T & (every != place)
    if instead[0] is not None:
        pre = later.score + earlier.score + reader.bias
        scores[place, row] = reader.score(pre, out=pre.new_empty(len(pre)))
        outputs[place, row] = later.output + earlier.output
        kept = words[text].T
    return _pooled(reader, scores.T, outputs.transpose(0, 1), kept.T)


def _in_order(found: _Again, order: Tensor) -> _Again:
    """Rows as they were before they were put in this order."""
    back = order.argsort()
    return _Again(found.scores[:, back], found.outputs[:, back], found.score[back], found.output[back])


def _pooled(reader: _Reader, scores: Tensor, outputs: Tensor, kept: Tensor) -> Tensor:
    """Logits [..., class] from the scores [..., s] and outputs [..., s, output] of states, of which some are kept."""
    model = reader.model
    weights = model.project(scores, kept)
    return model.two_sided((weights[..., None] * outputs).sum(-2) + model.decoder.bias)


def _one_length(
    reader: _Reader, inputs: tuple[Tensor, Tensor], words: Tensor, asked: Tensor, instead: _Instead
) -> Deletions:
    """Texts of one length: what each direction takes in [position, text, 4 hidden]; words and asked [text, position].

    Logits without a word are [asked, class].
    """
    forward, backward = _whole(reader.forward, inputs[0]), _whole(reader.backward, inputs[1])
    pre = forward.score + backward.score.flip(0) + reader.bias  # [position, text, …]
    scores = reader.score(pre.flatten(0, 1), out=pre.new_empty(pre.shape[:2].numel())).view(pre.shape[:2])
    outputs = forward.output + backward.output.flip(0)
    whole = _pooled(reader, scores.T, outputs.transpose(0, 1), words)
    count = max(1, ROWS // words.shape[1])
    parts = [slice(start, start + count) for start in range(0, len(words), count)]
    without = [
        _without(reader, (forward.texts(some), backward.texts(some)), words[some], asked[some], _some(instead, some))
        for some in parts
    ]
    return Deletions(whole, torch.cat(without))


def _some(instead: _Instead, texts: slice | Tensor) -> _Instead:
    return None if instead[0] is None else instead[0][texts], None if instead[1] is None else instead[1][texts]


@torch.no_grad()
def deletions(model: Classifier, batch: Batch, instead: Tensor | None = None, asked: Tensor | None = None) -> Deletions:
    """Predictions of whole texts, and with each word deleted in turn or another, [batch], in its place.

    `asked` [batch, token] says of which words; of all, unless given.
    """
    if not isinstance(model.encoder, BiLSTM):
        raise TypeError(f"deletion by reuse of states is for BiLSTM encoders, not {type(model.encoder).__name__}")
    reader, lengths = _Reader(model), batch.present.sum(-1)
    width, asked = batch.tokens.shape[1], batch.words if asked is None else asked & batch.words
    every = batch.tokens if instead is None else torch.cat([batch.tokens, instead[:, None]], 1)
    used, place = every.unique(return_inverse=True)
    table = model.embed(_line(used, batch))[0]  # [word, size]; whoever moves embeddings moves these, too
    projected = [torch.addmm(of.bias, table, of.inputs) for of in (reader.forward, reader.backward)]
    others = (None, None) if instead is None else (projected[0][place[:, width]], projected[1][place[:, width]])
    without = table.new_full((*batch.tokens.shape, len(model.labels)), torch.nan)
    whole = without.new_full((len(lengths), len(model.labels)), torch.nan)
    for length in filter(None, lengths.unique().tolist()):
        rows = (lengths == length).nonzero()[:, 0]
        here = place[rows, :length].T  # [position, text]
        inputs = (projected[0][here], projected[1][here.flip(0)])
        there, wanted = batch.words[rows, :length], asked[rows, :length]
        found = _one_length(reader, inputs, there, wanted, _some(others, rows))
        text, position = wanted.nonzero(as_tuple=True)
        whole[rows], without[rows[text], position] = found.whole, found.without
    return Deletions(whole, without)


def _line(tokens: Tensor, of: Batch) -> Batch:
    """Tokens one after the other, as if they were a text."""
    there, place = tokens[None] != PAD, torch.zeros_like(tokens)[None]
    return Batch(place[:, 0], tokens[None], there, there, place, place, place[:, 0], of.reader)


def without_each_word(model: Classifier, batch: Batch) -> Tensor:
    """Logits [batch, token, class] with each token deleted in turn; NaN where the token is no word."""
    return deletions(model, batch).without


class BiLSTMClassifier(Classifier):
    """A classifier whose encoder is a BiLSTM, so that states can be used again."""

    encoder: BiLSTM

    @property
    def lstm(self) -> nn.LSTM:
        """What makes states of embeddings."""
        return self.encoder.lstm

    def deletions(self, batch: Batch, instead: Tensor | None = None, asked: Tensor | None = None) -> Deletions:
        """Of whole texts, and with each word, or each that is asked about, deleted in turn or another in its place."""
        return deletions(self, batch, instead, asked)
