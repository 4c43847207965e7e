"""Truth: what the attention of a model is worth, by a slow formula of its own.

What deleting every word does to the log-odds of the predicted class, e_t, and what zeroing its weight does, w_t, are
computed text by text, of a hand-set model from the drawn numbers alone: neither the model nor the experiment takes
part, so that an error in one of them would show. (Of a trained model they are its own passes, a text at a time.)
Nothing is put in a word's place, and where effects add up they are what was drawn. A word is deleted alone, or in
company: what is left when a random half of the text is gone, the mean over some such cuts. Over the texts of a
population that no audit sees,

    Γ = Σ_{t<u} sign(α_t − α_u) (|e_t| − |e_u|) / Σ_{t<u} ||e_t| − |e_u||
    M = 1 − Σ (e_t − w_t)² / Σ e_t², cut at −1

are averaged, alone and in company, over texts in which some word moves the log-odds by ½; where these are less than
half of all, that company doesn't count. The truth is *yes* where what counts has Γ above .8 and M above .35, *no* where
it has Γ below .5, or M below .15, throughout. What lies between has no truth to be wrong about.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from exegete.base.noise import stable_seed
from exegete.models.contract import Predictor, Site
from exegete.models.truths.hand_set import HandSet, Wiring
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import START

RANKS_YES, RANKS_NO = 0.8, 0.5
READS_YES, READS_NO = 0.35, 0.15
MATTERS = 0.5
FLOOR = -1.0
Floats = NDArray[np.float64]
Rows = NDArray[np.int64]  # [text, word] as rows of the table
Graded = Literal["yes", "no", "between"]


class Population(NamedTuple):
    """Means over texts, by the companies that count: alone, and with half of the other words."""

    ranks: list[float]
    reads: list[float]
    opposed: float  # share of attention on words whose removal raises the prediction

    @property
    def truth(self) -> Graded:
        """Yes, no or between."""
        if not self.ranks:
            return "between"
        if min(self.ranks) > RANKS_YES and min(self.reads) > READS_YES:
            return "yes"
        return "no" if max(self.ranks) < RANKS_NO or max(self.reads) < READS_NO else "between"


class TextFunction(Protocol):
    """Texts of one length in, as rows; attention and log-odds of the second class out."""

    def attention(self, texts: Rows) -> Floats:
        """[text, word]."""

    def odds(self, texts: Rows) -> Floats:
        """[text]."""

    def odds_unweighted(self, texts: Rows) -> Floats:
        """With the weight of each word zeroed in turn: [text, word]."""


class Arithmetic:
    """A hand-set model on plain numbers."""

    def __init__(self, table: Floats, wiring: Wiring) -> None:
        self.table, self.wiring = table, wiring

    @classmethod
    def of(cls, model: HandSet) -> "Arithmetic":
        """Its table and its wiring."""
        return cls(model.embedding.weight.numpy(), model.wiring)

    def attention(self, texts: Rows) -> Floats:
        """[text, word]."""
        return self._weighed(self._states(texts)[0])

    def odds(self, texts: Rows) -> Floats:
        """[text]."""
        scores, states = self._states(texts)
        return self._out(self._weighed(scores), states)

    def odds_unweighted(self, texts: Rows) -> Floats:
        """With the weight of each word zeroed in turn: [text, word]."""
        scores, states = self._states(texts)
        left = self._weighed(scores)[:, None] * (1 - np.eye(texts.shape[1]))  # [text, zeroed word, word]
        if not self.wiring.room:  # with a null key, that takes it
            left = left / np.maximum(left.sum(-1, keepdims=True), 1e-300)
        return self._out(left, states[:, None])

    def _states(self, texts: Rows) -> tuple[Floats, Floats]:
        wiring = self.wiring
        score, value, strength = (self.table[texts, column] for column in range(3))
        modified = strength * _moved(value, -1)
        states, scores = value + modified, score + wiring.context * abs(modified)
        for _ in range(wiring.depth):
            states = (1 - wiring.mix) * states + wiring.mix * (_moved(states, 1) + _moved(states, -1)) / 2
        return _moved(scores, wiring.shift), _moved(states, wiring.shift)

    def _weighed(self, scores: Floats) -> Floats:
        if self.wiring.room:
            gates = 1 / (1 + np.exp(-scores))
            return np.asarray(gates / np.maximum(gates.sum(1, keepdims=True), self.wiring.room))
        mass = np.exp(scores - scores.max(1, keepdims=True))
        return np.asarray(mass / mass.sum(1, keepdims=True))

    def _out(self, weights: Floats, states: Floats) -> Floats:
        wiring = self.wiring
        read = wiring.read * (weights * states).sum(-1) + (1 - wiring.read) * states.mean(-1)
        x = wiring.gain * read + wiring.bias
        return np.asarray(wiring.ceiling * np.tanh(x / wiring.ceiling) if wiring.ceiling else x)


def _moved(x: Floats, by: int) -> Floats:
    found = np.zeros_like(x)
    if by > 0:
        found[:, by:] = x[:, :-by]
    elif by < 0:
        found[:, :by] = x[:, -by:]
    else:
        found[:] = x
    return found


class Passes:
    """Any model that pools words, by its own passes."""

    def __init__(self, model: Predictor) -> None:
        self.model = model

    def attention(self, texts: Rows) -> Floats:
        """[text, word]."""
        batch, readout = self._batch(texts), self.model.readout
        assert readout is not None
        with torch.no_grad():
            weights = self.model.trace(batch).word_weights(readout, batch)
        assert weights is not None
        return np.asarray(weights[batch.words].view(len(texts), -1).double().numpy())

    def odds(self, texts: Rows) -> Floats:
        """[text]."""
        with torch.no_grad():
            logits = self.model.logits(self._batch(texts)).double()
        return np.asarray((logits[:, 1] - logits[:, 0]).numpy())

    def odds_unweighted(self, texts: Rows) -> Floats:
        """With the weight of each word zeroed in turn: [text, word]."""
        batch = self._batch(texts)
        found = []
        for word in range(texts.shape[1]):
            place = int(batch.words[0].nonzero()[word])

            def zeroed(site: Site, place: int = place) -> torch.Tensor:
                weights = site.weights.clone()
                gone = weights[..., place].clone()
                weights[..., place] = 0
                null = site.mask[0, 0, 0] & (batch.tokens[0] == START)
                if null.any():
                    weights[..., int(null.nonzero()[0])] += gone
                    return weights
                return weights / weights.sum(-1, keepdim=True).clamp(min=1e-30)

            with torch.no_grad():
                logits = self.model.logits(batch, intervene=zeroed).double()
            found.append(logits[:, 1] - logits[:, 0])
        return np.asarray(torch.stack(found, 1).numpy())

    def _batch(self, texts: Rows) -> Any:
        spelled = [tuple(self.model.reader.spelled(text)) for text in texts.tolist()]
        return self.model.collate([Example(i, (words,), 0) for i, words in enumerate(spelled)])


def population(
    told: TextFunction, texts: Sequence[Sequence[int]], key: tuple[object, ...], draws: int = 8
) -> Population:
    """Γ, M and opposition of a model, over texts that no audit sees."""
    random = np.random.default_rng(stable_seed("population", *key))
    rows = [np.array(text) for text in texts]
    alone = [numbers(told, text, *effects(told, text)) for text in rows]
    company = [numbers(told, text, *effects_in_company(told, text, random, draws)) for text in rows]
    kept = [[found for found in each if found is not None] for each in (alone, company)]
    means = np.array([np.mean(found, 0) for found in kept if len(found) >= len(rows) / 2]).reshape(-1, 3)
    opposed = float(means[:, 2].mean()) if len(means) else 0.0
    return Population(means[:, 0].tolist(), means[:, 1].tolist(), opposed)


def effects(told: TextFunction, text: Rows) -> tuple[Floats, Floats]:
    """e and w of every word of a text, of its second class: [word] twice."""
    (e,), (w,) = _of_bases(told, text[None])
    return e, w


def effects_in_company(
    told: TextFunction, text: Rows, random: np.random.Generator, draws: int
) -> tuple[Floats, Floats]:
    """The same in what is left when half of the text is gone: either half of every cut is asked about."""
    n, cut = len(text), (len(text) + 1) // 2
    order = np.argsort(random.random((draws, n)), 1)
    e, w = np.zeros((draws, n)), np.zeros((draws, n))
    for half in (np.sort(order[:, :cut], 1), np.sort(order[:, cut:], 1)):  # [draw, word]: places in the text
        for found, part in zip((e, w), _of_bases(told, text[half]), strict=True):
            np.put_along_axis(found, half, part, 1)
    return e.mean(0), w.mean(0)


def _of_bases(told: TextFunction, bases: Rows) -> tuple[Floats, Floats]:
    """e and w of every word of texts of one length: [text, word] twice."""
    n = bases.shape[1]
    others = np.array([[s for s in range(n) if s != t] for t in range(n)])  # [word, word]: all but one
    whole = told.odds(bases)[:, None]
    without = told.odds(bases[:, others].reshape(-1, n - 1)).reshape(-1, n)
    return whole - without, whole - told.odds_unweighted(bases)


def numbers(told: TextFunction, text: Rows, e: Floats, w: Floats) -> tuple[float, float, float] | None:
    """Γ, M and the share of attention on words that hold the prediction back; None where no word matters."""
    if abs(e).max() < MATTERS:
        return None
    attention, side = told.attention(text[None])[0], np.sign(told.odds(text[None])[0])
    apart = abs(e)[:, None] - abs(e)
    ranks = (np.sign(attention[:, None] - attention) * apart).sum() / abs(apart).sum()
    reads = max(FLOOR, 1 - ((e - w) ** 2).sum() / (e**2).sum())
    return float(ranks), float(reads), float(attention[side * e < 0].sum() / attention.sum())
