"""Generation: what a translator writes, word by word, greedily or with a beam.

Both write until the end symbol, or until `longest` words are there: 2 · source + 10 unless given. A target that didn't
end by then is cut, and says so. Padding and the start symbol are never written. What is written for an example depends
neither on the batch nor on padding.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.base.places import places
from exegete.models.capabilities import Writing
from exegete.models.contract import Intervention
from exegete.models.ours.parts import part_of
from exegete.models.ours.translator import SOURCE, Draft
from exegete.tasks.batching import Batch
from exegete.tasks.vocabulary import END, PAD, START

ALPHA = 0.6  # of the length penalty, between the 0.6 and 0.7 that Wu et al. found best


@dataclass(frozen=True)
class Written:
    """What was written for every example of a batch."""

    rows: list[list[int]]  # rows of the vocabulary, without start and end
    ended: Tensor  # [batch], bool: whether the end symbol was written; otherwise the target was cut
    logp: Tensor  # [batch], float64: the model's log p of what was written, the end symbol included where there is one


@dataclass
class _Best:
    """The best target of an example so far."""

    score: float = -torch.inf  # log p over the length penalty
    row: list[int] = field(default_factory=list)
    logp: float = -torch.inf
    ended: bool = False
    count: int = 0  # targets that have ended

    def better(self, row: Tensor, logp: float, length: int, alpha: float) -> None:
        """A target that has ended: keep it if it is better."""
        score = logp / _penalty(length, alpha)
        if score > self.score:
            self.score, self.row, self.logp, self.ended = score, row.tolist(), logp, True


@torch.no_grad()
def greedy(model: Writing, batch: Batch, intervene: Intervention | None = None, longest: int | None = None) -> Written:
    """The likeliest next word, again and again."""
    return beam(model, batch, 1, 0.0, intervene, longest)


@torch.no_grad()
def beam(
    model: Writing,
    batch: Batch,
    width: int = 5,
    length_penalty: float = ALPHA,
    intervene: Intervention | None = None,
    longest: int | None = None,
) -> Written:
    """The best of the targets that `width` places find.

    At every step the likeliest `width` continuations stay, less one for every target that has ended: with a width of 1
    this is greedy. Of those that ended, the best has the largest log p / lp, lp = ((5 + n) / 6)^α with n its words and
    end symbol (Wu et al. 2016, equation 14; α = 0.6 unless given, 0 is no penalty). Where none ended within the longest
    length, it is the likeliest that was cut there.
    """
    _check(width, length_penalty, longest)
    most = _most(batch, longest)
    found = [_Best() for _ in most]
    state = _Beam(batch, width, model.begin(batch, intervene=intervene))
    while len(state.examples):
        state.step(model, found, most, length_penalty)
    ended, logp = [b.ended for b in found], [b.logp for b in found]
    return Written([b.row for b in found], torch.tensor(ended), torch.tensor(logp, dtype=torch.float64))


def _check(width: int, length_penalty: float, longest: int | None) -> None:
    if width < 1:
        raise UsageError(f"a beam needs a width of 1 or more, not {width}")
    if length_penalty < 0:
        raise UsageError(f"a length penalty is 0 or more, not {length_penalty}: 0 is none")
    if longest is not None and longest < 0:
        raise UsageError(f"the longest target has 0 words or more, not {longest}")


def _most(batch: Batch, longest: int | None) -> list[int]:
    """How many words may be written for every example."""
    words = part_of(batch, SOURCE).words.sum(-1)
    return [2 * n + 10 if longest is None else longest for n in words.tolist()]


class _Beam:
    """Targets under way: `width` places for every example that is not finished."""

    def __init__(self, batch: Batch, width: int, writing: Draft) -> None:
        n, device = len(batch.ids), batch.ids.device
        self.width, self.examples = width, places(batch.ids)  # [example]: those that are not finished
        self.writing = writing.rows(self.examples.repeat_interleave(width))
        # log p; −∞ where a place is empty
        self.score = torch.full((n, width), -torch.inf, dtype=torch.float64, device=device)
        self.score[:, 0] = 0
        self.before = self.score  # the same without the last word
        self.rows = torch.empty(n, width, 0, dtype=torch.int64, device=device)  # what is written

    def step(self, model: Writing, found: list[_Best], most: list[int], alpha: float) -> None:
        """Write one more word everywhere; what ends goes to `found`, and examples that can't get better are done."""
        n, length = len(self.examples), self.rows.shape[-1]
        last = self.rows[..., -1] if length else self.rows.new_full((n, self.width), START)
        logits, self.writing = model.advance(self.writing, last.flatten())
        logp = logits.double().log_softmax(-1)
        logp[:, [PAD, START]] = -torch.inf
        best, place = (self.score[..., None] + logp.view(n, self.width, -1)).flatten(1).topk(self.width)
        source, word = place // logp.shape[-1], place % logp.shape[-1]  # [example, width] each
        before = self.rows.gather(1, source[..., None].expand(-1, -1, length))
        self.rows, self.before = torch.cat([before, word[..., None]], -1), self.score.gather(1, source)
        self.score = best
        going = [self._end(i, found[e], most[e], alpha) for i, e in enumerate(self.examples.tolist())]
        self._keep(torch.tensor(going, device=source.device), source)

    def _end(self, i: int, found: _Best, most: int, alpha: float) -> bool:
        """Take what ended out of an example's places; whether anything that is left could still be better."""
        n = self.rows.shape[-1]  # words, or words and the end symbol
        self.score[i, self.width - found.count :] = -torch.inf
        ended = (self.rows[i, :, -1] == END) & self.score[i].isfinite()
        for k in ended.nonzero()[:, 0].tolist():
            found.better(self.rows[i, k, :-1], float(self.score[i, k]), n, alpha)
        found.count += int(ended.sum())
        if n > most and not found.ended:  # the word that is too many is taken back
            k = int(self.before[i].where(self.score[i].isfinite(), -torch.inf).argmax())
            found.row, found.logp = self.rows[i, k, :-1].tolist(), float(self.before[i, k])
        self.score[i, ended | (n > most)] = -torch.inf
        # log p only falls and the penalty only grows up to the longest length: no target can end better than this.
        bound = float(self.score[i].max()) / _penalty(most + 1, alpha)
        return bound > found.score

    def _keep(self, going: Tensor, source: Tensor) -> None:
        """Go on with some examples, each place with what was remembered where it comes from."""
        where = places(source, 0)[:, None] * self.width + source  # [example, width]
        self.writing = self.writing.rows(where[going].flatten())
        self.examples, self.rows, self.score = self.examples[going], self.rows[going], self.score[going]


def _penalty(length: int, alpha: float) -> float:
    """lp(n) = ((5 + n) / 6)^α (Wu et al. 2016, equation 14)."""
    return float(((5 + length) / 6) ** alpha)
