"""Rows: pairs of score lists of different lengths, compared many at a time.

Lists come as `[row, item]` with NaN where a row has no item. Rows of similar length are put together, so that short
texts don't pay for long ones, and a chunk never holds more than `PAIRS` comparisons of two items, so that memory
doesn't grow with the corpus.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from exegete.base.ties import levels

# Comparisons in one chunk. Far below what memory allows, because chunks that fit a processor's cache are faster.
PAIRS = 1 << 18


def pair_lists(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Both lists in float64, real items first and in their own order, and the number of real items of each row."""
    if first.dim() != 2 or first.shape != second.shape:
        raise ValueError(
            f"compare two tensors [row, item] of one shape, not {list(first.shape)} and {list(second.shape)}"
        )
    a, b = first.detach().double(), second.detach().double()
    absent = a.isnan()
    if not torch.equal(absent, b.isnan()):
        raise ValueError("NaN marks absent items and must stand in the same places of both lists: mask them alike")
    if (absent[:, :-1] & ~absent[:, 1:]).any():
        order = absent.byte().argsort(dim=1, stable=True)  # real items, then absent ones
        a, b = a.gather(1, order), b.gather(1, order)
    return a, b, (~absent).sum(1)


def chunks(length: Tensor) -> Iterator[tuple[Tensor, int]]:
    """All rows, longest first, in portions of at most `PAIRS` comparisons or one row: their indices and their width."""
    order = length.argsort(descending=True, stable=True)
    sizes = length[order].tolist()
    start = 0
    while start < len(sizes):
        width = sizes[start]
        stop = start + max(1, PAIRS // max(1, width * width))
        yield order[start:stop], width
        start = stop


def by_row(compute: Callable[..., Tensor], first: Tensor, second: Tensor, *per_row: Tensor) -> Tensor:
    """`compute(a, b, n, *per_row)` of every row, in the order of the rows; a row without items is NaN.

    compute sees the `levels` of both lists, [row, item] twice, and [row] for all else, and returns [row] or
    [column, row].
    """
    a, b, n = pair_lists(first, second)
    if not len(n):
        return compute(a, b, n, *per_row)
    rows, values = [], []
    for row, width in chunks(n):
        rows.append(row)
        lists = levels(a[row, :width]), levels(b[row, :width])
        values.append(compute(*lists, n[row], *(x[row] for x in per_row)))
    back = torch.cat(rows).argsort()
    return torch.cat(values, dim=-1)[..., back].where(n > 0, torch.nan)


def above(x: Tensor) -> Tensor:
    """[row, i, j]: item i scores higher than item j. NaN compares as false: absent items are above nothing."""
    return x[:, :, None] > x[:, None, :]


def count_pairs(yes: Tensor) -> Tensor:
    """How many pairs of each row hold: [row, i, j] -> [row], in float64."""
    return yes.view(torch.int8).flatten(1).sum(1, dtype=torch.int64).double()
