"""Elsewhere: a second device without a GPU. Tensors there hold numbers, and mixing them with others is refused.

`somewhere_else()` is a context in which the device `meta` computes: what is moved or made there is a wrapper around a
tensor of the CPU. An operation on tensors of both devices raises, as it does with a GPU; exceptions are those of a GPU,
too: a tensor without dimensions, and indices.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

DEVICE = torch.device("meta")
CPU = torch.device("cpu")
MIXING = ("copy_.", "_to_copy.", "index.", "index_put", "_index_put_impl_", "_pack_padded_sequence.")


class There(Tensor):
    """A tensor of the other device."""

    inside: Tensor

    @staticmethod
    def __new__(cls, inside: Tensor) -> "There":
        return Tensor._make_wrapper_subclass(
            cls, inside.shape, strides=inside.stride(), storage_offset=inside.storage_offset(),
            dtype=inside.dtype, device=DEVICE, requires_grad=False,
        )  # fmt: skip

    def __init__(self, inside: Tensor) -> None:
        self.inside = inside

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        del types
        return computed(func, args, dict(kwargs or {}))


def computed(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An operation by the CPU, its result on the device that it belongs to."""
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
    there = [x for x in tensors if isinstance(x, There)]
    wanted = kwargs.get("device")
    assert all(isinstance(x, There) or x.device != DEVICE for x in tensors), f"{func} has a tensor of nothing"
    if there and len(there) < len(tensors) and not _may_mix(func, tensors):
        raise AssertionError(f"{func} mixes devices: {[(tuple(x.shape), x.device) for x in tensors]}")
    to = bool(there) if wanted is None else torch.device(wanted) == DEVICE
    if wanted is not None:
        kwargs["device"] = CPU
    found = func(*tree_map(_bare, args), **tree_map(_bare, kwargs))
    if func._schema.is_mutable and there and isinstance(args[0], There):
        if torch.Tag.inplace_view in func.tags:
            with no_dispatch():
                func(*args, **kwargs)  # the wrapper's own shape
        return args[0]
    if "_pack_padded_sequence.default" in str(func):
        return There(found[0]), found[1]  # sizes of batches are always on the CPU
    return tree_map(lambda x: There(x) if to and isinstance(x, Tensor) else x, found)


def _may_mix(func: Any, tensors: list[Tensor]) -> bool:
    """Copies between devices, indices, and numbers."""
    name = func._schema.name.removeprefix("aten::") + "."
    return name.startswith(MIXING) or all(isinstance(x, There) or x.dim() == 0 for x in tensors)


def _bare(x: Any) -> Any:
    return x.inside if isinstance(x, There) else x


class _Made(TorchDispatchMode):
    """What is made on the other device is made there."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        del types
        return computed(func, args, dict(kwargs or {}))


class _Told(TorchFunctionMode):
    """Lists from tensors and tensors from lists, which torch makes without asking a wrapper."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        del types
        if func is Tensor.tolist and isinstance(args[0], There):
            return args[0].inside.tolist()
        if func in (torch.tensor, torch.as_tensor) and kwargs and torch.device(kwargs.get("device") or CPU) == DEVICE:
            return func(*args, **{**kwargs, "device": CPU}).to(DEVICE)
        if func in (Tensor.__getitem__, Tensor.__setitem__) and isinstance(args[0], There):
            args = (args[0], _index(args[1]), *args[2:])
        return func(*args, **(kwargs or {}))


def _index(at: Any) -> Any:
    """Lists as tensors of the other device: torch makes them of nothing."""
    if isinstance(at, tuple):
        return tuple(map(_index, at))
    return torch.tensor(at).to(DEVICE) if isinstance(at, list) else at


@contextmanager
def somewhere_else() -> Iterator[torch.device]:
    """Inside, the other device computes."""
    with _Told(), _Made():  # type: ignore[no-untyped-call]
        yield DEVICE
