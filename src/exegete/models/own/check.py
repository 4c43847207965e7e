"""Own check: does an own model keep the contract? What it breaks is one sentence, when the model is made.

A module that reads its padding, or that goes on with other weights than `attend` gave it, would run to the end of a
study and give wrong numbers. So a few short texts are run at once.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.models.capabilities import Pooling
from exegete.models.contract import Site, Trace
from exegete.models.own.adapter import OwnPooling
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example

if TYPE_CHECKING:
    from exegete.models.own.classifier import Own

LENGTHS = (5, 1, 3, 2)  # of the texts that are run
CLOSE = 1e-4  # that two runs of one text may differ by, relative to the largest number
MORE = 2  # columns of padding that are added


def probe(model: "Own") -> Batch:
    """Short texts of several lengths, of different words as far as the vocabulary goes."""
    words = model.vocabulary.words or ("?",)
    starts = [sum(LENGTHS[:i]) for i in range(len(LENGTHS))]
    texts = [tuple(words[(s + t) % len(words)] for t in range(n)) for s, n in zip(starts, LENGTHS, strict=True)]
    return model.collate([Example(i, (text,), 0) for i, text in enumerate(texts)])


def check_own(model: "Own", batch: Batch) -> tuple[int, Trace]:
    """Refuse what breaks the contract, with one sentence; else the size of an embedding and what was traced."""
    from exegete.models.own.classifier import resting

    with resting(model), torch.no_grad():
        embedded = model.embed(batch)
        _refuse(model, _embedding(embedded, batch))
        trace = model.trace(batch)
        _refuse(model, _prediction(trace, len(batch.ids), len(model.labels)))
        for check in CHECKS:
            _refuse(model, check(model, batch, trace))
    return embedded.shape[-1], trace


def _refuse(model: "Own", reason: str | None) -> None:
    if reason is not None:
        raise UsageError(f"{model.who} {reason}")


def _embedding(embedded: Tensor, batch: Batch) -> str | None:
    texts, tokens = batch.tokens.shape
    if embedded.dim() != 3 or embedded.shape[:2] != batch.tokens.shape or not embedded.is_floating_point():
        return (
            f"embeds {texts} texts of {tokens} tokens as {embedded.dtype} of shape {tuple(embedded.shape)}: embed must "
            "give [batch, token, size]"
        )
    return None


def _prediction(trace: Trace, texts: int, classes: int) -> str | None:
    if tuple(trace.logits.shape) != (texts, classes):
        return (
            f"gives logits of shape {tuple(trace.logits.shape)} for {texts} texts and {classes} classes: give one per "
            "class, [batch, class]; a single output z is [-z/2, z/2]"
        )
    if not trace.attention:
        return "never calls attend: call it in forward wherever weights are made, and go on with what it returns"
    return None


def _scores(model: "Own", batch: Batch, trace: Trace) -> str | None:  # noqa: ARG001
    """Scores must be finite on real keys, and no weights already."""
    sites: list[Site] = []
    model.trace(batch, intervene=lambda site: sites.append(site) or site.weights)  # type: ignore[func-returns-value]
    for site in sites:
        mask = site.mask.expand_as(site.scores)
        scores = site.scores.masked_fill(~mask, 0.0)
        if not bool(scores.isfinite().all()):
            return f"gives attend('{site.name}') scores that are not finite: leave masking to attend"
        several = mask.sum(-1) > 1
        sums = scores.sum(-1)[several]
        if len(sums) and bool((scores >= 0).all()) and bool(((sums - 1).abs() < CLOSE).all()):
            return f"gives attend('{site.name}') weights that sum to 1 already: give the scores before softmax"
    return None


def _finite(model: "Own", batch: Batch, trace: Trace) -> str | None:  # noqa: ARG001
    """Logits are numbers, also those of a text whose words are all deleted."""
    if not bool(trace.logits.isfinite().all()):
        return "gives logits that are not finite: look for a division by 0, or a softmax over nothing"
    nothing = model.collate([Example(0, ((),), 0)])
    if not bool(model.trace(nothing).logits.isfinite().all()):
        return "gives no finite logits to a text without words"
    return None


def _weights(model: "Own", batch: Batch, trace: Trace) -> str | None:  # noqa: ARG001
    """Rows that have keys sum to 1, but for gates."""
    if model.settings.projection == "gates":
        return None
    for name, weights in trace.attention.items():
        sums = weights.sum(-1)
        off = (sums - 1).abs().where(sums > 0, 0.0)
        if not bool((off < CLOSE).all()):
            return f"has weights at '{name}' that don't sum to 1"
    return None


def _same_again(model: "Own", batch: Batch, trace: Trace) -> str | None:
    """Nothing may be random at rest."""
    if _far(model.trace(batch).logits, trace.logits):
        return "gives other logits to the same texts the second time: nothing may be random after model.eval()"
    return None


def _unpadded(model: "Own", batch: Batch, trace: Trace) -> str | None:
    """A text alone, and with more padding, gets the same logits and the same weights."""
    for row in range(len(batch.ids)):
        alone = batch.rows(torch.tensor([row], device=batch.ids.device), int(batch.lengths[row]))
        other = model.trace(alone)
        if _far(other.logits[0], trace.logits[row]) or _moved(other, trace, row, alone.tokens.shape[1]):
            return (
                f"predicts otherwise for a text of {int(batch.lengths[row])} words alone than beside longer ones: its "
                "padding is read somewhere; use mask (and pack sequences that a recurrent layer reads)"
            )
    return None


def _moved(alone: Trace, trace: Trace, row: int, width: int) -> bool:
    """Whether a text's weights differ."""
    pairs = [(alone.attention[name][0], trace.attention[name][row]) for name in trace.attention]
    return any(_far(one, other[:, : one.shape[1], :width]) for one, other in pairs)


def _followed(model: "Own", batch: Batch, trace: Trace) -> str | None:
    """Logits are computed from the weights of every site: other weights give other ones, or at least a gradient.

    Units that are silent for these few texts may hide the weights from the numbers, but not from the gradient.
    """
    for name in trace.attention:
        others = [model.trace(batch, intervene=_all_on(name, last)).logits for last in (False, True)]
        if all(torch.equal(logits, trace.logits) for logits in others) and not _derived(model, batch, name):
            return (
                f"doesn't go on with the weights that attend('{name}') returns: its logits are the same under all "
                "weights"
            )
    return None


def _derived(model: "Own", batch: Batch, name: str) -> bool:
    """Whether logits have a derivative by the weights of a site."""
    free: list[Tensor] = []

    def impose(site: Site) -> Tensor:
        if site.name != name:
            return site.weights
        free.append(site.weights.detach().requires_grad_())
        return free[-1]

    with torch.enable_grad():
        logits = model.trace(batch, intervene=impose).logits
        return logits.requires_grad and _slope(logits, free[0]) is not None


def _slope(logits: Tensor, by: Tensor) -> Tensor | None:
    return torch.autograd.grad(logits.sum(), by, allow_unused=True)[0]


def _all_on(name: str, last: bool) -> Callable[[Site], Tensor]:
    """All weight on the first key of every row, or on the last."""

    def rewritten(site: Site) -> Tensor:
        if site.name != name:
            return site.weights
        mask = site.mask.expand_as(site.weights)
        place = mask.long().cumsum(-1)
        wanted = mask & (place == (mask.sum(-1, keepdim=True) if last else 1))
        return wanted.to(site.weights.dtype)

    return rewritten


def _differentiable(model: "Own", batch: Batch, trace: Trace) -> str | None:  # noqa: ARG001
    """Gradients reach the embeddings."""
    with torch.enable_grad():
        embedded = model.embed(batch).detach().requires_grad_()
        logits = model.trace(batch, embedded=embedded).logits
        slope = _slope(logits, embedded) if logits.requires_grad else None
    if slope is None:
        return "has logits without a gradient by the embeddings: use what forward is given, without detach or no_grad"
    return None


def _pooled(model: "Own", batch: Batch, trace: Trace) -> str | None:
    """Encoded once and decoded under its own weights, a text gets the logits of a whole run."""
    if not isinstance(model, Pooling):
        return None
    if type(model.own).forward is not OwnPooling.forward:
        return "has a forward of its own beside states, scores and decode: leave it out, or use OwnModel"
    encoded = model.encode(batch)
    weights = model.weigh(encoded.scores, encoded.mask)
    if _far(model.decode(encoded, weights[:, None])[:, 0], trace.logits):
        return "predicts otherwise under the same weights in another run: nothing but the weights may decide"
    return None


CHECKS = (_scores, _finite, _weights, _same_again, _unpadded, _followed, _differentiable, _pooled)


def _far(one: Tensor, other: Tensor) -> bool:
    scale = max(1.0, float(other.abs().max()))
    return not bool((one - other).abs().max() <= CLOSE * scale)
