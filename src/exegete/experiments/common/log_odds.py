"""Log-odds of a class: what a prediction loses or gains is told in them, as probabilities near 0 and 1 hardly move."""

import torch
from torch import Tensor


def log_odds(logits: Tensor, label: Tensor) -> Tensor:
    """log p_c / (1 − p_c) of a class, [example], float64: z_c − log Σ of the others' exp."""
    place, z = label[:, None], logits.double()
    return z.gather(-1, place)[:, 0] - z.scatter(-1, place, -torch.inf).logsumexp(-1)
