"""Omission: what does a prediction lose without a word? (Bastings & Filippova 2020, equation 5)

One family: leave-one-out deletes the word, occlusion zeroes its embedding, replacement puts the unknown word in its
place, blocking cuts all attention to it. They differ in nothing else.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.base.places import places
from exegete.importance.contract import Quantity, Scores, Target, cost, explained, on_words, predicted
from exegete.importance.erasure import Removal, erased
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch


@dataclass(frozen=True)
class Omission:
    """f_c(x) − f_c(x without its window), averaged over the windows that hold the word.

    A window is `window` neighbouring words of one text; windows slide by one word, and a text that is shorter than a
    window is one window. With `window=1` this is the loss without the word itself. `tvd` is ½ Σ_y |p_y(x) − p_y(x
    without it)|, the same for any class (Neely & Schouten 2020, equation 2).
    """

    of: Literal["tvd", "probability", "logit"] = "logit"
    window: int = 1
    by: ClassVar[Removal]

    def __post_init__(self) -> None:
        if self.window < 1:
            raise UsageError(f"an importance that omits words needs a window of 1 or more, not {self.window}")

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        """One erased text per window, T of them for a text of T words and windows of one, and the text itself."""
        rows, gone = word_windows(batch, self.window)
        texts = places(batch.ids)
        # Asked for together: where deletions reuse the states of a text, they say what it predicts as a whole, too.
        nothing = torch.zeros_like(batch.words)
        logits = erased(model, batch, torch.cat([texts, rows]), torch.cat([nothing, gone]), self.by)
        whole, without = logits[: len(texts)], logits[len(texts) :]  # [batch, class], [window, class]
        of: Quantity = "probability" if self.of == "tvd" else self.of
        target = target or predicted(whole, of)
        loss = self._loss(whole[rows], without, target.at(rows))
        passes = cost(batch, forward=1 + rows.bincount(minlength=len(texts)))
        return Scores(on_words(_mean(loss, rows, gone, len(texts)), batch), self.of != "tvd", target, cost=passes)

    def _loss(self, whole: Tensor, without: Tensor, target: Target) -> Tensor:
        """What each window costs, from logits [window, class] twice."""
        if self.of == "tvd":
            return 0.5 * (whole.softmax(-1) - without.softmax(-1)).abs().sum(-1)
        return explained(whole, target) - explained(without, target)


def word_windows(batch: Batch, size: int) -> tuple[Tensor, Tensor]:
    """All windows of words: the text of each [window], and its words [window, token]."""
    part = batch.part.clamp(min=0)
    counts = part.new_zeros(len(part), int(part.max()) + 1).scatter_add_(1, part, batch.words.long())
    first = counts.cumsum(-1) - counts  # [batch, part]: words before it
    place = batch.words.cumsum(-1) - 1 - first.gather(1, part)  # [batch, token]: of a word among those of its part
    starts = batch.words & (place <= (counts.gather(1, part) - size).clamp(min=0))
    rows, tokens = starts.nonzero(as_tuple=True)
    offset = place[rows] - place[rows, tokens][:, None]  # [window, token]
    same = batch.words[rows] & (part[rows] == part[rows, tokens][:, None])
    return rows, same & (offset >= 0) & (offset < size)


def _mean(loss: Tensor, rows: Tensor, gone: Tensor, texts: int) -> Tensor:
    """The mean loss of the windows that hold a word."""  # [batch, token]
    window, token = gone.nonzero(as_tuple=True)
    total = loss.new_zeros(texts, gone.shape[1])
    count = torch.zeros_like(total)
    total.index_put_((rows[window], token), loss[window], accumulate=True)
    count.index_put_((rows[window], token), torch.ones_like(loss)[window], accumulate=True)
    return total / count
