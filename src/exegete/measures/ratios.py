"""Ratios of means: numbers like F1 that no single text has, with an interval all the same.

F1 is 2 Σ both / Σ (predicted + gold), and so a ratio of two means over texts. Its first-order expansion gives every
text a value,

    u_i = R + (a_i − R b_i) / mean(b),    R = mean(a) / mean(b),

whose mean is R and whose spread over texts is that of R (the delta method; Efron's (1982) infinitesimal jackknife).
What works for a mean works for these values: intervals over seeds and texts, and paired differences of two ratios.
"""

import torch
from torch import Tensor


def linearised(a: Tensor, b: Tensor) -> Tensor:
    """The values u of a ratio, float64, along the last dimension; NaN where a or b has none.

    A ratio whose b are all 0 has no value anywhere.
    """
    absent = a.isnan() | b.isnan()
    top, bottom = (x.double().masked_fill(absent, torch.nan) for x in (a, b))
    mean = bottom.nanmean(-1, keepdim=True)
    ratio = top.nanmean(-1, keepdim=True) / mean
    values: Tensor = ratio + (top - ratio * bottom) / mean
    return values.where(mean != 0, torch.nan)


def f1_values(predicted: Tensor, gold: Tensor) -> Tensor:
    """The values of F1 of one class, from who was predicted to be of it and who is: [..., text] -> [..., text].

    Where the class is neither there nor predicted F1 is 0, as everywhere in exegete.
    """
    both = 2.0 * (predicted & gold)
    return linearised(both, predicted.double() + gold.double()).nan_to_num(0.0)
