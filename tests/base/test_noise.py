"""Keyed noise: known answers of the hash, uniformity, and independence of batching."""

import torch
from scipy import stats

from exegete.base.noise import keyed_integers, normal, uniform


def splitmix(x: int) -> int:
    """The finaliser of splitmix64, in Python's unbounded integers."""
    mask = (1 << 64) - 1
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def slow(seed: int, *coordinates: int) -> int:
    mask = (1 << 64) - 1
    state = splitmix((seed + 0x9E3779B97F4A7C15) & mask)
    for coordinate in coordinates:
        state = splitmix(((state ^ (coordinate & mask)) + 0x9E3779B97F4A7C15) & mask)
    return state


def test_the_hash_is_splitmix64() -> None:
    for seed, example, key in [(0, 0, 0), (1, 2, 3), (123456789, -1, 2**40)]:
        got = int(keyed_integers(seed, example, key)) & ((1 << 64) - 1)
        assert got == slow(seed, example, key)


def test_draws_are_uniform_and_normal() -> None:
    examples, keys = torch.arange(100)[:, None], torch.arange(100)
    assert stats.kstest(uniform(0, examples, keys).flatten().numpy(), "uniform").pvalue > 0.01
    assert stats.kstest(normal(0, examples, keys).flatten().numpy(), "norm").pvalue > 0.01


def test_draws_depend_on_coordinates_alone() -> None:
    whole = uniform(7, torch.arange(10)[:, None], torch.arange(6))
    part = uniform(7, torch.tensor([3, 8])[:, None], torch.arange(4))
    assert torch.equal(whole[[3, 8], :4], part)
    assert not torch.equal(whole, uniform(8, torch.arange(10)[:, None], torch.arange(6)))
