"""Another CPU, imitated: what torch computes is a last bit off, another bit in tensors of another shape.

Vector units add in orders of their own and take the end of a row one by one, so a text alone and the same text in a
batch, or a word and its repetition, differ by rounding; how, depends on the CPU. Here every sum, product and
exponential is moved by one unit in the last place or not at all, by a hash of (seed, shape, place): a computation
repeated is the same to the bit, as on a CPU. Numbers that are the same on every CPU (0, 1, 3/8, 1/3) stay.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from exegete.base.noise import stable_seed, uniform

aten = torch.ops.aten
ROUNDED = frozenset({
    aten.mm, aten.addmm, aten.bmm, aten.baddbmm, aten.mv, aten.dot, aten.sum, aten.mean, aten.cumsum, aten.exp,
    aten.tanh, aten.sigmoid, aten._softmax, aten._log_softmax, aten.logsumexp, aten.convolution, aten.native_layer_norm,
    aten.mkldnn_rnn_layer, aten._softmax_backward_data, aten.tanh_backward, aten.sigmoid_backward,
})  # fmt: skip
EXACT = 4096  # its fractions are taken for exact


@cache
def steps(shape: torch.Size, seed: int) -> Tensor:
    """-1, 0 or 1 for every place."""
    places = torch.arange(shape.numel())
    return (uniform(seed, stable_seed(str(tuple(shape))), places) * 3).floor().sub(1).view(shape)


class OtherCPU(TorchDispatchMode):
    """While it lasts, results are rounded as on the CPU of that number."""

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seed = seed

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        return tree_map_only(Tensor, self.rounded, found) if func.overloadpacket in ROUNDED else found

    def rounded(self, exact: Tensor) -> Tensor:
        if not exact.is_floating_point():
            return exact
        moved = exact * (1 + steps(exact.shape, self.seed).to(exact.dtype) * torch.finfo(exact.dtype).eps)
        return torch.where(((exact * EXACT).frac() == 0) | (exact.reciprocal().frac() == 0), exact, moved)
