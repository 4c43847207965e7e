"""The second way to a model's attention: where it bypasses transformers' interface, its softmax is caught.

Inside a module that is known to be an attention, the softmax of a tensor [batch, head, query, key] is that of its
scores; what may not be looked at has scores near the lowest number there is. This is a guess about somebody's code, so
it is only made for architectures that were tried (`architectures`), and every load proves it again (`proof`).
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from exegete.models.huggingface.attention import PieceSoftmax, Weighing, mask_scores


class CatchSoftmax(TorchFunctionMode):
    """Inside, softmaxes of attention modules are ours; `inside` are the modules that run, innermost last."""

    def __init__(self, run: Weighing) -> None:
        super().__init__()
        self.run = run
        self.inside: list[tuple[nn.Module, Tensor]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        more: Mapping[str, Any] = kwargs or {}
        if getattr(func, "__name__", "") != "softmax" or not self.inside:
            return func(*args, **more)
        scores: Tensor = args[0] if args else more["input"]
        return self._weights(scores.to(more.get("dtype") or scores.dtype)) if scores.dim() == 4 else func(*args, **more)

    def _weights(self, scores: Tensor) -> Tensor:
        module, states = self.inside[-1]
        inside = self.inside
        self.inside = []  # our own softmax is not to be caught
        try:
            scores, mask = _mask_of(scores)
            return self.run.weigh(module, scores, mask, PieceSoftmax(), of_keys(states, scores.shape[-1]))
        finally:
            self.inside = inside


def _mask_of(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Scores that are finite, and where they were not near the lowest number."""
    zeros = torch.zeros_like(scores)
    _, allowed = mask_scores(zeros, scores.detach())
    return scores.where(allowed, 0.0), allowed


def of_keys(states: Tensor, keys: int) -> Tensor:
    """[batch, key, size], of a model that has its places last, too."""
    return states if states.shape[1] == keys else states.mT


@contextmanager
def catch_softmax(modules: Mapping[str, nn.Module], run: Weighing) -> Iterator[CatchSoftmax]:
    """Inside, the softmaxes of these modules are the run's sites."""
    mode = CatchSoftmax(run)

    def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = (*args, *kwargs.values())
        states = next((each for each in given if isinstance(each, Tensor) and each.dim() == 3), None)
        if states is not None:  # what has none is a part of an attention, such as its softmax
            mode.inside.append((module, states))

    def leave(module: nn.Module, args: Any, found: Any) -> None:
        del args, found
        if mode.inside and mode.inside[-1][0] is module:
            mode.inside.pop()

    with ExitStack() as stack:
        for module in modules.values():
            for handle in (
                module.register_forward_pre_hook(enter, with_kwargs=True),
                module.register_forward_hook(leave, always_call=True),
            ):
                stack.callback(handle.remove)
        stack.enter_context(mode)
        yield mode
