"""Splits and subsamples by hash of the text: the same in every process, and equal texts land in one split."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import TypeVar

T = TypeVar("T")

SPLITS = ("train", "dev", "test")
CARVED = 0.1  # the share of the training texts that one missing split gets
PROPORTIONS = {"train": 0.8, "dev": 0.1, "test": 0.1}


def place(texts: Sequence[str], seed: int = 0) -> float:
    """Where an example falls in [0, 1): a hash of its texts, white space collapsed, whatever tokenizer follows."""
    content = "\n".join(" ".join(text.split()) for text in texts)
    digest = hashlib.sha256(f"{seed}\n{content}".encode("utf-8", "surrogatepass")).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / (
        1 << 53
    )  # 53 bits: what a float holds exactly, so 1.0 is never reached


def by_place(
    items: Sequence[T], of: Callable[[T], float], proportions: Mapping[str, float] = PROPORTIONS
) -> dict[str, list[T]]:
    """Cut items into splits by their place; `proportions` sum to 1, and what rounding leaves goes to the last."""
    splits: dict[str, list[T]] = {name: [] for name in proportions}
    for item in items:
        splits[_name_at(of(item), proportions)].append(item)
    return splits


def _name_at(where: float, proportions: Mapping[str, float]) -> str:
    ends = accumulate(proportions.values())
    return next((name for name, end in zip(proportions, ends, strict=True) if where < end), [*proportions][-1])


def left_out(count: int, what: str, split: str, how: str = "") -> str:
    """A note of how many were left out of a split."""
    plural, verb = ("", "was") if count == 1 else ("s", "were")
    return f"{count:,} {what}{plural} {verb} left out of {split}{how}."
