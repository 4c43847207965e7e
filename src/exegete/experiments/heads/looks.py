"""Looks: what the heads of a model do with some texts as they are: patterns, sensitivity, agreement with importance."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from exegete.experiments.common.contract import Subject
from exegete.experiments.heads.patterns import PATTERNS, patterns, punctuation_of
from exegete.experiments.heads.pruning import slopes
from exegete.interventions.sites import Head
from exegete.measures.rank import tau
from exegete.models.contract import Predictor, Site, Trace
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example
from exegete.training.evaluation import prediction_passes

SENSITIVITY, TAU = "sensitivity", "tau"
LOOKS = (*PATTERNS, SENSITIVITY, TAU)


class AttendedTexts(NamedTuple):
    """Some texts, and what the model attended to in them."""

    members: list[int]
    batch: Batch
    trace: Trace
    reach: dict[str, Tensor]  # by site: [batch, 1 or head, token, token], where a token may look


def see_heads(model: Predictor, examples: Sequence[Example], sites: Sequence[str]) -> Iterator[AttendedTexts]:
    """Every example, in batches, with the weights of some sites and where these may lie."""
    for members in prediction_passes(model, examples):
        batch = model.collate([examples[i] for i in members])
        reach: dict[str, Tensor] = {}

        def watch(site: Site, reach: dict[str, Tensor] = reach) -> Tensor:
            if site.name in sites:
                reach[site.name] = _of_words(site)
            return site.weights

        with torch.no_grad():
            yield AttendedTexts(members, batch, model.trace(batch, intervene=watch, keep=sites), reach)


def _of_words(site: Site) -> Tensor:
    """The mask of a site by words: a word may look where one of its pieces may."""
    mask = site.mask.expand(*site.mask.shape[:2], *site.weights.shape[2:])
    if site.query_owner is None:
        return mask
    owned = one_hot(site.query_owner + 1, site.batch.tokens.shape[1] + 1)[..., 1:]  # [batch, piece, word]
    return (owned.mT[:, None].float() @ mask.float()) > 0


def look_at_heads(subject: Subject, heads: Sequence[Head], scores: Tensor | None) -> dict[str, Tensor]:
    """Every pattern, ∂L/∂ξ by size, and τ-b with the sizes of scores [example, word]: [example, head], float64 each."""
    model, examples = subject.model, subject.examples
    sites = tuple(dict.fromkeys(head.site for head in heads))
    empty = torch.full((len(examples), len(heads)), torch.nan, dtype=torch.float64)
    found = {name: empty.clone() for name in (*PATTERNS, TAU)}
    for some in see_heads(model, examples, sites):
        own = [examples[i] for i in some.members]
        punctuation = punctuation_of(own, some.batch)
        parts = [patterns(some.trace.attention[site], some.reach[site], some.batch, punctuation) for site in sites]
        for name in PATTERNS:
            found[name][some.members] = torch.cat([part[name] for part in parts], -1).cpu()
        if scores is not None:
            received = torch.cat([_received(some, model, site) for site in sites], 1)  # [batch, head, token]
            found[TAU][some.members] = _agreement(received, some.batch, scores[some.members])
    found[SENSITIVITY] = slopes(model, examples, heads).abs()
    return {name: found[name] for name in LOOKS}


def _received(some: AttendedTexts, model: Predictor, site: str) -> Tensor:
    """What tokens get at a site: in the row that the prediction is read from, elsewhere the mean over those that look.

    [batch, head, token].
    """
    readout = model.readout
    if readout is not None and site == readout.sites[-1]:
        return some.trace.read(readout).double()
    weights = some.trace.attention[site].double()
    looking = (weights > 0).any(-1).any(1).sum(-1)  # [batch]
    return weights.sum(2) / looking.clamp(min=1)[:, None, None]


def _agreement(received: Tensor, batch: Batch, scores: Tensor) -> Tensor:
    """τ-b of the weights that words get with the sizes of their scores, [batch, head]."""
    rows = []
    for weights, words, own in zip(received.cpu(), batch.words.cpu(), scores.abs(), strict=True):
        kept = weights[:, words]  # [head, word]
        kept = kept / kept.sum(-1, keepdim=True).clamp(min=1e-300)  # weights among words: rounding is a share of each
        rows.append(tau(kept, own[: kept.shape[1]].expand_as(kept)))
    return torch.stack(rows)
