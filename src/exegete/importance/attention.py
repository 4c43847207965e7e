"""Attention itself as an importance: the weight of the key that a word belongs to.

A hierarchical model has two levels: word t of sentence s has the weight β_st in its sentence, and the sentence has α_s
in the document. What the document's vector gives to the word is their product, and that is the importance unless one
of the two sites is named: at `word` it is β_st, at `sentence` every word of a sentence has the same α_s.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from exegete.base.errors import UsageError, unknown
from exegete.importance.contract import Scores, Target, cost, on_words, predicted
from exegete.models.contract import Predictor, Readout, Trace
from exegete.models.ours.hierarchical import WORD
from exegete.tasks.batching import Batch


@dataclass(frozen=True)
class Attention:
    """α_t at one site, averaged over heads and queries where there are several; both levels of a hierarchy."""

    family: ClassVar[str] = "attention"

    site: str | None = None  # the model's last one, or all levels of a hierarchy, unless named

    def refuses(self, model: Predictor) -> str | None:
        """Where there is no attention, nothing can be read."""
        return without_attention(model)

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        """The model's own weights; they are the same for every class."""
        sites = sites_of(model, self.site)
        with torch.no_grad():
            trace = model.trace(batch)
        refuse_unweighed(trace, sites, batch)
        values = weight_of_tokens(trace, sites, model.readout)
        target = target or predicted(trace.logits)
        return Scores(on_words(values, batch), signed=False, target=target, cost=cost(batch, forward=1))


def without_attention(model: Predictor) -> str | None:
    """Why a model has no weights to read, as a sentence; None if it has."""
    return (
        None if model.readout else "the model has no attention whose weights could be read: use attention=tanh or dot"
    )


def sites_of(model: Predictor, name: str | None) -> tuple[str, ...]:
    """The sites that are meant: the model's last one, or all levels of a hierarchy from the words up, unless named."""
    if (reason := without_attention(model)) is not None:
        raise UsageError(reason)
    if name is not None and name not in model.sites:
        raise unknown("site", name, model.sites)
    if name is not None:
        return (name,)
    assert model.readout is not None
    return model.readout.sites


def refuse_unweighed(trace: Trace, sites: tuple[str, ...], batch: Batch) -> None:
    """Refuse texts whose explained words have no weights at these sites, as a question's have none."""
    if any(bool((batch.words & (trace.owner[site] < 0)).any()) for site in sites):
        raise UsageError(
            "attention looks at the passage: the question's words have no weights; explain the passage, or score the "
            "question by another importance, such as gradient or leave_one_out"
        )


def weight_of_tokens(trace: Trace, sites: tuple[str, ...], readout: Readout | None) -> Tensor:
    """The product of a token's weights at some sites, each averaged over heads and queries: [batch, token].

    Where a prediction is read from one query, it is the weight that this one has.
    """
    weights = [of_tokens(_of_keys(trace, site, readout), trace.owner[site]) for site in sites]
    return torch.stack(weights).prod(0)


def _of_keys(trace: Trace, site: str, readout: Readout | None) -> Tensor:
    """One weight per key, [batch, key]: the mean over the queries that look at anything.

    Others are padding. Of a word, only the query of its sentence looks at it.
    """
    if readout is not None and site == readout.sites[-1] and readout.query in ("first", "last"):
        return trace.read(readout).mean(1)
    weights = trace.attention[site].mean(1)  # [batch, query, key]
    looking = (weights > 0).any(-1).sum(1).clamp(min=1)[:, None]  # [batch, 1]
    return weights.sum(1) if site == WORD else weights.sum(1) / looking


def of_tokens(values: Tensor, owner: Tensor) -> Tensor:
    """Every token gets what its key has, [batch, key] to [batch, token]; a token that no key owns gets NaN."""
    return values.gather(-1, owner.clamp(min=0)).masked_fill(owner < 0, torch.nan)
