"""Removal: what the last attention's decoder says with some keys gone (Serrano & Smith 2019, section 3).

Keys are what that attention looks at: words, or sentences in a hierarchical model. Removing a set R is α_t = 0 for
t ∈ R, the rest renormalised, decoded again; nothing is encoded anew. With v_t = W h_t of a linear decoder and the mass
M = Σ_t α_t, which is 1 but for `gates` (nothing removed must be the model's own prediction),

    logits = M Σ_{t kept} α_t v_t / Σ_{t kept} α_t + b

A model with a *null key* (the ladder) says itself where weight goes that no word has: to that key, whose value is 0. It
is no word, so it is never removed, ranked or counted; it takes what is removed, and nothing is renormalised:

    logits = Σ_{t kept} α_t v_t + b

So all cumulative removals along an order are two cumulative sums. Sums run over what is kept, from the
end of the order: a total minus what is gone would lose the small weights. Where no weight is left, because every key is
gone or because sparse attention has none on the others, the context is zero and the bias decides.

With several heads a key is gone from all of them, and each head's rest is renormalised to its own mass. Keys are ranked
by their mean weight; the gradient by a key is the sum of those by its weights, which is what moving all of them does.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import polars as pl
import torch
from torch import Tensor
from torch.nn.functional import pad

from exegete.base.noise import stable_seed, uniform
from exegete.base.places import places
from exegete.base.ties import levels
from exegete.experiments.common.contract import Subject, subject_kind
from exegete.experiments.common.pooling import Pooled, open_pooled

Sampler = Literal["other", "legacy"]
ROOM = 1 << 22  # weights decoded at a time, where the decoder is not linear


def remove_in_order(pooled: Pooled, order: Tensor) -> Tensor:
    """Logits after removing the first j keys of an order, for all j from 0 to the number of keys, in float64.

    An order `[batch, key]` gives `[batch, key + 1, class]`; several, `[batch, order, key]`, give
    `[batch, order, key + 1, class]`.
    """
    if order.dim() == 2:
        return remove_in_order(pooled, order[:, None])[:, 0]
    terms = _terms(pooled)
    if terms is None:
        return _removed_one_by_one(pooled, order)
    rows = places(order, 0)[:, None, None]
    backwards = terms[rows, order.flip(-1)].cumsum(2)  # [batch, order, key, 1 + class], the last key of the order first
    sums = backwards.flip(2)  # what is kept from j on
    return _context(pooled, pad(sums, (0, 0, 0, 1))) + _bias(pooled)[:, None]


def original(pooled: Pooled) -> Tensor:
    """Logits with nothing removed, in the arithmetic of the others: [batch, class]."""
    terms = _terms(pooled)
    if terms is None:
        return pooled.logits
    return _context(pooled, terms.sum(1)) + _bias(pooled)[:, 0]


def without_each(pooled: Pooled) -> Tensor:
    """Logits with each key removed alone, [batch, key, class], in float64: sums before it and after it."""
    terms = _terms(pooled)
    if terms is None:
        keys = places(pooled.weights)
        alone = (keys == keys[:, None])[:, None]  # [draw, 1, key]
        return decode_weights(pooled, lambda some: pooled.weights[:, None].masked_fill(alone[some], 0), len(alone))
    before = pad(terms.cumsum(1)[:, :-1], (0, 0, 1, 0))
    after = pad(terms.flip(1).cumsum(1).flip(1)[:, 1:], (0, 0, 0, 1))
    return _context(pooled, before + after) + _bias(pooled)


def _terms(pooled: Pooled) -> Tensor | None:
    """α_t (1, v_t): weight and weighted value of every key, [batch, key, 1 + class]; None without a linear decoder."""
    values, weights = pooled.opened.values, pooled.weights[:, 0, :, None]
    return None if values is None else torch.cat([weights, weights * values.double()], -1)


def _context(pooled: Pooled, sums: Tensor) -> Tensor:
    """M Σ α v / Σ α, and zero where there is no weight: [batch, ..., 1 + class] -> [batch, ..., class]."""
    if pooled.opened.null is not None:
        return sums[..., 1:]  # what was removed is on the null key, whose value is 0
    mass = sums[..., :1]
    whole = pooled.weights[:, 0].sum(-1).view(-1, *[1] * (sums.dim() - 1))
    return sums[..., 1:] * (whole / mass.where(mass > 0, 1))  # without weight the weighted values are 0 too


def _bias(pooled: Pooled) -> Tensor:
    """What the decoder says of a zero context, [batch, 1, class]."""
    return pooled.decode(torch.zeros_like(pooled.weights)[:, None])


def _removed_one_by_one(pooled: Pooled, order: Tensor) -> Tensor:
    """`remove_in_order` for any decoder: every weighting is decoded. What may not be removed (a start symbol) stays."""
    steps = torch.arange(order.shape[-1] + 1, device=order.device)[:, None, None]  # [draw, 1, 1]
    stays = ~pooled.opened.removable[:, None, None]

    def along(rank: Tensor) -> Tensor:  # [batch, 1, 1, key]: when a key goes
        return decode_weights(
            pooled, lambda some: pooled.weights[:, None] * (stays | (rank >= steps[some])), len(steps)
        )

    return torch.stack([along(rank) for rank in order.argsort(-1)[:, :, None, None].unbind(1)], 1)


def decode_weights(pooled: Pooled, weights: Callable[[Tensor], Tensor], draws: int) -> Tensor:
    """Decode kept weights, filled up to the original mass, some draws at a time: [batch, draw, class]."""
    some = torch.arange(draws, device=pooled.weights.device).split(max(1, ROOM // max(1, pooled.weights.numel())))
    return torch.cat([pooled.decode(_filled(pooled, weights(part))) for part in some], 1)


def _filled(pooled: Pooled, kept: Tensor) -> Tensor:
    """Kept weights with the original mass again, by the null key or by renormalising: [batch, draw, head, key]."""
    whole, null = pooled.weights.sum(-1)[:, None, :, None], pooled.opened.null
    if null is None:
        mass = kept.sum(-1, keepdim=True)
        return kept * (whole / mass.where(mass > 0, 1))
    nowhere = null[:, None, None]  # [batch, 1, 1, key]
    words = kept.masked_fill(nowhere, 0)
    return torch.where(nowhere, whole - words.sum(-1, keepdim=True), words)


def gradient(pooled: Pooled, logits: Tensor) -> Tensor:
    """∂p_c/∂α_t of the predicted class c, signed, weights as free variables: [batch, head, key].

    With a linear decoder it is p_c (v_{t,c} − Σ_y p_y v_{t,y}); any other is derived by autograd. logits
    [batch, class] are those under the model's own weights.
    """
    label = logits.argmax(-1)
    if pooled.opened.values is None:
        return _derived(pooled, label)
    p, values = logits.softmax(-1), pooled.opened.values.double()
    own = values[places(label), :, label]  # [batch, key]
    mean = (values @ p[..., None])[..., 0]
    return (p.gather(1, label[:, None]) * (own - mean))[:, None]


def _derived(pooled: Pooled, label: Tensor) -> Tensor:
    with torch.enable_grad():
        weights = pooled.weights.clone().requires_grad_()
        p = pooled.opened.logits(weights[:, None])[:, 0].softmax(-1)
        (found,) = torch.autograd.grad(p.gather(1, label[:, None]).sum(), weights)
    return found


def key_noise(pooled: Pooled, seed: int, purpose: str, draw: Tensor | int = 0) -> Tensor:
    """Keyed uniform numbers, one per key, counted among those that may go: [batch, key] or with draws before.

    draw [draw, 1] gives [batch, draw, key].
    """
    place = pooled.opened.removable.long().cumsum(-1)  # [batch, key]: neither padding nor wrappers change it
    ids = pooled.ids[:, None]
    if isinstance(draw, Tensor):
        ids, place = ids[:, None], place[:, None]
    return uniform(seed, ids, stable_seed(purpose), draw, place)


def key_ranking(scores: Tensor, mask: Tensor, ties: Tensor) -> Tensor:
    """Keys by falling (finite) score, those that are not real last: [..., key]; equal scores in the order of `ties`.

    Flat attention ranks nothing: by place its order would be that of the text, by keyed noise it is a random one.
    """
    first = ties.expand_as(scores).argsort(-1)
    real = levels(scores.masked_fill(~mask, torch.nan)).nan_to_num(nan=-torch.inf).gather(-1, first)
    return first.gather(-1, real.argsort(dim=-1, descending=True, stable=True))


class Single(NamedTuple):
    """The highest key removed, or another one: [batch] each, logits [batch, class]."""

    keys: Tensor
    difference: Tensor  # α_{i*} − α_r
    same: Tensor  # whether r is i*, which only the legacy sampler allows
    emptied: Tensor  # whether no weight is left without i*
    original: Tensor
    top: Tensor
    other: Tensor


def single(pooled: Pooled, sampler: Sampler, seed: int) -> Single:
    """Remove i* = argmax α, and a random r (Serrano & Smith 2019, section 4)."""
    rows, may_go = places(pooled.ids), pooled.opened.removable
    weights = pooled.key_weights * may_go
    order = key_ranking(weights, may_go, key_noise(pooled, seed, "ties"))
    top = order[:, 0]
    other = other_key(pooled, top, sampler, seed)
    logits = without_each(pooled)
    return Single(
        keys=may_go.sum(-1),
        difference=(weights[rows, top] - weights[rows, other]).clamp(min=0),  # of a tie, either may be a bit higher
        same=top == other,
        emptied=weights.gather(1, order[:, 1:]).sum(-1) == 0,
        original=original(pooled),
        top=logits[rows, top],
        other=logits[rows, other],
    )


def other_key(pooled: Pooled, top: Tensor, sampler: Sampler, seed: int) -> Tensor:
    """r, [batch]: uniform over the keys that may go but i*.

    `legacy` is the released sampler: a rank between the second and the last, used as a position. So r is any key but
    the *first*, and may be i*.
    """
    mask = pooled.opened.removable
    others = mask.sum(-1) - 1
    draw = (uniform(seed, pooled.ids, stable_seed("other key")) * others).long().clamp(max=others - 1)
    first = mask.long().cumsum(-1).gather(1, top[:, None])[:, 0] - 1 if sampler == "other" else torch.zeros_like(draw)
    place = (draw + (draw >= first)).clamp(min=0).minimum(others.clamp(min=0))  # among keys that may go
    return (~mask).byte().argsort(dim=-1, stable=True).gather(1, place[:, None])[:, 0]


def removal_frame(
    subject: Subject, measured: Callable[[Pooled], pl.DataFrame], site: str | None = None
) -> pl.DataFrame:
    """Tidy rows of a subject's texts: what is known of each, then what was measured; null in texts of one key.

    Keys are those of the readout, unless a site is named.

    `measured` gives rows with the text's `place` in the batch and its `keys`.
    """
    labels = subject.task.labels
    facts = pl.DataFrame(
        {
            "place": range(len(subject.examples)),
            "example": [e.id for e in subject.examples],
            "n": [len(e) for e in subject.examples],
            "kind": [subject_kind(subject)] * len(subject.examples),
            "gold": pl.Series([subject.task.gold(e) for e in subject.examples], dtype=pl.String),
            "predicted": [labels[c] for c in subject.predicted.tolist()],
        }
    )
    found = pl.concat([_placed(measured(part), part) for part in open_pooled(subject.model, subject.examples, site)])
    rows = facts.join(found, on="place", maintain_order="left_right")
    said = ("example", "n", "keys", "kind", "gold", "predicted", "scheme")
    known = [name for name in said if name in rows.columns]
    rest = [name for name in rows.columns if name not in (*said, "place")]
    return rows.select(*known, *(pl.when(pl.col("keys") > 1).then(name) for name in rest))


def _placed(found: pl.DataFrame, part: Pooled) -> pl.DataFrame:
    """Places among the subject's texts."""
    members = pl.Series("place", part.members)
    return found.with_columns(place=members.gather(found["place"]))
