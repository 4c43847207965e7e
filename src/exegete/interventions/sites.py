"""Sites where an intervention acts: every site, a group of layers, one layer, a window of layers, and which head.

    every         all sites
    encoder       every layer of a group
    encoder.2     one layer
    encoder.2-4   a window: layers 2, 3 and 4
    encoder.-4    from the first layer up to layer 4
    encoder.4-    from layer 4 up to the last

Layers are counted from 0, as sites are named. The last two are the order of Vashishth et al. (2019, figure 4), from
either end. Heads are counted from 0, too.
"""

import re
from collections.abc import Collection, Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from exegete.base.errors import UsageError, unknown
from exegete.models.contract import Site

EVERY = "every"
_LAYER = re.compile(r"(?P<group>.+)\.(?P<number>\d+)")
_WINDOW = re.compile(r"(?P<group>.+)\.(?=.*\d)(?P<low>\d*)-(?P<high>\d*)")


class Head(NamedTuple):
    """One head of one site."""

    site: str
    head: int  # from 0

    def __str__(self) -> str:
        return f"{self.site}/{self.head}"


@cache
def meant(where: str, site: str) -> bool:
    """Whether a site is one of those that are written.

    >>> [meant(where, "encoder.2") for where in ("every", "encoder", "encoder.2", "encoder.-1", "encoder.1-", "cross")]
    [True, True, True, False, True, False]
    """
    group, number = layer_of(site)
    if where in (EVERY, site, group):
        return True
    window = _WINDOW.fullmatch(where)
    if window is None or number is None or window["group"] != group:
        return False
    return int(window["low"] or 0) <= number <= (int(window["high"]) if window["high"] else number)


def choose_sites(where: str, sites: Sequence[str]) -> tuple[str, ...]:
    """The sites of a model that are written; what it doesn't have is refused."""
    window = None if where in sites else _WINDOW.fullmatch(where)
    if window is not None:
        _check_window(where, window["group"], [window[end] for end in ("low", "high") if window[end]], sites)
    found = tuple(site for site in sites if meant(where, site))
    if not found:
        raise unknown("site", where, (*sites, *(group for group in group_sites(sites) if group not in sites), EVERY))
    return found


def _check_window(where: str, group: str, ends: list[str], sites: Sequence[str]) -> None:
    """A window lies within its group, the lower end first."""
    own = group_sites(sites).get(group)
    if own is None or layer_of(own[0])[1] is None:
        raise unknown(
            f"group of layers in site '{where}'", group, [g for g, o in group_sites(sites).items() if len(o) > 1]
        )
    numbers = [layer_of(site)[1] for site in own]
    for end in ends:
        if int(end) not in numbers:
            raise UsageError(f"site '{where}': there is no layer {end}; {group} has layers {own[0]} to {own[-1]}")
    if len(ends) == 2 and int(ends[0]) > int(ends[1]):
        raise UsageError(f"site '{where}': a window has its lower end first, as {group}.{ends[1]}-{ends[0]}")


def layer_of(site: str) -> tuple[str, int | None]:
    """The group of a site and its number in it, if it has one.

    >>> layer_of("encoder.2"), layer_of("attention")
    (('encoder', 2), ('attention', None))
    """
    layer = _LAYER.fullmatch(site)
    return (layer["group"], int(layer["number"])) if layer else (site, None)


def group_sites(sites: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Sites by what comes before the number of their layer, from the first layer up.

    >>> group_sites(["encoder.0", "encoder.1", "attention"])
    {'encoder': ('encoder.0', 'encoder.1'), 'attention': ('attention',)}
    """
    found: dict[str, list[str]] = {}
    for site in sites:
        found.setdefault(layer_of(site)[0], []).append(site)
    return {group: tuple(own) for group, own in found.items()}


def in_heads(rewritten: Tensor, site: Site, heads: Collection[int]) -> Tensor:
    """New weights in some heads of a site, its own in all others; a head that it doesn't have is refused."""
    count = site.weights.shape[1]
    for head in heads:
        if not 0 <= head < count:
            there = "only head 0" if count == 1 else f"heads 0 to {count - 1}"
            raise UsageError(f"there is no head {head} at site '{site.name}': it has {there}")
    here = torch.zeros(count, dtype=torch.bool, device=rewritten.device)
    here[list(heads)] = True
    return torch.where(here[:, None, None], rewritten, site.weights)
