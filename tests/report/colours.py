"""Contrast (WCAG 2.2) and colour vision deficiency (Machado, Oliveira & Fernandes 2009, severity 1), as published."""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

DEFICIENCIES = {
    "none": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
# Ottosson's Oklab (2020): distances there are about what people see.
_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_LAB = np.array(
    [
        [0.2104542553, 0.793617785, -0.0040720468],
        [1.9779984951, -2.428592205, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.808675766],
    ]
)


def linear(colour: str) -> NDArray[np.float64]:
    """Light of a hex colour."""
    channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """1 to 21."""
    dark, light = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (light + 0.05) / (dark + 0.05)


def nearest(colours: tuple[str, ...], deficiency: str) -> float:
    """The smallest distance of two colours to a reader with that deficiency."""
    seen = [
        _LAB @ np.cbrt(_CONES @ np.clip(np.array(DEFICIENCIES[deficiency]) @ linear(colour), 0, 1))
        for colour in colours
    ]
    return min(float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2))
