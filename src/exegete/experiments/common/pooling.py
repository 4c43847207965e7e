"""Pooling: texts opened at the readout or at another site, in batches: what changes only the weights there starts here.

With several heads "the weight of a key" is its mean over them. What compares weights compares head by head, and takes
the mean over heads afterwards.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.models.capabilities import Resuming
from exegete.models.contract import Predictor, Query
from exegete.models.openings import Opened, opened, unopened, unpooled
from exegete.tasks.batching import batches_by_cost, batches_of_one_length
from exegete.tasks.example import Example

SIZE, BUDGET = 512, 32_768  # texts and words that are opened together
DRAWS, NUMBERS = 100, 12_500_000  # weightings that a caller asks about together, and what they may take: 100 MB


class Pooled(NamedTuple):
    """Some texts of about one length, of which only the weights of one site are left to choose."""

    members: list[int]  # places among the examples that were given
    opened: Opened
    logits: Tensor  # [batch, class], float64, under the model's own weights

    @property
    def ids(self) -> Tensor:
        """[batch]."""
        return self.opened.ids

    @property
    def mask(self) -> Tensor:
        """[batch, key], True on real keys."""
        return self.opened.mask

    @property
    def weights(self) -> Tensor:
        """[batch, head, key], float64: the model's own."""
        return self.opened.weights

    @property
    def key_weights(self) -> Tensor:
        """[batch, key]: the mean over heads, by which keys are ranked."""
        return self.opened.weights.mean(1)

    def decode(self, weights: Tensor) -> Tensor:
        """Logits [batch, draw, class] in float64 under weights [batch, draw, head, key]."""
        with torch.no_grad():
            return self.opened.logits(weights)


def open_pooled(model: Predictor, examples: Sequence[Example], site: str | None = None) -> Iterator[Pooled]:
    """Every example, in batches, opened once; at the readout, unless a site is named."""
    if (reason := unopened(model)) is not None:
        raise UsageError(reason)
    for members in _alike(model, examples, site):
        with torch.no_grad():
            texts = opened(model, model.collate([examples[i] for i in members]), site=site)
            logits = texts.own
        yield Pooled(members, texts, logits)


def _alike(model: Predictor, examples: Sequence[Example], site: str | None) -> Iterator[list[int]]:
    """Texts of one length; where every piece of a word is a query that is read, of one number of pieces.

    Where one query goes on, texts up to twice as long as the shortest are opened together: keys are what is padded, and
    they cost little; a search takes its steps once per batch, however few texts are in it.
    """
    query = _query(model, site)
    if isinstance(model, Resuming) and query in ("first", "last"):
        yield from _about_as_long(model, examples)
        return
    for members in batches_of_one_length(examples, _together(model, examples, site), BUDGET):
        if query != "every":
            yield members
            continue
        pieces = model.collate([examples[i] for i in members]).cost.sum(-1)
        for count in pieces.unique():
            yield [members[i] for i in (pieces == count).nonzero()[:, 0].tolist()]


def _about_as_long(model: Predictor, examples: Sequence[Example]) -> Iterator[list[int]]:
    """From the shortest texts to the longest, in pieces; none is more than twice as long as another of its batch."""
    costs = [int(model.collate([example]).cost.sum()) for example in examples]
    longest = 0
    for members in batches_by_cost(costs, _together(model, examples, None), BUDGET):
        some: list[int] = []
        for i in members:
            if some and costs[i] > longest:
                yield some
                some = []
            longest = longest if some else 2 * costs[i]
            some.append(i)
        yield some


def _query(model: Predictor, site: str | None) -> Query | None:
    """Which query of a site goes on: that of the readout, and all of them below it."""
    if model.readout is None:
        return None
    return model.readout.query if site in (None, model.readout.sites[-1]) else "every"


def _together(model: Predictor, examples: Sequence[Example], site: str | None) -> int:
    """How many texts fit: classes may be the words of a vocabulary, and of a pass all weights of all draws are held."""
    each = len(model.labels)
    if (site is not None or unpooled(model) is not None) and examples:
        with torch.no_grad():
            longest = opened(model, model.collate([max(examples, key=len)]), site=site)
        each = max(each, longest.weights.numel())
    return max(1, min(SIZE, NUMBERS // (DRAWS * each)))
