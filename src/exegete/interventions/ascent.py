"""Ascent: the search for adversarial attention with its gradient in closed form, many texts side by side.

With a linear decoder z = Σ_t a_t s_t + b, and for log-weights x, a = softmax(x), the objective of
`exegete.interventions.search` has the gradient

    ∂f/∂a_t = −½ ln(a_t / m_t) − (1/K²) Σ_k' ln(a_t / m^k'_t) + strength · Σ_c u_c s_tc
    ∂f/∂x = a ⊙ (∂f/∂a − Σ a ∂f/∂a)

m = (a + α)/2 being the mixture with the original weights, m^k' that with the candidate k', and u_c = ∂d/∂z_c where the
distance d of the predictions is beyond the tolerance, else 0. What is the same for all keys cancels in the second step:
so x may stand for ln a and a sum for a mixture, and logs of four candidates are one log of a product.

Tensors are [candidate, key, text]: everything is element-wise along texts. Texts are filled up to multiples of 32, so
that the same vector instructions compute a text wherever it stands: batching changes nothing, not even a last bit.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import hardshrink

BETAS, EPS = (0.9, 0.999), 1e-8  # Adam's
FLOOR = 1e-9  # of a weight inside a logarithm; four such factors are still a normal float32
FACTORS = 4
ABSENT = -1e4  # the log-weight of a masked key: its weight is 0 exactly


class Slopes(NamedTuple):
    """A linear decoder, as far as a search needs it: one output z₁ − z₀ for two classes, otherwise one per class."""

    values: Tensor  # [output, key, text]
    bias: Tensor  # [output, text]
    probability: Tensor  # [output, text], under the original weights: of the second class, or of all


class Rates(NamedTuple):
    """How to climb."""

    lr: float
    tolerance: float
    strength: float


class Climb:
    """Log-weights on their way, with Adam's memory (AMSGrad: Reddi et al. 2018)."""

    def __init__(self, start: Tensor, original: Tensor, slopes: Slopes, rates: Rates) -> None:
        self.x = start  # [candidate, key, text]
        self.floored, self.slopes, self.rates = original + FLOOR, slopes, rates
        self.a, self.g, self.spare, self.product = (torch.empty_like(start) for _ in range(4))
        self.twice = start.new_empty(2 * len(start), *start.shape[1:])  # the candidates, and once more
        self.mean, self.square, self.largest = (torch.zeros_like(start) for _ in range(3))
        self.steps = 0

    def step(self) -> None:
        """One step of Adam-AMSGrad down the objective, in place."""
        gradient, (beta, gamma) = self.gradient(), BETAS
        self.steps += 1
        self.mean.lerp_(gradient, 1 - beta)
        self.square.mul_(gamma).addcmul_(gradient, gradient, value=1 - gamma)
        torch.maximum(self.largest, self.square, out=self.largest)
        size = torch.sqrt(self.largest, out=self.spare)
        size.mul_(1 / math.sqrt(1 - gamma**self.steps)).add_(EPS)
        self.x.addcdiv_(self.mean, size, value=-self.rates.lr / (1 - beta**self.steps))

    def gradient(self) -> Tensor:
        """∂f/∂x [candidate, key, text]; the tensor is written anew by the next call."""
        a = torch.softmax(self.x, 1, out=self.a)
        count = len(a)
        torch.mul(self.x, -(0.5 + (count - 1) / count**2), out=self.g)
        self.g.add_(torch.add(a, self.floored, out=self.spare).log_(), alpha=0.5)
        self._apart()
        self._hold()
        torch.mul(a, self.g, out=self.spare)
        self.g.sub_(self.spare.sum(1, keepdim=True))
        return self.g.mul_(a)

    def _apart(self) -> None:
        """Candidates move away from each other: (1/K²) Σ_k' ln(a^k + a^k'), a product of some sums in one log."""
        count = len(self.a)
        torch.add(self.a.expand(2, *self.a.shape), FLOOR, out=self.twice.view(2, *self.a.shape))
        for shift in range(1, count):
            others, first = self.twice[shift : shift + count], shift % FACTORS == 1
            both = torch.add(self.a, others, out=self.product if first else self.spare)
            if not first:
                self.product.mul_(both)
            if shift % FACTORS == 0 or shift == count - 1:
                self.g.add_(self.product.log_(), alpha=1 / count**2)

    def _hold(self) -> None:
        """Predictions come back to within the tolerance: strength · Σ_c u_c s_tc."""
        outputs = [torch.mul(self.a, of, out=self.spare).sum(1) for of in self.slopes.values]  # each [candidate, text]
        for push, of in zip(self._pushes(torch.stack(outputs)), self.slopes.values, strict=True):
            self.g.addcmul_(push[:, None], of, value=self.rates.strength)

    def _pushes(self, outputs: Tensor) -> Tensor:
        """u = ∂d/∂z where d is beyond the tolerance, else 0: [output, candidate, text].

        Two classes: d = |Δp|, u = sign(Δp) p (1 − p). More: d = Σ_c |Δp_c|, u_c = p_c (σ_c − Σ_y σ_y p_y) with the
        signs σ of Δp.
        """
        z = outputs.add_(self.slopes.bias[:, None])
        if len(z) == 1:
            p = z.sigmoid_()
            sign = hardshrink(p - self.slopes.probability[:, None], self.rates.tolerance).sign_()
            return sign.mul_(torch.addcmul(p, p, p, value=-1))
        p = z.softmax(0)
        change = p - self.slopes.probability[:, None]
        sign = change.sign().mul_(change.abs().sum(0) > self.rates.tolerance)
        return p * (sign - (sign * p).sum(0))
