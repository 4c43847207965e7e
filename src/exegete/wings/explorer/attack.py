"""Attack: one text, opened at one site: what does the model predict under weights that a person chooses?

Everything is asked of `models.openings`: where a site pools, the text is encoded once and decoded under any weights;
elsewhere a whole pass is run for every weighting. Only real keys and rows are shown and taken. Distances are those of
the audit: TVD of the predictions, and JSD of the weights, the mean over rows (Jain & Wallace 2019).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress

import torch
from torch import Tensor

from exegete.plugins import (
    MARK,
    Batch,
    Cut,
    Example,
    Opened,
    OpenedPooling,
    Pass,
    Predictor,
    Search,
    SelfAttentive,
    Site,
    Stepwise,
    UsageError,
    furthest,
    heights,
    jsd,
    looking,
    opened,
    passing,
    permuted,
    places,
    rank_keys,
    scaled,
    sinks_of,
    tvd,
    watch_search,
    without,
)
from exegete.wings.explorer.names import NULL, name_of_key, names_of_pieces, shorten_key

SAME = 1e-6  # sums of weights that differ by less are equal
SHOWN = 8  # next words of a translator whose probabilities are shown
EVERY = 10  # steps of a search between two looks


@dataclass(frozen=True)
class Held:
    """An intervention that holds all weights as they were in one pass: what comes after a site can't follow it.

    Where queries are pieces, each has its own row. A word keeps its weight, which its pieces share as they do anyway.
    """

    weights: Mapping[tuple[str, int], Tensor]  # by site and first query: [1, head, query, key]

    def __call__(self, site: Site) -> Tensor:
        """What the site had."""
        return self.weights[site.name, site.first_query].expand_as(site.weights)


@dataclass(frozen=True)
class RewrittenPrediction:
    """A prediction under other weights."""

    probabilities: Tensor  # [class]
    tvd: float
    jsd: float | None
    frozen: Tensor | None  # [class]


@dataclass(frozen=True)
class Attack:
    """A text of which only the weights of one site are left to choose."""

    model: Predictor
    example: Example
    batch: Batch
    site: str
    opened: Opened
    frozen: Opened | None  # the same with all other sites held

    @cached_property
    def own(self) -> Tensor:
        """The model's own weights of the real keys: [row, key]."""
        return self.opened.weights[0, :, self.opened.mask[0]]

    @cached_property
    def probabilities(self) -> Tensor:
        """The model's own: [class]."""
        with torch.no_grad():
            return self.opened.own[0].softmax(-1)

    @cached_property
    def likeliest(self) -> dict[str, float]:
        """The model's own probabilities by class; of words, those that it finds likeliest."""
        return self.classes(self.probabilities)

    def classes(self, probabilities: Tensor) -> dict[str, float]:
        """Probabilities [class] of the classes that are shown."""
        most = SHOWN if isinstance(self.model, Stepwise) else len(self.model.labels)
        chosen = range(most) if most == len(self.model.labels) else self.probabilities.topk(most).indices.tolist()
        return {self.model.labels[label]: float(probabilities[label]) for label in chosen}

    def winner(self, probabilities: Tensor) -> str:
        """The class that is predicted."""
        return self.model.labels[int(probabilities.argmax())]

    @property
    def queries(self) -> int:
        """Queries of every head."""
        return self.opened.queries if isinstance(self.opened, Pass) else 1

    @property
    def pools(self) -> bool:
        """Whether it is decoded and not run as a whole."""
        return isinstance(self.opened, OpenedPooling)

    @cached_property
    def tokens(self) -> list[str]:
        """Words as they were written, not as the model knows them, and the symbols around them."""
        spelled = list(self.batch.reader.spelled(self.batch.tokens[0].tolist()))
        words = (self.batch.sentence[0] >= 0).nonzero()[:, 0].tolist()
        for place, word in zip(words, self.example.all_words, strict=True):
            spelled[place] = word
        return spelled

    @cached_property
    def keys(self) -> list[str]:
        """What each real key is: a word, the beginning of a sentence, a wrapper, or nothing."""
        with torch.no_grad():
            owner = self.model.trace(self.batch, keep=[self.site]).owner[self.site][0].tolist()
        layered = isinstance(self.model, SelfAttentive) and self.site in self.model.self_attention
        real = self.opened.mask[0].nonzero()[:, 0].tolist()
        named = [self.tokens[key] if layered else name_of_key(key, owner, self.tokens) for key in real]
        return [each.removeprefix(MARK) or NULL for each in named] if isinstance(self.model, Stepwise) else named

    @cached_property
    def looks(self) -> list[str]:
        """What each query is: a key, a piece of one (`charming 2/3`), or all that it may look at, as a sentence does.

        One has no name where one query is read.
        """
        if self.queries == 1:
            return [""]
        with torch.no_grad():
            here = next(site for site in sites_in_pass(self.model, self.batch) if site.name == self.site)
        if here.query_owner is not None:
            return list(names_of_pieces(here.query_owner[0].tolist(), self.tokens))
        if self.queries == len(self.keys):
            return self.keys
        reach = here.mask.expand_as(here.weights)[0, 0][:, self.opened.mask[0]]  # [query, key]
        return [shorten_key(" ".join(compress(self.keys, row))) for row in reach.tolist()]

    @property
    def movable(self) -> list[bool]:
        """Whether each real key may be rewritten."""
        return self.opened.movable[0, self.opened.mask[0]].tolist()

    def rows(self, given: Mapping[int, Sequence[float]]) -> Tensor:
        """The model's own weights with some rows in their place, [row, key]; wrong shapes are one sentence."""
        weights = self.own.clone()
        for row, values in given.items():
            if row >= len(weights) or len(values) != weights.shape[1]:
                raise UsageError(
                    f"row {row} of {len(values)} weights doesn't fit: this text has {len(weights)} rows of "
                    f"{weights.shape[1]} weights at '{self.site}'; open it again"
                )
            weights[row] = torch.tensor(values, dtype=weights.dtype)
        return weights

    def weigh(self, rows: Mapping[int, Sequence[float]]) -> RewrittenPrediction:
        """What is predicted with some rows of weights in the place of the model's own.

        >>> exegete.lab("checkpoints/mine", "a charming film").weigh({0: [0.2, 0.5, 0.3]}).tvd  # doctest: +SKIP
        """
        return self.weighed(self.rows(rows))

    def weighed(self, weights: Tensor) -> RewrittenPrediction:
        """What is predicted under weights [row, key]."""
        with torch.no_grad():
            found = self.opened.logits(self._whole(weights[None]))[0, 0].softmax(-1)
            held = None if self.frozen is None else self.frozen.logits(self._whole(weights[None]))[0, 0].softmax(-1)
        return RewrittenPrediction(found, float(tvd(found, self.probabilities)), self._apart(weights), held)

    def cut(self, word: int, by: int | None = None, layers: tuple[int, int] | None = None) -> RewrittenPrediction:
        """What is predicted where nobody, or `by` alone, looks at a word from one layer to another (all unless given).

        Attention knockout (Geva et al. 2023, section 5), as in the experiment of that name. Words are counted from 0
        with the symbols around them, as a layer's keys; all weights but these are the model's own.

        >>> exegete.lab("hf:minilm", "a charming film").cut(2, by=0, layers=(3, 5)).tvd  # doctest: +SKIP
        """
        names = self.model.self_attention if isinstance(self.model, SelfAttentive) else ()
        first, last = layers or (0, len(names) - 1)
        if not names or not 0 <= first <= last < len(names):
            there = f"it has layers 0 to {len(names) - 1}" if names else "it has no layers of self-attention"
            raise UsageError(f"no word can be cut from layer {first} to layer {last} of this model: {there}")
        if word == by:
            raise UsageError("a word never loses its look at itself: choose another that looks")
        marks = (self._marked(word), None if by is None else self._marked(by))
        with torch.no_grad():
            logits = self.model.logits(self.batch, intervene=Cut(marks[0], names[first : last + 1], marks[1]))
        found = logits[0].double().softmax(-1)
        return RewrittenPrediction(found, float(tvd(found, self.probabilities)), None, None)

    def rewritten(self, weights: Tensor, how: str, count: int, key: int, draw: int) -> Tensor:
        """Weights [row, key] as an intervention leaves them; keys that may not move keep theirs, but for `zero`."""
        moves = torch.tensor(self.movable).expand_as(weights)
        if how == "zero":
            return torch.zeros_like(weights)
        if how == "uniform":
            shared = weights.where(moves, 0).sum(-1, keepdim=True)
            return torch.where(moves, scaled(torch.ones_like(weights), moves) * shared, weights)
        if how in ("remove", "sinks", "without"):
            top = rank_keys(heights(weights, moves), moves) < count
            one = (torch.arange(weights.shape[1]) == key).expand_as(moves)
            gone = top if how == "remove" else self._sinks.expand_as(moves) if how == "sinks" else one
            return without(weights, torch.ones_like(moves), gone)
        if how == "reverse":
            return weights.masked_scatter(moves, weights[moves].view(len(weights), -1).flip(-1))
        return self._permuted(weights, torch.tensor([self.movable]), draw, 1)[0]

    def outcomes(self, first: int, count: int) -> tuple[list[float], list[float], list[bool]]:
        """TVD, JSD and whether it flips, of draws of permutations, as in the experiment of that name (seed 0)."""
        drawn = self._permuted(self.opened.weights[0], self.opened.movable, first, count)  # [draw, row, key]
        with torch.no_grad():
            found = self.opened.logits(drawn[None])[0].softmax(-1)  # [draw, class]
        moved = tvd(found, self.probabilities.expand_as(found)).tolist()
        apart = jsd(drawn, self.opened.weights.expand_as(drawn))[:, looking(self.opened.weights[0])].mean(-1)
        return moved, apart.tolist(), (found.argmax(-1) != self.probabilities.argmax()).tolist()

    def searched(self, search: Search, epsilon: float) -> Iterator[dict[str, object]]:
        """The search of the audit, every few steps: candidates, and the furthest within ε so far."""
        for step, found in watch_search(self.opened, search, EVERY):
            best = furthest(self.opened.weights, found, epsilon)
            yield {
                "step": step,
                "steps": search.steps,
                "candidates": [list(pair) for pair in zip(found.jsd[0].tolist(), found.tvd[0].tolist(), strict=True)],
                "jsd": float(best.jsd),
                "tvd": float(best.tvd),
                "met": bool(found.best(epsilon)[0] >= 0),
                "rows": best.weights[0, :, self.opened.mask[0]].tolist(),
            }

    def _marked(self, number: int) -> Tensor:
        """One token of the text, counted from 0: [1, token]."""
        there = self.batch.cost[0] > 0
        if not 0 <= number < int(there.sum()):
            raise UsageError(f"there is no token {number}: this text has {int(there.sum())}, counted from 0")
        return ((there.cumsum(-1) - 1 == number) & there)[None]

    @property
    def _sinks(self) -> Tensor:
        """The real keys that are symbols, or the first token: [key]."""
        if not (isinstance(self.model, SelfAttentive) and self.site in self.model.self_attention):
            raise UsageError(f"at site '{self.site}' no token is looked at, so that none is a sink: choose a layer")
        return sinks_of(self.batch)[0, self.opened.mask[0]]

    def _permuted(self, weights: Tensor, moves: Tensor, first: int, count: int) -> Tensor:
        """Draws of permuting rows [row, key], all in one order: [draw, row, key]. Only `count` of them are weights."""
        key = places(moves).expand(moves.shape)
        order = permuted(key, moves, self.opened.ids, 0, first + count)[0, first:, None]  # [draw, 1, key]
        drawn = weights.expand(count, -1, -1).gather(-1, order.expand(-1, len(weights), -1))
        return torch.where(moves, drawn, weights)

    def _whole(self, rows: Tensor) -> Tensor:
        """Draws of real keys [draw, row, key] as the opened text takes them: [1, draw, row, key]."""
        weights = self.opened.weights.new_zeros(len(rows), *self.opened.weights.shape[1:])
        weights[..., self.opened.mask[0]] = rows
        return weights[None]

    def _apart(self, weights: Tensor) -> float | None:
        """The mean JSD over rows; None where a row has another sum: then it is no distribution over the same."""
        own = self.own[looking(self.own)]
        changed = weights[looking(self.own)]
        if (own.sum(-1) - changed.sum(-1)).abs().max() > SAME or self.model.readout is None:
            return None
        return None if self.model.readout.gated else float(jsd(changed, own).mean())


def sites_in_pass(model: Predictor, batch: Batch) -> list[Site]:
    """All that one pass computes, as an intervention meets it: queries are pieces where a model reads pieces."""
    met: list[Site] = []

    def watch(site: Site) -> Tensor:
        met.append(site)
        return site.weights

    model.logits(batch, intervene=watch)
    return met


def attack(model: Predictor, example: Example, site: str | None = None) -> Attack:
    """Open a text at a site, the readout unless one is named."""
    batch = model.collate([example])
    with torch.no_grad():
        found = opened(model, batch, site=site)
        name = site or model.sites[-1]
        return Attack(model, example, batch, name, found, _held(model, batch, name))


def _held(model: Predictor, batch: Batch, site: str) -> Opened | None:
    """The site opened with all others held as they are; None where no other comes after it."""
    if site == model.sites[-1]:
        return None
    weights = {(met.name, met.first_query): met.weights for met in sites_in_pass(model, batch)}
    return passing(model, batch, site, Held(weights))
