"""Truth: what the attention of a model is worth, by a slow formula of its own.

What deleting every word does to the log-odds of the predicted class, e_t, and what zeroing its weight does, w_t, are
computed text by text, of a hand-set model from the drawn numbers alone: neither the model nor the experiment takes
part, so that an error in one of them would show. (Of a trained model they are its own passes, a text at a time.)
Nothing is put in a word's place, and where effects add up they are what was drawn. A word is deleted alone, or in
company: what is left when a random half of the text is gone, the mean over some such cuts. Over the texts of a
population that no audit sees,

    Γ = Σ_{t<u} sign(α_t − α_u) (|e_t| − |e_u|) / Σ_{t<u} ||e_t| − |e_u||
    M = 1 − Σ (e_t − w_t)² / Σ e_t², cut at −1
    F = |z(α) − z(flat)| / √(Σ e_t²), cut at 1

are averaged, alone and in company, over texts in which some word moves the log-odds by ½; where these are less than
half of all, that company doesn't count. Flat weights are the mean of all words' but idle ones, which keep their own:
words of more than twice the weight of an even share, 1 / n, whose effect is below a twentieth of the largest. Keys that
are no words keep theirs, too.

The edges of an answer are Γ = .7 and .5, M = .25 and F = .2. A truth lies clear of them, in all companies that count:

| truth | Γ | M | F | answer |
|---|---|---|---|---|
| strong | above .8 | above .35 | above .3 | yes |
| partly | from .53 to .67 | above .35 | above .3 | partly |
| hardly | below .45 | | | no |
| unread | | below .15 | | no |
| flat | | | below .12 | no |

A model may be all of the last three: `grounds` names them. What has no truth lies *between*, and no answer is wrong.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from exegete.plugins import Example, HandSet, Pooling, Predictor, Site, Wiring, stable_seed

STRONG, PARTLY, HARDLY = 0.8, (0.53, 0.67), 0.45  # of Γ
READ, UNREAD = 0.35, 0.15  # of M
CARRIED, FLAT = 0.3, 0.12  # of F
IDLE_WEIGHT, IDLE_EFFECT = 2.0, 0.05  # of an even share, and of the largest effect
MATTERS = 0.5
FLOOR = -1.0
Floats = NDArray[np.float64]
WordRows = NDArray[np.int64]  # [text, word] as rows of the table
WordMask = NDArray[np.bool_]  # [text, word]: words that keep their own weight


No = Literal["hardly", "unread", "flat"]
TruthName = Literal["strong", "partly", "hardly", "unread", "flat", "between"]


class Population(NamedTuple):
    """Means over texts, by the companies that count: alone, and with half of the other words."""

    ranks: list[float]
    reads: list[float]
    carries: list[float]
    opposed: float  # share of attention on words whose removal raises the prediction

    @property
    def truth(self) -> TruthName:
        """One word for it; of several grounds of a *no* the first, of which most answers are wrong."""
        if self.grounds:
            return self.grounds[0]
        if not self.ranks or min(self.reads) <= READ or min(self.carries) <= CARRIED:
            return "between"
        if min(self.ranks) > STRONG:
            return "strong"
        return "partly" if PARTLY[0] < min(self.ranks) and max(self.ranks) < PARTLY[1] else "between"

    @property
    def grounds(self) -> tuple[No, ...]:
        """All that makes it a *no*, if anything does."""
        edges: tuple[tuple[No, list[float], float], ...] = (
            ("hardly", self.ranks, HARDLY), ("unread", self.reads, UNREAD), ("flat", self.carries, FLAT),
        )  # fmt: skip
        return tuple(name for name, values, edge in edges if values and max(values) < edge)


class TextFunction(Protocol):
    """Texts of one length in, as rows; attention and log-odds of the second class out."""

    def attention(self, texts: WordRows) -> Floats:
        """[text, word]."""

    def odds(self, texts: WordRows) -> Floats:
        """[text]."""

    def odds_unweighted(self, texts: WordRows) -> Floats:
        """With the weight of each word zeroed in turn: [text, word]."""

    def odds_flat(self, texts: WordRows, kept: WordMask) -> Floats:
        """With the weights of all words but some made equal, their sum as it is: [text]."""


class Arithmetic:
    """A hand-set model on plain numbers."""

    def __init__(self, table: Floats, wiring: Wiring) -> None:
        self.table, self.wiring = table, wiring

    @classmethod
    def of(cls, model: HandSet) -> "Arithmetic":
        """Its table and its wiring."""
        return cls(model.embedding.weight.numpy(), model.wiring)

    def attention(self, texts: WordRows) -> Floats:
        """[text, word]."""
        return self._weighed(self._states(texts)[0])

    def odds(self, texts: WordRows) -> Floats:
        """[text]."""
        scores, states = self._states(texts)
        return self._out(self._weighed(scores), states)

    def odds_unweighted(self, texts: WordRows) -> Floats:
        """With the weight of each word zeroed in turn: [text, word]."""
        scores, states = self._states(texts)
        weights = self._weighed(scores)
        left = weights[:, None] * (1 - np.eye(texts.shape[1]))  # [text, zeroed word, word]
        if not self.wiring.room:  # with a null key, that takes it
            special = 0.0 if self.wiring.special is None else 1 - weights.sum(1)[:, None, None]
            left = left / np.maximum(left.sum(-1, keepdims=True) + special, 1e-300)
        return self._out(left, states[:, None])

    def odds_flat(self, texts: WordRows, kept: WordMask) -> Floats:
        """With the weights of all words but some made equal, their sum as it is: [text]."""
        scores, states = self._states(texts)
        return self._out(np.stack(list(map(_even, self._weighed(scores), kept))), states)

    def _states(self, texts: WordRows) -> tuple[Floats, Floats]:
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
        if self.wiring.special is not None:
            scores = np.concatenate([scores, np.full((len(scores), 1), self.wiring.special)], 1)
        mass = np.exp(scores - scores.max(1, keepdims=True))
        weights = mass / mass.sum(1, keepdims=True)
        return np.asarray(weights if self.wiring.special is None else weights[:, :-1])

    def _out(self, weights: Floats, states: Floats) -> Floats:
        wiring = self.wiring
        read = wiring.read * (weights * states).sum(-1) + (1 - wiring.read) * states.mean(-1)
        x = wiring.gain * read + wiring.bias
        return np.asarray(wiring.ceiling * np.tanh(x / wiring.ceiling) if wiring.ceiling else x)


def _even(weights: Floats, kept: NDArray[np.bool_]) -> Floats:
    """Weights of the words of a text, [word], each the mean of all that are not kept."""
    if kept.all():
        return weights
    return np.where(kept, weights, weights[~kept].mean())


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

    def attention(self, texts: WordRows) -> Floats:
        """[text, word]."""
        batch, readout = self._batch(texts), self.model.readout
        assert readout is not None
        with torch.no_grad():
            weights = self.model.trace(batch).word_weights(readout, batch)
        assert weights is not None
        return np.asarray(weights[batch.words].view(len(texts), -1).double().numpy())

    def odds(self, texts: WordRows) -> Floats:
        """[text]."""
        with torch.no_grad():
            logits = self.model.logits(self._batch(texts)).double()
        return np.asarray((logits[:, 1] - logits[:, 0]).numpy())

    def odds_unweighted(self, texts: WordRows) -> Floats:
        """With the weight of each word zeroed in turn: [text, word]."""
        batch, found = self._batch(texts), []
        null, readout = self._null_key(batch), self._readout
        for word in range(texts.shape[1]):
            place = int(batch.words[0].nonzero()[word])

            def zeroed(site: Site, place: int = place) -> torch.Tensor:
                if site.name != readout:
                    return site.weights
                weights = site.weights.clone()
                gone = weights[..., place].clone()
                weights[..., place] = 0
                if null is not None:
                    weights[..., null] += gone
                    return weights
                return weights / weights.sum(-1, keepdim=True).clamp(min=1e-30)

            with torch.no_grad():
                logits = self.model.logits(batch, intervene=zeroed).double()
            found.append(logits[:, 1] - logits[:, 0])
        return np.asarray(torch.stack(found, 1).numpy())

    def odds_flat(self, texts: WordRows, kept: WordMask) -> Floats:
        """With the weights of all words but some made equal, their sum as it is, by head and query: [text]."""
        batch = self._batch(texts)
        free = torch.zeros_like(batch.words)
        free[batch.words] = torch.from_numpy(~kept).flatten()

        readout = self._readout

        def evened(site: Site) -> torch.Tensor:
            if site.name != readout:
                return site.weights
            here = (free[:, None, None, : site.weights.shape[-1]] & site.mask).expand_as(site.weights)
            mean = (site.weights * here).sum(-1, keepdim=True) / here.sum(-1, keepdim=True).clamp(min=1)
            return torch.where(here, mean, site.weights)

        with torch.no_grad():
            logits = self.model.logits(batch, intervene=evened).double()
        return np.asarray((logits[:, 1] - logits[:, 0]).numpy())

    @property
    def _readout(self) -> str:
        """The site from which the prediction is made."""
        assert self.model.readout is not None
        return self.model.readout.sites[-1]

    def _null_key(self, batch: Any) -> int | None:
        """The place of the key that takes what no word has, if there is one."""
        if not isinstance(self.model, Pooling):
            return None
        null = self.model.null_keys(self.model.encode(batch))
        return None if null is None else int(null[0].nonzero()[0])

    def _batch(self, texts: WordRows) -> Any:
        spelled = [tuple(self.model.reader.spelled(text)) for text in texts.tolist()]
        return self.model.collate([Example(i, (words,), 0) for i, words in enumerate(spelled)])


def population(
    told: TextFunction, texts: Sequence[Sequence[int]], key: tuple[object, ...], draws: int = 8
) -> Population:
    """Γ, M, F and opposition of a model, over texts that no audit sees."""
    random = np.random.default_rng(stable_seed("population", *key))
    rows = [np.array(text) for text in texts]
    alone = [truth_numbers(told, text, *true_effects(told, text)) for text in rows]
    company = [truth_numbers(told, text, *effects_in_company(told, text, random, draws)) for text in rows]
    kept = [[found for found in each if found is not None] for each in (alone, company)]
    means = np.array([np.mean(found, 0) for found in kept if len(found) >= len(rows) / 2]).reshape(-1, 4)
    ranks, reads, carries, opposed = means.T.tolist()
    return Population(ranks, reads, carries, float(np.mean(opposed)) if opposed else 0.0)


def true_effects(told: TextFunction, text: WordRows) -> tuple[Floats, Floats]:
    """e and w of every word of a text, of its second class: [word] twice."""
    (e,), (w,) = of_bases(told, text[None])
    return e, w


def effects_in_company(
    told: TextFunction, text: WordRows, random: np.random.Generator, draws: int
) -> tuple[Floats, Floats]:
    """e and w of every word in what is left when half of the text is gone: either half of every cut is asked about."""
    n, cut = len(text), (len(text) + 1) // 2
    order = np.argsort(random.random((draws, n)), 1)
    e, w = np.zeros((draws, n)), np.zeros((draws, n))
    for half in (np.sort(order[:, :cut], 1), np.sort(order[:, cut:], 1)):  # [draw, word]: places in the text
        for found, part in zip((e, w), of_bases(told, text[half]), strict=True):
            np.put_along_axis(found, half, part, 1)
    return e.mean(0), w.mean(0)


def of_bases(told: TextFunction, bases: WordRows) -> tuple[Floats, Floats]:
    """e and w of every word of texts of one length: [text, word] twice."""
    n = bases.shape[1]
    others = np.array([[s for s in range(n) if s != t] for t in range(n)])  # [word, word]: all but one
    whole = told.odds(bases)[:, None]
    without = told.odds(bases[:, others].reshape(-1, n - 1)).reshape(-1, n)
    return whole - without, whole - told.odds_unweighted(bases)


class TruthNumbers(NamedTuple):
    """What one text says in one company."""

    ranks: float
    reads: float
    carries: float
    opposed: float


def truth_numbers(told: TextFunction, text: WordRows, e: Floats, w: Floats) -> TruthNumbers | None:
    """Γ, M, F and the share of attention on words that hold the prediction back; None where no word matters."""
    if abs(e).max() < MATTERS:
        return None
    attention, odds = told.attention(text[None])[0], told.odds(text[None])[0]
    apart = abs(e)[:, None] - abs(e)
    ranks = (np.sign(attention[:, None] - attention) * apart).sum() / abs(apart).sum()
    reads = max(FLOOR, 1 - ((e - w) ** 2).sum() / (e**2).sum())
    carries = abs(odds - told.odds_flat(text[None], idle(attention, e)[None])[0]) / np.sqrt((e**2).sum())
    opposed = attention[np.sign(odds) * e < 0].sum() / attention.sum()
    return TruthNumbers(float(ranks), float(reads), min(1.0, float(carries)), float(opposed))


def idle(attention: Floats, e: Floats) -> NDArray[np.bool_]:
    """Words that take much weight and do nothing, [word]."""
    much = attention > IDLE_WEIGHT / len(e)
    return np.asarray(much & (abs(e) < IDLE_EFFECT * abs(e).max()))
