"""Attention without a question: scores for the states of one text (Jain & Wallace 2019, section 2; PROTOCOLS 1.1)."""

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn


class Scorer(nn.Module, ABC):
    """Scores in two parts: a linear one, which splits over the halves of a state, and what is done with its result."""

    linear: nn.Linear

    @abstractmethod
    def finish(self, pre: Tensor) -> Tensor:
        """[..., linear's out] -> [...]."""

    def forward(self, states: Tensor) -> Tensor:
        """[..., key, size] -> [..., key]."""
        return self.finish(self.linear(states))


class Additive(Scorer):
    """score_t = v · tanh(A h_t + a) (Bahdanau et al. 2014): A halves the size, v has no bias."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(size, size // 2)
        self.outer = nn.Linear(size // 2, 1, bias=False)

    def finish(self, pre: Tensor) -> Tensor:
        """v · tanh(pre), written as 2v · σ(2 pre) − Σ v: the same function, and faster on CPUs."""
        v = self.outer.weight[0]
        bent = (2 * pre).sigmoid().flatten(0, -2)
        return (torch.mv(bent, 2 * v) - v.sum()).view(pre.shape[:-1])


class ScaledDot(Scorer):
    """score_t = u · h_t / √size with a learned query u (Vaswani et al. 2017)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(size, 1, bias=False)
        self.scale = 1 / math.sqrt(size)

    def finish(self, pre: Tensor) -> Tensor:
        """Scaled by √size."""
        return pre.squeeze(-1) * self.scale


SCORERS: dict[str, type[Additive] | type[ScaledDot]] = {"tanh": Additive, "dot": ScaledDot}
