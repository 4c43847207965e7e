"""Integrated gradients: a prediction shared out among words (Sundararajan et al. 2017, equation 1; PROTOCOLS 3.3).

    IG_i = (x_i − b_i) · ∫₀¹ ∇_{x_i} f_c(b + a (x − b)) da

Completeness: Σ_i IG_i = f_c(x) − f_c(b), by the fundamental theorem of calculus. A sum over m points only comes near
the integral, and completeness tells how near. So the points are doubled for the texts whose error is still large:

    error = |Σ_i IG_i − (f_c(x) − f_c(b))| / max(|f_c(x) − f_c(b)|, FLOOR)

A small error is needed, not enough: errors of single words may cancel in the sum.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal, NamedTuple

import torch
from scipy.special import roots_legendre
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.base.places import places
from exegete.importance.baselines import Baseline, baseline, no_mean_word
from exegete.importance.contract import Scores, Target, cost, on_words, predicted
from exegete.importance.derivative import derivative, passes, support
from exegete.models.capabilities import Voting
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch

# Where text and baseline get almost the same prediction, a relative error is a ratio of rounding errors. A difference
# of 0.01 in a logit moves a probability by 0.005 at most; below that, the error is measured against 0.01.
FLOOR = 0.01

Rule = Literal["legendre", "riemann"]


class _Path(NamedTuple):
    """The straight line from a baseline to a text, for every text of a batch."""

    batch: Batch
    target: Target
    start: Tensor  # [batch, token, size]: b
    direction: Tensor  # [batch, token, size]: x − b, 0 outside words
    gain: Tensor  # [batch]: f_c(x) − f_c(b), which the words share


@dataclass(frozen=True)
class IntegratedGradients:
    """(x_i − b_i) · the mean gradient on the way from a baseline to the text."""

    family: ClassVar[str] = "gradients"

    baseline: Baseline = "zero"
    steps: int = 8  # points on the way, at first
    bound: float = 0.01  # of the error; steps are doubled above it; 0: never doubled
    most: int = 1024  # steps, where the bound is out of reach: `Scores.error` then shows it
    rule: Rule = "legendre"  # Gauss-Legendre; riemann: the right sum that the paper prints
    of: Literal["logit", "probability"] = "logit"

    def __post_init__(self) -> None:
        if self.steps < 1 or self.most < self.steps:
            raise UsageError(
                f"importance 'integrated_gradients' needs 1 <= steps <= most, not steps={self.steps}, most={self.most}"
            )
        if not self.bound >= 0:
            raise UsageError(f"importance 'integrated_gradients' needs a bound of 0 or more, not {self.bound}")

    def refuses(self, model: Predictor) -> str | None:
        """A jump has no gradient to add up; a mean word needs a vocabulary."""
        if isinstance(model, Voting):
            return "votes of ladder jump, and gradients that take a jump for a slope don't add up to a prediction"
        return no_mean_word(model) if self.baseline == "mean" else None

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        """One forward and one backward pass per text and step, and two forward for completeness."""
        path = self._path(model, batch, target)
        values = torch.zeros_like(batch.tokens, dtype=torch.float64)
        error = torch.full_like(batch.ids, torch.inf, dtype=torch.float64)
        run = torch.zeros_like(batch.ids)
        rows, steps = places(batch.ids), self.steps
        while len(rows):
            values[rows] = _integral(model, path, rows, *points(self.rule, steps))
            error[rows] = _incompleteness(values[rows], path.gain[rows])
            run[rows] += steps
            more = self.bound > 0 and steps < self.most
            rows, steps = rows[more & (error[rows] > self.bound)], min(2 * steps, self.most)
        spent = cost(batch, run + 2, run)
        return Scores(on_words(values, batch), signed=True, target=path.target, error=error, cost=spent)

    @torch.no_grad()
    def _path(self, model: Predictor, batch: Batch, target: Target | None) -> _Path:
        embedded, start = model.embed(batch), baseline(model, batch, self.baseline)
        logits = model.logits(batch, embedded=embedded).double()
        target = target or predicted(logits, self.of)
        empty = model.logits(batch, embedded=start).double()
        return _Path(batch, target, start, embedded - start, support(logits, target) - support(empty, target))


@lru_cache(maxsize=32)
def points(rule: Rule, steps: int) -> tuple[Tensor, Tensor]:
    """Where between 0 and 1 a function is asked, and the weights whose sum with its values is the integral."""
    if rule == "riemann":
        return torch.arange(1, 1 + steps).double() / steps, torch.full((steps,), 1 / steps, dtype=torch.float64)
    roots, weights = map(torch.from_numpy, roots_legendre(steps))  # on −1 to 1
    return (roots + 1) / 2, weights / 2


def _integral(model: Predictor, path: _Path, rows: Tensor, at: Tensor, weights: Tensor) -> Tensor:
    """Σ_k w_k ∇f_c(b + a_k (x − b)) · (x − b) for some rows of the batch."""  # [row, token]
    total = torch.zeros_like(path.batch.tokens, dtype=torch.float64)
    asked = rows.repeat_interleave(len(at))  # [ask]: every text at every place
    step = torch.arange(len(at), device=rows.device).repeat(len(rows))
    for asks, part in passes(path.batch, asked):
        row, width = asked[asks], part.tokens.shape[1]
        direction = path.direction[row, :width]
        between = path.start[row, :width] + at[step[asks], None, None].to(direction.dtype) * direction
        gradient = derivative(model, part, path.target.at(row), embedded=between).gradient
        shares = (gradient * direction).sum(-1) * weights[step[asks], None]  # float64 [ask, token]
        total[:, :width].index_add_(0, row, shares)
    return total[rows]


def _incompleteness(values: Tensor, gain: Tensor) -> Tensor:
    """How far the shares are from adding up, relative to what they share."""  # [batch]
    return (values.sum(-1) - gain).abs() / gain.abs().clamp(min=FLOOR)
