"""Integrated gradients: a prediction shared out among words (Sundararajan et al. 2017, equation 1).

    IG_i = (x_i − b_i) · ∫₀¹ ∇_{x_i} f_c(b + a (x − b)) da

Completeness: Σ_i IG_i = f_c(x) − f_c(b), by the fundamental theorem of calculus. It holds of every piece of the way,
too. A sum over a few points only comes near the integral, and completeness tells how near, piece by piece:

    error = Σ_p |Σ_i IG_i(p) − (f_c(end of p) − f_c(start of p))| / max(|f_c(x) − f_c(b)|, FLOOR)

So the way starts as one piece, and where the error is still large, the pieces that have more than their share of it are
halved: few points where a prediction is smooth, many only around its kinks. A small error is needed, not enough: errors
of single words may cancel in the sum.

The way through a transformer has no kinks, and waves everywhere: most texts of MiniLM need 14 to 27 points at once, and
with fewer the sum may be right by chance while words are not (9 points: 16 % off). So it starts with 28.

Where vectors of positions are added to those of words (BERT and its kin), most of the way from zero happens in one
place: about a fifth of it up words stand out from their positions, and what the model makes of them turns. Points are
as dense there as 1 / ((a − 0.2)² + 0.2²), by

    a = 0.2 + 0.2 tan v,  da = 0.2 (1 + tan² v) dv,  Gauss points for v,

and of MiniLM and BERT-tiny WAVES_FROM_ZERO of them leave no more error than 28 that are spread evenly. It is the same
integral.
"""

import math
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
from exegete.importance.derivative import copy_passes, derivative, support
from exegete.models.capabilities import Pretrained, Voting
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch

# Where text and baseline get almost the same prediction, a relative error is a ratio of rounding errors. A difference
# of 0.01 in a logit moves a probability by 0.005 at most; below that, the error is measured against 0.01.
FLOOR = 0.01
# Points on a piece of the way: of our models, of transformers, and of those with positions of their own from zero.
KINKS, WAVES, WAVES_FROM_ZERO = 8, 28, 16

Quadrature = Literal["legendre", "riemann"]


class Pace(NamedTuple):
    """How a way is gone: a from 0 to 1, slowly about one place, as a function of u from 0 to 1."""

    about: float = 0.5
    width: float = math.inf  # as fast everywhere

    def place(self, u: Tensor) -> Tensor:
        """a, which grows with u."""
        return u if math.isinf(self.width) else self.about + self.width * self._angle(u).tan()

    def speed(self, u: Tensor) -> Tensor:
        """da / du, with which an integral over u is one over a."""
        if math.isinf(self.width):
            return torch.ones_like(u)
        first, last = self._ends
        return self.width * (last - first) * (1 + self._angle(u).tan() ** 2)

    def _angle(self, u: Tensor) -> Tensor:
        first, last = self._ends
        return first + (last - first) * u

    @property
    def _ends(self) -> tuple[float, float]:
        return math.atan(-self.about / self.width), math.atan((1 - self.about) / self.width)


EVEN, FROM_ZERO = Pace(), Pace(0.2, 0.2)


class _Path(NamedTuple):
    """The straight line from a baseline to a text, for every text of a batch."""

    batch: Batch
    target: Target
    start: Tensor  # [batch, token, size]: b
    direction: Tensor  # [batch, token, size]: x − b, 0 outside words
    first: Tensor  # [batch]: f_c(b)
    last: Tensor  # [batch]: f_c(x)
    pace: Pace

    @property
    def gain(self) -> Tensor:
        """f_c(x) − f_c(b), which the words share, or what a smaller one is measured against."""
        return (self.last - self.first).abs().clamp(min=FLOOR)


class _Pieces(NamedTuple):
    """Parts of the ways of texts, which together are all of every way."""

    row: Tensor  # [piece]: the text
    start: Tensor  # [piece]: where on the way, as u from 0 to 1
    end: Tensor  # [piece]
    first: Tensor  # [piece]: f_c there
    last: Tensor  # [piece]
    shares: Tensor  # [piece, token]: what words have of last − first

    def at(self, which: Tensor) -> "_Pieces":
        """Some of the parts."""
        return _Pieces(*(each[which] for each in self))

    def beside(self, others: "_Pieces") -> "_Pieces":
        """These and others."""
        return _Pieces(*(torch.cat(pair) for pair in zip(self, others, strict=True)))


@dataclass(frozen=True)
class IntegratedGradients:
    """(x_i − b_i) · the mean gradient on the way from a baseline to the text."""

    family: ClassVar[str] = "gradients"

    baseline: Baseline = "zero"
    steps: int | None = None  # points on a piece of the way, which is all of it at first; 8, of transformers 16 or 28
    bound: float = 0.01  # of the error; pieces are halved above it; 0: never halved
    most: int = 1024  # points that are asked at, where the bound is out of reach: `Scores.error` then shows it
    rule: Quadrature = "legendre"  # Gauss-Legendre at some pace; riemann: the right sum that the paper prints
    of: Literal["logit", "probability"] = "logit"

    def __post_init__(self) -> None:
        if self.steps is not None and not 1 <= self.steps <= self.most:
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
        """One forward and one backward pass per text and point, and one forward for every end of a piece."""
        if (reason := self.refuses(model)) is not None:
            raise UsageError(f"importance 'integrated_gradients': {reason}")
        path, steps = self._path(model, batch, target), self._steps(model)
        pieces = self._asked(model, path, _whole(path), steps)
        run = torch.full_like(batch.ids, steps)
        while self.bound > 0:
            split = self._incomplete(pieces, path, run, steps)
            if not split.any():
                break
            halves = _halved(model, path, pieces.at(split))
            run += torch.bincount(halves.row, minlength=len(run)) * steps
            pieces = pieces.at(~split).beside(self._asked(model, path, halves, steps))
        values = torch.zeros_like(batch.tokens, dtype=torch.float64).index_add_(0, pieces.row, pieces.shares)
        ends = 1 + torch.bincount(pieces.row, minlength=len(run))
        spent = cost(batch, run + ends, run)
        error = _error(pieces, path)
        return Scores(on_words(values, batch), signed=True, target=path.target, error=error, cost=spent)

    def _steps(self, model: Predictor) -> int:
        """As given; else by the kind of model, as many as may be asked at."""
        waves = WAVES if self._pace(model) is EVEN else WAVES_FROM_ZERO
        usual = waves if isinstance(model, Pretrained) else KINKS
        return min(usual, self.most) if self.steps is None else self.steps

    def _pace(self, model: Predictor) -> Pace:
        """The paper's sum has its points at one distance."""
        turning = isinstance(model, Pretrained) and model.adds_positions
        return FROM_ZERO if turning and self.baseline == "zero" and self.rule == "legendre" else EVEN

    def _asked(self, model: Predictor, path: _Path, pieces: _Pieces, steps: int) -> _Pieces:
        """The pieces with the shares that words have in them."""
        return pieces._replace(shares=_integral(model, path, pieces, *quadrature_points(self.rule, steps)))

    def _incomplete(self, pieces: _Pieces, path: _Path, run: Tensor, steps: int) -> Tensor:
        """Pieces with more than their share of an error above the bound, of texts that may be asked at more points."""
        count = torch.bincount(pieces.row, minlength=len(run))[pieces.row]
        share = self.bound / count  # if the error is above the bound, some piece has more than this of it
        above = (_error(pieces, path)[pieces.row] > self.bound) & (_missing(pieces, path) > share)
        wanted = torch.bincount(pieces.row[above], minlength=len(run)) * 2 * steps
        return above & (run + wanted <= self.most)[pieces.row]

    @torch.no_grad()
    def _path(self, model: Predictor, batch: Batch, target: Target | None) -> _Path:
        embedded, start = model.embed(batch), baseline(model, batch, self.baseline)
        logits = model.logits(batch, embedded=embedded).double()
        target = target or predicted(logits, self.of)
        ends = support(model.logits(batch, embedded=start).double(), target), support(logits, target)
        return _Path(batch, target, start, embedded - start, *ends, self._pace(model))


@lru_cache(maxsize=32)
def quadrature_points(rule: Quadrature, steps: int) -> tuple[Tensor, Tensor]:
    """Where between 0 and 1 a function is asked, and the weights whose sum with its values is the integral."""
    if rule == "riemann":
        return torch.arange(1, 1 + steps).double() / steps, torch.full((steps,), 1 / steps, dtype=torch.float64)
    roots, weights = map(torch.from_numpy, roots_legendre(steps))  # on −1 to 1
    return (roots + 1) / 2, weights / 2


def _whole(path: _Path) -> _Pieces:
    """Every way as one piece."""
    rows = places(path.batch.ids)
    start = torch.zeros_like(path.first)
    shares = torch.zeros_like(path.batch.tokens, dtype=torch.float64)
    return _Pieces(rows, start, start + 1, path.first, path.last, shares)


def _halved(model: Predictor, path: _Path, pieces: _Pieces) -> _Pieces:
    """Both halves of every piece; the prediction in the middle takes one forward pass."""
    middle = (pieces.start + pieces.end) / 2
    value = torch.empty_like(middle)
    with torch.no_grad():
        for asks, part in copy_passes(path.batch, pieces.row):
            row = pieces.row[asks]
            logits = model.logits(part, embedded=_between(path, row, middle[asks], part)).double()
            value[asks] = support(logits, path.target.at(row))
    lower, upper = pieces._replace(end=middle, last=value), pieces._replace(start=middle, first=value)
    return lower.beside(upper)


def _between(path: _Path, row: Tensor, at: Tensor, part: Batch) -> Tensor:
    """b + a (x − b), for some texts and u."""  # [ask, token, size]
    width = part.tokens.shape[1]
    direction = path.direction[row, :width]
    return path.start[row, :width] + path.pace.place(at)[:, None, None].to(direction.dtype) * direction


def _integral(model: Predictor, path: _Path, pieces: _Pieces, at: Tensor, weights: Tensor) -> Tensor:
    """Σ_k w_k da/du ∇f_c(b + a_k (x − b)) · (x − b) over the points of every piece; all pieces in the same passes."""
    total = torch.zeros(len(pieces.row), path.batch.tokens.shape[1], dtype=torch.float64, device=pieces.row.device)
    asked = places(pieces.row).repeat_interleave(len(at))  # [ask]: every piece at every point
    point = torch.arange(len(at), device=asked.device).repeat(len(pieces.row))
    length = pieces.end - pieces.start
    where = pieces.start[asked] + length[asked] * at.to(length)[point]
    for asks, part in copy_passes(path.batch, pieces.row[asked]):
        row, piece, width = pieces.row[asked[asks]], asked[asks], part.tokens.shape[1]
        between = _between(path, row, where[asks], part)
        gradient = derivative(model, part, path.target.at(row), embedded=between).gradient
        share = (gradient * path.direction[row, :width]).sum(-1)  # [ask, token]
        weight = weights.to(length)[point[asks]] * length[piece] * path.pace.speed(where[asks])
        total[:, :width].index_add_(0, piece, share * weight[:, None])
    return total


def _missing(pieces: _Pieces, path: _Path) -> Tensor:
    """How far the shares of a piece are from adding up, relative to what all of its text share."""  # [piece]
    return (pieces.shares.sum(-1) - (pieces.last - pieces.first)).abs() / path.gain[pieces.row]


def _error(pieces: _Pieces, path: _Path) -> Tensor:
    """The sum over the pieces of a text: errors of two pieces don't cancel."""  # [batch]
    return torch.zeros_like(path.first).index_add_(0, pieces.row, _missing(pieces, path))
