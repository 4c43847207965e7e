"""HardKuma: a gate between 0 and 1 that is exactly 0 or exactly 1 with probability (Bastings, Aziz & Titov 2019).

A Kumaraswamy variable x on (0, 1), stretched to (l, r) around [0, 1] and cut back to it:

    K(x) = 1 − (1 − x^a)^b,  s = l + (r − l) x,  z = min(1, max(0, s))

What lies beyond the ends falls on them: P(z = 0) = K(−l / (r − l)), P(z = 1) = 1 − K((1 − l) / (r − l)). So a gate can
be shut, and is still a smooth function of a and b wherever it is not.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

LOW, HIGH = -0.1, 1.1  # l and r
_SHUT, _OPEN = (-LOW / (HIGH - LOW), (1 - LOW) / (HIGH - LOW))  # where x gives z = 0 and z = 1


def _log_powered(log_x: Tensor | float, a: Tensor) -> Tensor:
    """log(1 − x^a) from log x < 0, exact where x^a is near 0 and where it is near 1."""
    return torch.log(-torch.expm1(a * log_x))


@dataclass(frozen=True)
class HardKuma:
    """Gates with shapes a, b > 0, [...] each."""

    a: Tensor
    b: Tensor

    def sample(self, noise: Tensor) -> Tensor:
        """z at the quantile u ∈ (0, 1): x = (1 − (1 − u)^(1/b))^(1/a), differentiable in a and b."""
        x = torch.exp(_log_powered(torch.log1p(-noise), 1 / self.b) / self.a)
        return _rectified(x)

    def cdf(self, z: Tensor) -> Tensor:
        """P(Z ≤ z) for z in [0, 1)."""
        return -torch.expm1(self.b * _log_powered(((z - LOW) / (HIGH - LOW)).log(), self.a))

    @property
    def off(self) -> Tensor:
        """P(z = 0)."""
        return -torch.expm1(self.b * _log_powered(math.log(_SHUT), self.a))

    @property
    def selected(self) -> Tensor:
        """P(z ≠ 0) = (1 − (−l / (r − l))^a)^b, whose mean is the expected share of selected words."""
        return torch.exp(self.b * _log_powered(math.log(_SHUT), self.a))

    @property
    def on(self) -> Tensor:
        """P(z = 1)."""
        return torch.exp(self.b * _log_powered(math.log(_OPEN), self.a))

    @property
    def mean(self) -> Tensor:
        """The mean of x, b B(1 + 1/a, b) (Kumaraswamy 1980), stretched and cut."""
        inverse = 1 / self.a
        log_beta = torch.lgamma(1 + inverse) + torch.lgamma(self.b) - torch.lgamma(1 + inverse + self.b)
        return _rectified(self.b * log_beta.exp())

    @property
    def choice(self) -> Tensor:
        """What is most probable: 0, 1, or something between, for which the mean stands."""
        off, on = self.off, self.on
        between = 1 - off - on
        ends = (on > off).to(self.a.dtype)
        return torch.where((between > off) & (between > on), self.mean, ends)


def _rectified(x: Tensor) -> Tensor:
    """Stretch x from (0, 1) to (l, r) and cut it to [0, 1]."""
    return (LOW + (HIGH - LOW) * x).clamp(0, 1)


def shape_for(selected: float, a: float) -> float:
    """The b that, with this a, makes P(z ≠ 0) what is asked for."""
    return math.log(selected) / math.log1p(-(_SHUT**a))
