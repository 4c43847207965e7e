"""Cuts: what is lost with the edges to a word gone where a reading looks, w_t of that reading, and all else as it is.

A reading over layers may copy what words do and be read by nobody, so M is asked with the edges cut at all of its
sites: in its head, and from the token that is read alone, or from all of them, as the reading has it. Of the readout
that is its zeroed weights, as `mediation` has them. Readings that look at the same edges share one cut.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from exegete.base.places import places
from exegete.experiments.mediation.effects import SCALES, explained_scales
from exegete.importance.reading import READOUT, Reading
from exegete.interventions.cut import Cut
from exegete.interventions.restriction import AtHeads
from exegete.interventions.sites import Head
from exegete.models.capabilities import Resuming
from exegete.models.contract import Intervention, Predictor
from exegete.tasks.batching import Batch

TOKENS = 8_192  # that pass through a model together
PassUnder = Callable[[Tensor, Intervention], Tensor]  # of some texts of a batch, [row], under an intervention: logits


class Edges(NamedTuple):
    """Which edges to a word a reading looks at."""

    sites: tuple[str, ...]  # from the words up
    head: int | None
    one: bool  # of the token alone from which the prediction is read; else of all

    def cut(self, model: Predictor, words: Tensor) -> Intervention:
        """Without those to one word of every text, marked in [text, token]."""
        cut = Cut(words, self.sites, model.readout if self.one else None)
        return cut if self.head is None else AtHeads(tuple(Head(site, self.head) for site in self.sites), cut)


def reading_edges(reading: Reading, model: Predictor) -> Edges:
    """What a reading looks at."""
    assert model.readout is not None
    one = reading.how == "mean" and reading.query == READOUT and model.readout.query in ("first", "last")
    return Edges(reading.sites(model), reading.head, one)


class Cuts:
    """What mediation calls a way of zeroing, in as many ways as readings look at different edges.

    A text that is asked about alone is the same however its words are removed, so the last answer is kept.
    """

    def __init__(self, model: Predictor, readings: Sequence[Reading]) -> None:
        own = [reading_edges(reading, model) for reading in readings]
        self.ways = list(dict.fromkeys(own))
        self.way = [self.ways.index(each) for each in own]  # of every reading
        self._last: tuple[Tensor, Tensor, tuple[Tensor, Tensor]] | None = None

    def __call__(self, model: Predictor, left: Batch, asked: Tensor) -> tuple[Tensor, Tensor]:
        """Logits as they are, [text, class], and without the edges to every word asked about, [way, ask, class]."""
        if self._last is None or not (_same(self._last[0], left.tokens) and _same(self._last[1], asked)):
            self._last = left.tokens, asked, self._cut(model, left, asked)
        return self._last[2]

    def effects(self, model: Predictor, batch: Batch, label: Tensor, asked: Tensor) -> Tensor:
        """w of words of whole texts, by way and scale, [way, scale, text, token]; NaN where nothing was asked."""
        whole, cut = self(model, batch, asked)
        row = asked.nonzero(as_tuple=True)[0]
        now = explained_scales(whole, label)[:, row]  # [scale, ask]
        shape = (len(cut), len(SCALES), *asked.shape)
        found = torch.full(shape, torch.nan, dtype=torch.float64, device=asked.device)
        found[:, :, asked] = torch.stack([now - explained_scales(logits, label[row]) for logits in cut])
        return found

    def _cut(self, model: Predictor, left: Batch, asked: Tensor) -> tuple[Tensor, Tensor]:
        row, token = asked.nonzero(as_tuple=True)
        word = places(asked) == token[:, None]  # [ask, token]
        size = max(1, TOKENS // max(1, int(left.cost.sum(-1).max())))
        found = []
        for way in self.ways:
            run = from_site(model, left, way.sites[0])
            parts = places(row).split(size)
            found.append(torch.cat([run(row[i], way.cut(model, word[i])).double() for i in parts]))
        return model.logits(left).double(), torch.stack(found)


def from_site(model: Predictor, batch: Batch, site: str) -> PassUnder:
    """Passes over texts of a batch in which nothing below a site is changed, so that they may start there."""
    if isinstance(model, Resuming) and site != model.sites[0]:
        return model.begun(batch, site, lambda at: at.weights).logits
    return lambda rows, intervene: model.logits(batch.rows(rows), intervene=intervene)


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one, other)
