"""How well a model predicts: accuracy, area under the ROC curve, F1."""

import math

import torch
from torch import Tensor

from exegete.measures.ratios import macro_f1_values

Metrics = dict[str, float | None]  # None where a metric is undefined


def accuracy(logits: Tensor, label: Tensor) -> float:
    """Share of examples whose predicted class is the gold one."""
    return float((logits.argmax(-1) == label).double().mean())


def auc(logits: Tensor, label: Tensor) -> float:
    """P(score of a positive > score of a negative) + ½ P(equal).

    With more than two classes the mean over classes, each against the rest. A class that is missing, or alone, has no
    curve; if no class has one the area is NaN.
    """
    classes = logits.shape[-1]
    log_odds = logits.double() - _rest(logits.double())
    areas = [_area(log_odds[:, c], label == c) for c in (range(classes) if classes > 2 else [1])]
    defined = [area for area in areas if area == area]
    return sum(defined) / len(defined) if defined else float("nan")


def _rest(logits: Tensor) -> Tensor:
    """log Σ_{y ≠ c} exp(logit_y) for every class c: [..., class].

    log (1 − p_c) on top of the sum over all classes, which is exact unless p_c is near 1; only the likeliest class can
    have that, and its rest is summed by itself.
    """
    best = logits.argmax(-1, keepdim=True)
    others = logits.scatter(-1, best, -torch.inf).logsumexp(-1, keepdim=True)
    rest = logits.logsumexp(-1, keepdim=True) + torch.log1p(-logits.softmax(-1))
    return rest.scatter(-1, best, others)


def _area(score: Tensor, positive: Tensor) -> float:
    """The Mann–Whitney statistic by ranks; tied scores share their mean rank."""
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    if not (n_positive and n_negative):
        return float("nan")
    _, group, count = score.unique(return_inverse=True, return_counts=True)
    rank = (count.cumsum(0) - (count - 1) / 2)[group]  # mean rank of each tie group, from 1
    return float((rank[positive].sum() - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative))


def f1(logits: Tensor, label: Tensor, of: int) -> float:
    """2 · precision · recall / (precision + recall) of one class; 0 where the class is neither there nor predicted."""
    predicted, gold = logits.argmax(-1) == of, label == of
    both = int((predicted & gold).sum())
    return 2 * both / max(1, int(predicted.sum()) + int(gold.sum()))


def all_metrics(logits: Tensor, label: Tensor) -> Metrics:
    """Accuracy, AUC, macro F1 and loss; macro F1 is the mean over the classes that texts have (`measures.ratios`)."""
    n = len(label)
    return {
        "accuracy": accuracy(logits, label),
        "auc": None if math.isnan(area := auc(logits, label)) else area,
        "macro_f1": float(macro_f1_values(logits.argmax(-1), label, label.unique().tolist()).mean()) if n else None,
        "loss": torch.nn.functional.cross_entropy(logits.double(), label).item(),
    }
