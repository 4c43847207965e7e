"""Decomposition: a layer of transformers' models as a sum over the words below it, by leaving each of them out.

A text runs as many copies side by side: one as it is, one without any word, one without each. Before every layer all
copies are set back to the first, so that one pass shows what leaving a word out does in every layer by itself. A word
is left out by setting its column of weights to 0 (the same as its value vectors in every head) and, where a state also
gives itself, its state below. Weights are those of the first copy, and so is what norms divide by where a sum is asked
for. Then a state is a linear function of what words give, which `why_not` checks, and nothing has to be known of values
and output maps.

What comes after the attention is found, not known: the first linear map is its output; it is added to the state below
and goes into a norm. If the layer ends in a norm, that one comes after the sum and belongs to the block (BERT), else
before the feed-forward layer (GPT-2, LLaMA). Layers that do otherwise are refused.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.overrides import TorchFunctionMode

from exegete.models.huggingface.parameters import layers_of
from exegete.models.huggingface.sites import reading
from exegete.models.huggingface.word_pieces import PROBES
from exegete.models.ours.self_attention import AttentionHook
from exegete.models.projections import Projection
from exegete.models.separable import Apart, Copies, Mixed
from exegete.models.spelling import SpelledRows
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example

if TYPE_CHECKING:
    from exegete.models.huggingface.model import HuggingFace

PIECES = 4096  # of all copies of a pass together
CLOSE = 1e-3  # relative: single precision, through a layer
MAPS = ("Linear", "Conv1D", "Conv1d")


class _Event(NamedTuple):
    """What a part of a layer computed after its attention."""

    kind: Literal["map", "norm"]
    given: Tensor
    found: Tensor


@dataclass
class _Layer:
    """One layer of one pass."""

    below: Tensor  # [copy, piece, size]
    attended: bool = False
    events: list[_Event] = field(default_factory=list)
    above: Tensor | None = None

    @property
    def mixed(self) -> Tensor | None:
        """The output of the attention."""
        return next((event.found for event in self.events if event.kind == "map"), None)

    @property
    def block(self) -> Tensor | None:
        """The sum of the attention's output and the state below, normed where the norm comes after; None: no such."""
        norm = next((event for event in self.events if event.kind == "norm"), None)
        if norm is None or self.mixed is None or self.mixed.shape != self.below.shape:
            return None
        if not torch.allclose(norm.given[0], self.below[0] + self.mixed[0], rtol=CLOSE, atol=CLOSE):
            return None
        return norm.found if self.events[-1].kind == "norm" else norm.given

    def at(self, place: Apart) -> Tensor | None:
        """The states that are looked at."""
        return {"attention": self.mixed, "block": self.block}.get(place, self.above)


class _Still(TorchFunctionMode):
    """Inside, norms divide the states of all copies by what they divide those of the first by."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        more, name = kwargs or {}, getattr(func, "__name__", "")
        if name == "layer_norm":
            return _normed(*args, **more)
        if name == "rsqrt" or (name == "pow" and isinstance(args[1], float) and args[1] < 0):
            return func(args[0][:1], *args[1:], **more).expand_as(args[0])
        return func(*args, **more)


def _normed(x: Tensor, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, *more: Any) -> Tensor:
    del more
    dims = tuple(range(-len(shape), 0))
    y = (x - x.mean(dims, keepdim=True)) * (x[:1].var(dims, unbiased=False, keepdim=True) + eps).rsqrt()
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


@dataclass(frozen=True)
class _Pass:
    """Copies of one text: `gone` [copy, piece] says what is left out of each; nothing of the first."""

    model: "HuggingFace"
    gone: Tensor
    at: Apart

    def run(self, batch: Batch, pieces: SpelledRows) -> list[_Layer]:
        """Every layer of the model, from the words up."""
        layers: list[_Layer] = []
        with ExitStack() as stack:
            if self.at in ("block", "layer"):
                stack.enter_context(_Still())
            stack.enter_context(self._watched(layers))
            stack.enter_context(reading(self.model.base, self.model.access, self._weights(layers), ()))
            self.model.base(**self.model.inputs(pieces, batch))
        return layers

    def _weights(self, layers: list[_Layer]) -> Callable[[str], AttentionHook]:
        def hook(scores: Tensor, weights: Tensor, mask: Tensor, project: Projection) -> Tensor:
            del scores, mask, project
            if layers:
                layers[-1].attended = True
            return weights[:1] * ~self.gone[:, None, None]

        return lambda name: hook  # noqa: ARG005

    @contextmanager
    def _watched(self, layers: list[_Layer]) -> Iterator[None]:
        """Hooks on layers, their norms and their linear maps."""

        def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            del module
            given = (*args, *kwargs.values())
            place, states = next((i, x) for i, x in enumerate(given) if isinstance(x, Tensor) and x.dim() == 3)
            layers.append(_Layer(states))
            if states.shape[1] == self.gone.shape[1]:
                first = states[:1].expand_as(states)
                own = self.at in ("block", "layer")
                states = first.masked_fill(self.gone[..., None], 0.0) if own else first.clone()
            new = [*given[:place], states, *given[place + 1 :]]
            return tuple(new[: len(args)]), dict(zip(kwargs, new[len(args) :], strict=True))

        def leave(module: nn.Module, args: Any, found: Any) -> None:
            del module, args
            layers[-1].above = found if isinstance(found, Tensor) else found[0]

        def inside(module: nn.Module, args: Any, found: Any) -> Any:
            if not layers or not layers[-1].attended or not args or not isinstance(found, Tensor):
                return None
            kind: Literal["map", "norm"] = "map" if type(module).__name__ in MAPS else "norm"
            normed = any(event.kind == "norm" for event in layers[-1].events)
            layers[-1].events.append(_Event(kind, args[0], found))
            skipped = self.at == "layer" and kind == "map" and normed  # of the feed-forward layer
            return found[:1].expand_as(found) if skipped else None

        with ExitStack() as stack:
            for path in layers_of(self.model.access):
                layer = self.model.base.get_submodule(path)
                stack.callback(layer.register_forward_pre_hook(enter, with_kwargs=True).remove)
                stack.callback(layer.register_forward_hook(leave).remove)
                for part in layer.modules():
                    if type(part).__name__ in MAPS or "norm" in type(part).__name__.lower():
                        stack.callback(part.register_forward_hook(inside).remove)
            yield


@torch.no_grad()
def decompose_layers(model: "HuggingFace", batch: Batch, at: Apart, compare: Callable[[Copies], Tensor]) -> Mixed:
    """Text by text, as many copies at a time as a pass holds."""
    width = batch.tokens.shape[1]
    found, passes = [], []
    for row in range(len(batch.ids)):
        end = int(batch.present[row].nonzero().max()) + 1
        copies = _Text(model, batch.rows(torch.tensor([row], device=batch.ids.device), end), at)
        rest = width - end
        found.append(pad(copies.compared(compare), (0, rest, 0, rest)))
        passes.append(copies.passes)
    return Mixed(torch.stack(found, 1), torch.tensor(passes, device=batch.ids.device))


@dataclass
class _Text:
    """One text, in a batch of its own."""

    model: "HuggingFace"
    batch: Batch
    at: Apart
    passes: int = 0

    def compared(self, compare: Callable[[Copies], Tensor]) -> Tensor:
        """[layer, word, word]: the mean over the query pieces of a word."""
        parts = []
        pieces = self.model.pieces(self.batch)
        words = torch.arange(self.batch.tokens.shape[1], device=pieces.word.device)
        for some in words.split(max(1, PIECES // pieces.word.shape[1] - 2)):
            layers = self.copies(some)
            parts.append(torch.stack([compare(each) for each in layers]))  # [layer, source, piece]
        owed = torch.cat(parts, 1).double()
        return (owed @ pieces.shares[0].double()).mT

    def copies(self, words: Tensor) -> list[Copies]:
        """Of every layer, without each of some words."""
        rows = torch.zeros(len(words) + 2, dtype=torch.int64, device=words.device)
        batch = self.batch.rows(rows, self.batch.tokens.shape[1])
        pieces = self.model.pieces(batch)
        gone = torch.zeros_like(pieces.real)
        gone[1], gone[2:] = True, pieces.word[2:] == words[:, None]
        self.passes += len(rows)
        states = [layer.at(self.at) for layer in _Pass(self.model, gone, self.at).run(batch, pieces)]
        return [Copies(each[:1], each[2:], each[1:2]) for each in states if each is not None]


@torch.no_grad()
def why_not(model: "HuggingFace", at: Apart) -> str | None:
    """Try it on a text: why a model can't be taken apart, as the rest of a sentence about it; None if it can."""
    if len(model.access.sites) != len(set(layers_of(model.access))) and len(model.access.names) > 1:
        return "whose layers attend more than once"
    if set(layers_of(model.access)) & set(model.access.names):
        return "whose layers are no modules of their own"
    text = _Text(model, model.collate([Example(0, (tuple(PROBES[0].split()),), 0)]), at)
    layers = text.copies(torch.arange(text.batch.tokens.shape[1]))
    if len(layers) != len(model.access.sites):
        return "whose layers add, norm and feed forward in an order of their own"
    linear = all(_sums(each) for each in layers)
    return None if at == "values" or linear else "whose layers are no sum over words"


def _sums(copies: Copies) -> bool:
    """Whether what words give, and what stays without any, sum to the state."""
    whole, without, nothing = copies
    total = (whole - without).sum(0, keepdim=True) + nothing
    return torch.allclose(total, whole, rtol=CLOSE, atol=CLOSE * float(whole.abs().max()))
