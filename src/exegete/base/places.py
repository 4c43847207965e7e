"""Places: numbers along an axis of a tensor, made where the tensor is."""

import torch
from torch import Tensor


def places(tensor: Tensor, axis: int = -1) -> Tensor:
    """0, 1, …, one for every place along an axis: what picks a row of each, on any device."""
    return torch.arange(tensor.shape[axis], device=tensor.device)
