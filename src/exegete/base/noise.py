"""Keyed noise: random numbers that depend on what they are for, never on when or where they are drawn.

A draw is an integer hash of (seed, coordinates), for instance (seed, example, site, draw, head, query, key). So a
permutation of an example's weights is the same alone, in a batch, in another batch, in another process, and with other
padding.
"""

import math

import torch
from torch import Tensor

# splitmix64 (Steele, Lea & Flood 2014), in the wrapping arithmetic of int64.
_GOLDEN = -7046029254386353131  # 0x9E3779B97F4A7C15
_MIX_1 = -4658895280553007687  # 0xBF58476D1CE4E5B9
_MIX_2 = -7723592293110705685  # 0x94D049BB133111EB


def _shift(x: Tensor, bits: int) -> Tensor:
    """x >> bits without the sign's ones (int64 has no logical shift in torch)."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _mix(x: Tensor) -> Tensor:
    x = (x ^ _shift(x, 30)) * _MIX_1
    x = (x ^ _shift(x, 27)) * _MIX_2
    return x ^ _shift(x, 31)


def keyed_integers(seed: int, *coordinates: Tensor | int) -> Tensor:
    """One int64 hash for every place of the broadcast coordinates."""
    device = next((each.device for each in coordinates if isinstance(each, Tensor)), None)
    state = _mix(torch.tensor(seed, dtype=torch.int64, device=device) + _GOLDEN)
    for coordinate in coordinates:
        state = _mix((state ^ torch.as_tensor(coordinate, dtype=torch.int64, device=device)) + _GOLDEN)
    return state


def uniform(seed: int, *coordinates: Tensor | int) -> Tensor:
    """Uniform float64 numbers in the open interval (0, 1), one for every place of the broadcast coordinates."""
    return (_shift(keyed_integers(seed, *coordinates), 11).double() + 0.5) / float(1 << 53)


def normal(seed: int, *coordinates: Tensor | int) -> Tensor:
    """Standard normal float64 numbers: the inverse distribution function of keyed uniform ones."""
    return torch.erfinv(2 * uniform(seed, *coordinates) - 1) * math.sqrt(2)


def stable_seed(*parts: object) -> int:
    """A 32-bit seed from any printable parts, the same in every process (Python's own hash is salted)."""
    import hashlib

    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:4], "little")
