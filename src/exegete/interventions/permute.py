"""Permute: the same weights on other words (Jain & Wallace 2019, section 4.2)."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from exegete.base.noise import keyed_integers, stable_seed
from exegete.base.places import places
from exegete.interventions.contract import Drawn, integers, mask_of, number_keys
from exegete.models.contract import Site

ROOM = 1 << 17  # weights shuffled at a time: what fits a cache is hashed and sorted fastest
LAST = torch.iinfo(torch.int64).max


@dataclass(frozen=True)
class Permute(Drawn):
    """Every row of attention shuffled over its real keys."""

    def rewritten(self, site: Site) -> Tensor:
        """Every head and query in an order of its own."""
        return shuffle(site.weights, mask_of(site), integers(site, stable_seed("permute", self.seed)))


def permuted(weights: Tensor, mask: Tensor, ids: Tensor, seed: int, draws: int) -> Tensor:
    """Many random orders of every row: weights and mask [batch, key], ids [batch] -> [batch, draw, key].

    Draw d of a text depends on (seed, text, d) alone: not on its batch, on padding, or on how many draws there are.
    """
    batch, keys = weights.shape
    found = weights.new_zeros(batch, draws, keys)
    real = mask.any(0).nonzero()[:, 0].tolist()
    if not real:
        return found
    used = slice(real[0], real[-1] + 1)  # wrappers and common padding need no sorting
    key, draw = stable_seed("permuted", seed), torch.arange(draws, device=ids.device).view(1, -1, 1)
    step = max(1, ROOM // max(1, draws * keys))
    for some in (slice(start, start + step) for start in range(0, batch, step)):
        own = mask[some, None, used]  # [some, 1, key]
        noise = keyed_integers(key, ids[some].view(-1, 1, 1), draw, number_keys(own))  # [some, draw, key]
        found[some, :, used] = shuffle(weights[some, None, used], own, noise)
    return found


def permuted_together(weights: Tensor, mask: Tensor, ids: Tensor, seed: int, draws: int) -> Tensor:
    """Random orders of rows, one for all heads of a text: weights [batch, head, key] -> [batch, draw, head, key]."""
    if weights.shape[1] == 1:
        return permuted(weights[:, 0], mask, ids, seed, draws)[:, :, None]
    order = permuted(places(mask).expand(mask.shape), mask, ids, seed, draws)[:, :, None]
    moved = weights[:, None].expand(-1, draws, -1, -1).gather(-1, order.expand(-1, -1, weights.shape[1], -1))
    return moved.masked_fill(~mask[:, None, None], 0.0)


def shuffle(weights: Tensor, mask: Tensor, noise: Tensor) -> Tensor:
    """Weights in the order of keyed integers [..., key], over the real keys alone; the rest is 0.

    The place of a key is written into the last bits of its integer. So no two are equal, and sorting the integers
    themselves (which is several times as fast as sorting places by them) sorts the places too.
    """
    keys = noise.shape[-1]
    low = (1 << (keys - 1).bit_length()) - 1
    marked = (noise & ~low) | places(noise)
    if bool(mask.all()):
        return weights.expand_as(noise).gather(-1, _sorted(marked) & low)
    order = (_sorted(marked.masked_fill(~mask, LAST)) & low).clamp(
        max=keys - 1
    )  # real keys in random order, then others
    rank = (number_keys(mask) - 1).clamp(min=0).expand_as(noise)  # the j-th real key gets the j-th of that order
    return weights.expand_as(noise).gather(-1, order.gather(-1, rank)).masked_fill(~mask, 0.0)


def _sorted(numbers: Tensor) -> Tensor:
    """NumPy sorts integers with vector instructions: three times as fast as torch on a CPU."""
    if numbers.device.type != "cpu":
        return numbers.sort(-1).values
    return torch.from_numpy(np.sort(numbers.numpy(), axis=-1))
