"""Reading: one of the ways in which people turn the weights of many layers and heads into one score per word.

With A_lh the weights of head h of layer l, and r the share of every token in what is predicted from (1 at CLS, or at
the last token; the weights of a pool; 1/n where all are averaged),

    mean      s_t = mean over layers and heads of Σ_q r_q A_lh,qt        rows of the tokens that are read
    rollout   s = r Ã_L ⋯ Ã_1                                           (exegete.importance.rollout)
    flow      the maximum flow from r down to word t                    (exegete.importance.flow)

With `query=every` it is what all tokens give to a word, r_q = 1/n: column means. A reading is of raw weights; what uses
gradients or values is another importance. Which site, head and query it is of is part of its name.

Some heads may be left out of a reading, to see what it is without them; a layer of which none is left is its residual.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.importance.contract import Scores, Target, cost, on_words, predicted
from exegete.importance.flow import flows
from exegete.importance.rollout import Graph, follow_down, readout_shares, row_shares, with_residual, without_layers
from exegete.interventions.sites import EVERY, Head, choose_sites
from exegete.models.capabilities import SelfAttentive
from exegete.models.contract import Predictor, Trace
from exegete.tasks.batching import Batch

READOUT = "readout"
QUERIES = {"first": "the first token", "last": "the last token", "every": "every token", "only": "the pool"}


class ReadingPlace(NamedTuple):
    """Where a reading looks in a model, in words."""

    site: str
    head: str
    query: str


@dataclass(frozen=True)
class Reading:
    """Weights at some sites, in one head or the mean of all, of the query that is read or of every one."""

    family: ClassVar[str] = "attention"
    signed: ClassVar[bool] = False

    how: Literal["mean", "rollout", "flow"] = "mean"
    site: str = READOUT  # or one layer, a window of layers, or `every` layer (exegete.interventions.sites)
    head: int | None = None  # the mean of all, unless given
    query: Literal["readout", "every"] = "readout"

    def __post_init__(self) -> None:
        if self.how != "mean" and (self.site, self.head, self.query) != (EVERY, None, READOUT):
            raise UsageError(f"{self.how} is of every layer and head: write reading:how={self.how},site=every")

    def refuses(self, model: Predictor) -> str | None:
        """Only where layers of self-attention lie under what is read are there several readings."""
        return without_layers("reading", model)

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        """One forward pass; the scores are the same for every class."""
        if (reason := self.refuses(model)) is not None:
            raise UsageError(reason)
        with torch.no_grad():
            trace = model.trace(batch)
        values = self.of(model, trace, batch)
        target = target or predicted(trace.logits)
        return Scores(on_words(values, batch), signed=self.signed, target=target, cost=cost(batch, forward=1))

    def sites(self, model: Predictor) -> tuple[str, ...]:
        """Those that it reads, from the words up."""
        assert isinstance(model, SelfAttentive)
        assert model.readout is not None
        if self.site == READOUT:
            return model.readout.sites[-1:]
        return choose_sites(self.site, model.self_attention)

    def place(self, model: Predictor) -> ReadingPlace:
        """Where it looks, in words: sites, head and query are always said."""
        assert model.readout is not None
        sites = self.sites(model)
        site = sites[0] if len(sites) == 1 else f"{sites[0]} to {sites[-1]}"
        query = "every" if self.query == EVERY or self.how != "mean" else model.readout.query
        return ReadingPlace(site, "mean" if self.head is None else str(self.head), QUERIES[query])

    def of(self, model: Predictor, trace: Trace, batch: Batch, without: Collection[Head] = ()) -> Tensor:
        """Scores [batch, token], float64, of a trace that has all sites; some heads may be left out of it."""
        if self.how == "mean":
            return self._rows(model, trace, without)
        assert isinstance(model, SelfAttentive)
        layers = [_residual(trace.attention[site], _kept(trace, site, without)) for site in model.self_attention]
        whole = Graph(layers, readout_shares(model, trace))
        return follow_down(whole) if self.how == "rollout" else flows(whole, batch.present, batch.words)

    def _rows(self, model: Predictor, trace: Trace, without: Collection[Head]) -> Tensor:
        """The mean over all heads that are left; without any, 0."""
        found, count = torch.zeros(()), 0
        for site in self.sites(model):
            heads = [head for head in _kept(trace, site, without) if self.head in (None, head)]
            found = found + _sum(self._looks(model, trace, site), heads)  # [batch, token]
            count += len(heads)
        return found / max(1, count)

    def _looks(self, model: Predictor, trace: Trace, site: str) -> Tensor:
        """What every head of a site gives to words, float64 [batch, head, token]."""
        weights = trace.attention[site].double()
        if self.head is not None and not 0 <= self.head < weights.shape[1]:
            raise UsageError(f"there is no head {self.head} at site '{site}': it has heads 0 to {weights.shape[1] - 1}")
        if weights.shape[2] == 1:
            return weights[:, :, 0]
        read = (
            row_shares((weights > 0).any(-1).any(1).double()) if self.query == EVERY else readout_shares(model, trace)
        )
        return (read[:, None, None] @ weights)[:, :, 0]


def _kept(trace: Trace, site: str, without: Collection[Head]) -> list[int]:
    """The heads of a site that are not left out."""
    return [head for head in range(trace.attention[site].shape[1]) if Head(site, head) not in without]


def _residual(weights: Tensor, heads: list[int]) -> Tensor:
    """½ (A + I) of some heads, as rollout has it; of none, I: all stays as it is."""
    return with_residual(_sum(weights.double(), heads) / max(1, len(heads)))


def _sum(values: Tensor, heads: list[int]) -> Tensor:
    """Over some heads of [batch, head, …]; one by one, so that no list of them must be on the device of the values."""
    return sum((values[:, head] for head in heads), torch.zeros_like(values[:, 0]))
