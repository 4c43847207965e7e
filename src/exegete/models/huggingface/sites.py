"""Sites: where a model of transformers computes attention, found and named by one run.

Names are `encoder.0`, `encoder.1`, … where words look both ways, `decoder.…` where they look back only, `cross.…` where
one text looks at another. A module knows neither its number nor its kind in every architecture, so one short text is
run and the calls are counted: afterwards a module is known by its path, whoever runs which part of the model.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from exegete.base.errors import UsageError
from exegete.base.pauses import pause
from exegete.models.huggingface.architectures import ARCHITECTURES, architecture_refusal
from exegete.models.huggingface.attention import (
    CROSS,
    NAME,
    AttentionInputs,
    AttentionPass,
    PieceSoftmax,
    active,
    embedding_swapped,
    switch_attention,
)
from exegete.models.huggingface.softmax import catch_softmax
from exegete.models.ours.self_attention import AttentionHook

Inputs = Mapping[str, Any]  # what a model is called with
ACROSS = ("encoder_attn", "encdecattention", "crossattention")  # modules between texts, also of equal length


class Access(NamedTuple):
    """How a model's attention is reached, and its sites."""

    way: Literal["interface", "softmax"]
    sites: tuple[str, ...]  # in the order of being computed
    names: dict[str, tuple[str, ...]]  # by path of a module: one site, or several where layers share it


class _Probe:
    """Who computes attention, in which order, and of which kind."""

    def __init__(self) -> None:
        self.met: list[tuple[nn.Module, str]] = []

    def seen(self, module: nn.Module, look: AttentionInputs) -> AttentionInputs:
        """As it is."""
        del module
        return look

    def weigh(self, module: nn.Module, scores: Tensor, mask: Tensor, project: PieceSoftmax, states: Tensor) -> Tensor:
        """Note the call, and go on with its own weights."""
        del states
        self.met.append((module, _kind(scores, mask)))
        weights: Tensor = project(scores, mask)
        return weights


def _kind(scores: Tensor, mask: Tensor) -> str:
    """By what a query may see; the probe's texts are longer than one word, and two texts differ in length."""
    if scores.shape[-2] != scores.shape[-1]:
        return CROSS.rstrip(".")
    sees_next = bool(mask.expand_as(scores)[0, 0, 0, 1])
    return "encoder" if sees_next else "decoder"


def probe_sites(base: nn.Module, inputs: Inputs) -> Access:
    """Run a text of several pieces, without padding, and name what attends; refuse a model where nothing does."""
    model_type = str(getattr(getattr(base, "config", None), "model_type", "")) or type(base).__name__
    if (reason := architecture_refusal(model_type)) is not None:
        raise UsageError(f"the attention of {model_type} can't be read, which {reason}: {_others()}")
    probe = _Probe()
    with torch.no_grad(), active(probe), switch_attention(base):
        base(**inputs)
    if probe.met:
        return _named("interface", base, probe)
    if model_type in ARCHITECTURES and ARCHITECTURES[model_type].way == "softmax":
        everything = dict(base.named_modules())
        with torch.no_grad(), switch_attention(base, "eager"), catch_softmax(everything, probe):
            base(**inputs)
    if not probe.met:
        raise UsageError(
            f"the attention of {model_type} can't be read: it passes by transformers' attention interface, or nothing "
            f"attends in it: {_others()}"
        )
    return _named("softmax", base, probe)


def _others() -> str:
    return "choose a model of another architecture (exegete ls architectures)"


def _named(way: Literal["interface", "softmax"], base: nn.Module, probe: _Probe) -> Access:
    paths = {id(module): path for path, module in base.named_modules()}
    names: dict[str, tuple[str, ...]] = {}
    count: Counter[str] = Counter()
    sites = []
    for module, seen in probe.met:
        path = paths[id(module)]
        kind = "cross" if path.rpartition(".")[2].lower() in ACROSS else seen
        site = f"{kind}.{count[kind]}"
        count[kind] += 1
        sites.append(site)
        names[path] = (*names.get(path, ()), site)
    return Access(way, tuple(sites), names)


@contextmanager
def reading(
    base: nn.Module,
    access: Access,
    at: Callable[[str], AttentionHook | None] = lambda name: None,  # noqa: ARG005
    keep: Collection[str] | None = None,
    vectors: Tensor | None = None,
) -> Iterator[AttentionPass]:
    """Inside, one pass of the model is a run: `at` gives the hook of a site, `vectors` stand for its embeddings.

    Everything that is changed in the model is undone, also after an exception.
    """
    pause()
    modules = {path: base.get_submodule(path) for path in access.names}
    run = AttentionPass({id(module): access.names[path] for path, module in modules.items()}, at, keep)
    with ExitStack() as stack:
        stack.enter_context(switch_attention(base, NAME if access.way == "interface" else "eager"))  # first: it locks
        stack.enter_context(embedding_swapped(base, vectors))
        stack.enter_context(active(run) if access.way == "interface" else catch_softmax(modules, run))
        yield run
    run.finished()
