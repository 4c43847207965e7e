"""Attention of transformers' models, as one function: its weights are seen, kept and rewritten before they are used.

    weights = softmax(cap(scaling · Q Kᵀ) + bias),  out = dropout(weights) V

with what architectures differ in: keys that several heads share (repeated), a cap on scores (c · tanh(s / c)), a bias
of positions, and sinks, a further score per head that takes part in the softmax and has no value: rows then sum to less
than 1, and the missing weight is never given back. What is kept is before dropout.

A mask is never skipped: transformers leaves it out where its own kernels can do without, and under a name that it
doesn't know it leaves it out silently, causality included.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout as dropped

from exegete.base.errors import UsageError
from exegete.models.ours.self_attention import AttentionHook
from exegete.models.projections import Projection

NAME = "exegete"  # under which transformers knows our attention; it can't be taken back, and nothing else stays
CROSS = "cross."  # sites at which another text is looked at: a query is no key there


class PieceSoftmax(Projection):
    """Softmax over the keys of a mask, in float32 at least; with sinks [head], which take weight and give nothing."""

    def __init__(self, sinks: Tensor | None = None) -> None:
        super().__init__()
        self.sinks = sinks

    def forward(self, scores: Tensor, mask: Tensor) -> Tensor:
        """0 outside the mask, also where nothing is inside it."""
        outside = ~mask  # as small as it comes: heads have one mask in common
        low = scores.masked_fill(outside, torch.finfo(scores.dtype).min)
        if self.sinks is not None:
            low = torch.cat([low, self.sinks.to(low.dtype)[None, :, None, None].expand(*low.shape[:-1], 1)], -1)
        precision = torch.promote_types(low.dtype, torch.float32)
        weights = low.softmax(-1, dtype=precision).to(scores.dtype)[..., : scores.shape[-1]]
        return _filled(weights, outside)

    def spending(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Softmax, to the last bit, in the place of the scores, which are gone afterwards.

        Fresh memory takes longer than the softmax of short texts. The exponential of the lowest number is exactly 0,
        so that only rows without any key are left to be emptied.
        """
        narrow = torch.promote_types(scores.dtype, torch.float32) != scores.dtype
        if scores.requires_grad or narrow or self.sinks is not None:
            weights: Tensor = self(scores, mask)
            return weights
        low = torch.zeros_like(mask, dtype=scores.dtype).masked_fill_(~mask, torch.finfo(scores.dtype).min)
        torch.softmax(scores.add_(low), -1, out=scores)
        some = mask.any(-1, keepdim=True)
        return scores if some.all() else scores.mul_(some)


def _filled(weights: Tensor, outside: Tensor) -> Tensor:
    """0 outside; in place where nobody will ask for a gradient, since another copy is slower than the softmax."""
    return weights.masked_fill(outside, 0.0) if weights.requires_grad else weights.masked_fill_(outside, 0.0)


class AttentionInputs(NamedTuple):
    """All that the output of an attention is made of."""

    scores: Tensor  # [batch, head, query, key]
    mask: Tensor  # the same, or as many as go round
    project: PieceSoftmax
    value: Tensor  # [batch, head, key, d]


@dataclass
class AttentionPass:
    """One pass: which site is which, what is done there, and what is kept of it."""

    names: Mapping[int, tuple[str, ...]]  # id(module) -> its sites, in the order of its calls
    at: Callable[[str], AttentionHook | None] = lambda name: None  # noqa: ARG005
    keep: Collection[str] | None = None  # None: all
    weights: dict[str, Tensor] = field(default_factory=dict)  # by site: [batch, head, query, key], of pieces
    states: dict[str, Tensor] = field(default_factory=dict)  # by site: [batch, key, size], what the weights multiply
    calls: Counter[int] = field(default_factory=Counter)  # by id(module)
    look: Callable[[str, AttentionInputs], AttentionInputs] = lambda name, look: look  # noqa: ARG005  # what is looked at instead at a site

    def seen(self, module: nn.Module, look: AttentionInputs) -> AttentionInputs:
        """What is looked at where a module attends now."""
        return self.look(self.names[id(module)][self.calls[id(module)]], look)

    def weigh(self, module: nn.Module, scores: Tensor, mask: Tensor, project: PieceSoftmax, states: Tensor) -> Tensor:
        """The weights to go on with at the site that a module computes now; the scores are spent."""
        name = self.site(module)
        mask = real_queries(mask, scores, name)
        hook = self.at(name)
        weights: Tensor = project.spending(scores, mask) if hook is None else project(scores, mask)
        if hook is not None:
            weights = hook(scores, weights, mask, project)
        if self.keep is None or name in self.keep:
            self.weights[name], self.states[name] = weights, states
        return weights

    def site(self, module: nn.Module) -> str:
        """Its name. A module that layers share (ALBERT) is called once for each, and `finished` checks that."""
        number = self.calls[id(module)]
        self.calls[id(module)] += 1
        return self.names[id(module)][number]

    def finished(self) -> None:
        """Every site was met once: else names were given to the wrong places."""
        expected = {module: len(names) for module, names in self.names.items()}
        if dict(self.calls) != expected:
            raise RuntimeError(f"attention was computed {dict(self.calls)} times and should be {expected} times")


class Weighing(Protocol):
    """What is done with the scores of an attention: a `AttentionPass`, or the probe that finds out about names."""

    def seen(self, module: nn.Module, look: AttentionInputs) -> AttentionInputs:
        """What is looked at, or what is to be looked at instead."""

    def weigh(self, module: nn.Module, scores: Tensor, mask: Tensor, project: PieceSoftmax, states: Tensor) -> Tensor:
        """The weights to go on with; the scores may be spent."""


_run: ContextVar[Weighing | None] = ContextVar("exegete_run", default=None)
one_at_a_time = RLock()  # what is switched, swapped or hooked in a model while it runs belongs to one thread


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **more: Any,
) -> tuple[Tensor, Tensor]:
    """What transformers calls: query [batch, head, query, d], key and value [batch, head or fewer, key, d]."""
    run = _run.get()
    if run is None:
        raise RuntimeError("this model's attention is read by exegete: run it inside `reading`")
    shared = query.shape[1] // key.shape[1]
    if shared > 1:
        key, value = key.repeat_interleave(shared, 1), value.repeat_interleave(shared, 1)
    scores = _scaled(query @ key.mT, query.shape[-1] ** -0.5 if scaling is None else scaling)
    scores, mask = mask_scores(_capped_and_placed(scores, more), attention_mask)
    look = run.seen(module, AttentionInputs(scores, mask, PieceSoftmax(more.get("s_aux")), value))
    weights = run.weigh(module, look.scores, look.mask, look.project, look.value.transpose(1, 2).flatten(2))
    mixed = dropped(weights, dropout, module.training) @ look.value
    return mixed.transpose(1, 2).contiguous(), weights


def _scaled(scores: Tensor, by: float) -> Tensor:
    """In place where nobody will ask for a gradient: no fresh memory."""
    return scores * by if scores.requires_grad else scores.mul_(by)


def _capped_and_placed(scores: Tensor, more: Mapping[str, Any]) -> Tensor:
    cap, bias = more.get("softcap"), more.get("position_bias")
    if cap is not None:
        scores = (scores / cap).tanh() * cap
    return scores if bias is None else scores + bias


def mask_scores(scores: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Scores, and where a query may look: a mask that is added may hold finite numbers, too, which are scores."""
    if mask is None:
        return scores, scores.new_ones((1, 1, *scores.shape[-2:]), dtype=torch.bool)
    if mask.dtype == torch.bool:
        return scores, mask
    allowed = mask > torch.finfo(mask.dtype).min / 2
    return scores + mask.where(allowed, 0.0), allowed


def real_queries(mask: Tensor, scores: Tensor, name: str) -> Tensor:
    """A mask without queries that are padding: among tokens of one text, those that nobody may look at."""
    if name.startswith(CROSS) or scores.shape[-2] != scores.shape[-1]:
        return mask
    square = mask.expand(*mask.shape[:2], *scores.shape[-2:])
    return square & square.diagonal(dim1=-2, dim2=-1)[..., None]


def _whole_mask(*arguments: Any, **more: Any) -> Tensor | None:
    """transformers' mask of booleans, never skipped."""
    from transformers.masking_utils import sdpa_mask

    never = {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
    mask: Tensor | None = sdpa_mask(*arguments, **(more | never))
    return mask


def register() -> None:
    """Make our attention and its mask known to transformers, once per process."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, _whole_mask)


@contextmanager
def active(run: Weighing) -> Iterator[None]:
    """Inside, this is the run that `attend` belongs to."""
    token = _run.set(run)
    try:
        yield
    finally:
        _run.reset(token)


@contextmanager
def switch_attention(base: nn.Module, name: str = NAME) -> Iterator[None]:
    """Inside, a model that uses transformers' interface calls the attention of this name; afterwards its own again."""
    register()
    configs: dict[int, Any] = {id(part.config): part.config for part in base.modules() if hasattr(part, "config")}
    with one_at_a_time:
        before = {key: config._attn_implementation for key, config in configs.items()}
        try:
            for config in configs.values():
                config._attn_implementation = name
            yield
        finally:
            for key, config in configs.items():
                config._attn_implementation = before[key]


def input_embeddings(base: Any) -> nn.Embedding:
    """The table that the words of the input are looked up in: of two stacks, the encoder's own."""
    stack = base.get_encoder() if base.config.is_encoder_decoder else base
    try:
        table = stack.get_input_embeddings()
    except (AttributeError, NotImplementedError):
        table = None
    if not isinstance(table, nn.Embedding):
        raise UsageError(
            f"{type(base).__name__} doesn't say which table its words are looked up in: let its get_input_embeddings() "
            "return that nn.Embedding"
        )
    return table


@contextmanager
def embedding_swapped(base: Any, vectors: Tensor | None) -> Iterator[None]:
    """Inside, the first look-up of word embeddings gives these vectors [batch, piece, size] instead."""
    if vectors is None:
        yield
        return
    waiting = [vectors]

    def swap(module: nn.Module, arguments: Any, found: Tensor) -> Tensor:
        del module, arguments
        return waiting.pop().to(found.dtype) if waiting else found

    handle = input_embeddings(base).register_forward_hook(swap)
    try:
        yield
    finally:
        handle.remove()
