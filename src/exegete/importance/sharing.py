"""Sharing: inside a block, what several importances need of a model is computed once."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from torch import nn

from exegete.models.contract import Predictor


class _KeptOf(NamedTuple):
    model: Predictor  # held on to: its identity is a key
    found: dict[str, Any]  # by who found it


_shared: ContextVar[dict[tuple[object, ...], _KeptOf] | None] = ContextVar("shared", default=None)


@contextmanager
def sharing() -> Iterator[None]:
    """Inside, an erased text and a derivative are run once for all callers; all are let go at the end.

    Inner blocks join it. Memory grows with the number of different texts in a block: open one per batch.
    """
    if _shared.get() is not None:
        yield
        return
    before = _shared.set({})
    try:
        yield
    finally:
        _shared.reset(before)


def shared_store(model: Predictor) -> dict[str, Any] | None:
    """What this block keeps of a model, or None outside of one; a model whose weights have changed is another."""
    shared = _shared.get()
    if shared is None:
        return None
    state = [*model.parameters(), *model.buffers()] if isinstance(model, nn.Module) else []
    identity = (id(model), *((tensor.data_ptr(), tensor._version) for tensor in state))
    return shared.setdefault(identity, _KeptOf(model, {})).found
