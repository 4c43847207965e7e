"""Proof of effect: every model shows once, when it is made, that its attention is read and rewritten.

Edits of attention weights are no-ops on several architectures in other tools: the weights that are changed are copies
that nobody reads. So a few texts of different lengths are run, and four things must hold, or the model is refused:

- read as transformers itself runs it, the model computes the same;
- a text alone and beside longer ones gets the same logits: padding is masked;
- rows of weights sum to 1 over the words (to less with sinks), and padding has none;
- at every site, other weights give other logits.

There is one exception: the last site of several, from which the prediction is read, may hand on exactly nothing. Where
other weights there give the same logits, bit by bit, while logits are computed from them (they have a gradient, which
is 0 everywhere), what they multiply is 0: attention is computed and *unread*, which the audit is asked about, too.
Without a gradient the edit was of a copy, and the model is refused.

Whether a pass may be resumed from what lies below the readout is tried, too, and whether with the one query alone that
is read, also from other embeddings than those of a text; where that gives other logits, it isn't.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from exegete.base.errors import ExegeteError
from exegete.models.contract import Intervention, Site
from exegete.models.huggingface.one_query import begin, logits_of_one
from exegete.models.huggingface.parameters import layers_of
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example

if TYPE_CHECKING:
    from exegete.models.huggingface.model import HuggingFace

CLOSE = {torch.float32: 1e-4, torch.float64: 1e-6}  # relative to the largest number
COARSE = 0.1  # in half precision
NO_ROWS = (RuntimeError, ValueError, TypeError, IndexError)  # where layers give something else than rows of texts
LENGTHS = (5, 2, 4)  # of the texts that are run, in words: short, for models that read little


class Proof(NamedTuple):
    """What was shown, as numbers."""

    way: str  # interface or softmax
    same: float  # the largest difference to what transformers computes by itself
    moved: dict[str, float]  # by site: the largest difference of a logit with all weight on one word
    gated: bool  # rows sum to less than 1
    crossing: bool  # the tokenizer has pieces that begin in one word and end in another
    resumes: bool = True  # a pass that starts below the readout gives the same logits as a whole one
    narrows: bool = True  # and so does one of the query alone that is read

    @property
    def unread(self) -> tuple[str, ...]:
        """Sites of which exactly nothing is read: no weights change a logit."""
        return tuple(site for site, moved in self.moved.items() if moved == 0)

    @property
    def sentence(self) -> str:
        """For a person."""
        read = {site: moved for site, moved in self.moved.items() if moved > 0}
        least = min(read, key=lambda site: read[site])
        unread = "".join(f"; at {site} no weights change any: what they multiply is 0" for site in self.unread)
        spelling = (
            "; its tokenizer cuts across words: a piece counts for the word it begins in" if self.crossing else ""
        )
        return (
            f"attention is reached by {self.way}: the same weights change its output by {self.same:.0e}, other weights "
            f"change a logit by {read[least]:.1e} or more at each of {len(read)} sites (least at {least}){unread}"
            f"{spelling}"
        )


def proven(model: "HuggingFace") -> Proof:
    """Show it, or refuse the model with one sentence."""
    from exegete.models.huggingface.word_pieces import PROBES
    from exegete.models.own.classifier import resting

    texts = [tuple(text.split()[:words]) for text, words in zip(PROBES, LENGTHS, strict=True)]
    batch = _batch(model, texts)
    with resting(model), torch.no_grad():
        same = _same(model, batch)
        trace = model.trace(batch)
        _alone(model, batch, trace.logits)
        gated = _rows(model, trace.attention)
        moved = {site: _moved(model, batch, trace.logits, site) for site in model.sites}
        resumes = _resumes(model, batch, narrow=False)
        narrows = resumes and _resumes(model, batch, narrow=True) and _goes_on_alone(model, batch)
        if narrows and model.tokenizer.mask_token is not None:  # ESM scales all embeddings by the share of these
            narrows = _goes_on_alone(model, _batch(model, [(*text[1:], model.tokenizer.mask_token) for text in texts]))
    return Proof(model.access.way, same, moved, gated, model.vocabulary.crossing, resumes, narrows)


def _batch(model: "HuggingFace", texts: Sequence[tuple[str, ...]]) -> Batch:
    parts = [(text, text[:2]) if model.settings.pair else (text,) for text in texts]
    return model.collate([Example(i, each, 0) for i, each in enumerate(parts)])


def _same(model: "HuggingFace", batch: Batch) -> float:
    pieces = model.pieces(batch)
    own = model.call(pieces, batch)
    ours = model.read(batch, None, None).output
    real = pieces.real if "logits" not in own else ...
    one, other = (_first(output)[real].float() for output in (own, ours))
    if not bool(one.isfinite().all()):
        raise ExegeteError(
            f"{model.who} computes NaN or infinite numbers of plain texts: its training went wrong, or its weights "
            "were damaged; take an earlier checkpoint"
        )
    apart = float((one - other).abs().max())
    if not apart <= _close(model, one):
        raise ExegeteError(
            f"{model.who} computes something else when its attention is read (by {apart:.1e}): its architecture does "
            "more in its attention than we know; choose a model of another (exegete ls architectures)"
        )
    return apart


def _first(output: Tensor) -> Tensor:
    first: Tensor = output[0]
    return first


def _alone(model: "HuggingFace", batch: Batch, logits: Tensor) -> None:
    for row in range(len(batch.ids)):
        which = torch.tensor([row], device=batch.ids.device)
        alone = model.logits(batch.rows(which, int(batch.present[row].sum())))
        apart = float((alone[0] - logits[row]).abs().max())
        if not apart <= _close(model, logits):
            raise ExegeteError(
                f"{model.who} predicts otherwise for a text alone than beside longer ones (by {apart:.1e}): it reads "
                "its padding, and can't be explained"
            )


def _rows(model: "HuggingFace", attention: dict[str, Tensor]) -> bool:
    """Whether rows sum to less than 1 somewhere; more is refused."""
    close = _close(model, torch.ones(1))
    highest, lowest = 0.0, 1.0
    for weights in attention.values():
        total = weights.sum(-1)
        highest = max(highest, float(total.max()))
        lowest = min(lowest, float(total[total > 0].min()))
    if highest > 1 + close:
        raise ExegeteError(f"{model.who} has rows of weights that sum to {highest:.3f}: they are no attention")
    return lowest < 1 - close


def _moved(model: "HuggingFace", batch: Batch, logits: Tensor, site: str) -> float:
    ways = (all_on(site, last) for last in (True, False))
    apart = max(float((model.logits(batch, intervene=way) - logits).abs().max()) for way in ways)
    if apart == 0 and not (
        site == model.sites[-1] and len(model.sites) > 1 and _multiplies_nothing(model, batch, site)
    ):
        raise ExegeteError(
            f"the logits of {model.who} are the same under all weights at {site}: nobody reads them, and there is "
            "nothing to ask about its attention"
        )
    return apart


def _multiplies_nothing(model: "HuggingFace", batch: Batch, name: str) -> bool:
    """Whether logits are computed from the weights of a site, and their gradient is 0 under all kinds of weights."""
    for last in (True, False, None):
        met: list[Tensor] = []

        def imposed(site: Site, met: list[Tensor] = met, last: bool | None = last) -> Tensor:
            if site.name != name:
                return site.weights
            weights = site.weights if last is None else all_on(name, last)(site)
            met.append(weights.detach().clone().requires_grad_())
            return met[-1]

        with torch.enable_grad():
            logits = model.logits(batch, intervene=imposed)
            if not (met and logits.requires_grad):
                return False
            (gradient,) = torch.autograd.grad(logits.square().sum(), met[-1:], allow_unused=True)
        if gradient is None or bool(gradient.any()):
            return False
    return True


def _resumes(model: "HuggingFace", batch: Batch, narrow: bool) -> bool:
    """Texts in another order, and one of them twice, under other weights at the last site."""
    site = model.sites[-1]
    rows, other = torch.tensor([2, 0, 0, 1], device=batch.ids.device), all_on(site, last=True)
    whole = model.logits(batch.rows(rows), intervene=other)
    try:
        begun = begin(model, batch, site, lambda at: at.weights, layers_of(model.access), narrow)
        resumed = begun.logits(rows, other)
    except NO_ROWS:
        return False
    return begun.one_query == narrow and float((whole - resumed).abs().max()) <= 0.1 * _close(model, whole)


def _goes_on_alone(model: "HuggingFace", batch: Batch) -> bool:
    """From other embeddings than a text's own: one that is used beside the layers, or above them, would show."""
    other = model.embed(batch).flip(-1)
    whole = model.trace(batch, embedded=other, keep=()).logits
    try:
        alone = logits_of_one(model, batch, other)
    except NO_ROWS:
        return False
    return float((whole - alone).abs().max()) <= 0.1 * _close(model, whole)


def all_on(name: str, last: bool) -> Intervention:
    """All weight of a row on its last real key, or on its first."""

    def rewritten(site: Site) -> Tensor:
        if site.name != name:
            return site.weights
        mask = site.mask.expand_as(site.weights)
        wanted = mask.sum(-1, keepdim=True) if last else 1
        return (mask & (mask.long().cumsum(-1) == wanted)).to(site.weights.dtype)

    return rewritten


def _close(model: "HuggingFace", like: Tensor) -> float:
    return CLOSE.get(model.dtype, COARSE) * max(1.0, float(like.abs().max()))
