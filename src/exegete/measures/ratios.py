"""Ratios of means: numbers like F1 that no single text has, with an interval all the same.

F1 is 2 Σ both / Σ (predicted + gold), and so a ratio of two means over texts. Its first-order expansion gives every
text a value,

    u_i = R + (a_i − R b_i) / mean(b),    R = mean(a) / mean(b),

whose mean is R and whose spread over texts is that of R (the delta method; Efron's (1982) infinitesimal jackknife).
What works for a mean works for these values: intervals over seeds and texts, and paired differences of two ratios.
"""

from collections.abc import Iterable

import torch
from torch import Tensor


def linearise(a: Tensor, b: Tensor) -> Tensor:
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
    return macro_f1_values(predicted.long(), gold.long(), (1,))


def macro_f1_values(predicted: Tensor, gold: Tensor, classes: Iterable[int]) -> Tensor:
    """Values whose mean is the mean F1 over classes, from the numbers of the classes: [..., text] -> [..., text].

    The classes are given, not found: macro F1 is the mean over the classes that are *gold* somewhere among the texts in
    question, so that two models, or two conditions, are compared over the same ones. A predicted class that no text has
    is not among them; it counts as a miss of the text's own class. NaN marks a text that isn't there.
    """
    absent = predicted.isnan() | gold.isnan()
    each = []
    for c in classes:
        said, true = ((x == c).double().masked_fill(absent, torch.nan) for x in (predicted, gold))
        each.append(linearise(2 * said * true, said + true).nan_to_num(0.0))
    return torch.stack(each).mean(0).masked_fill(absent, torch.nan)
