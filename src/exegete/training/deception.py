"""Deception: learn a task with attention kept off the words that it needs (Pruthi et al. 2020, section 3).

    L = −mean log p(gold) − λ mean log(1 − Σ_{t impermissible} α_t)

The second mean is over texts that hold impermissible words and others. 1 − Σ is computed as the sum over the permitted
words, which stays exact where nearly all weight is impermissible; it counts as at least 1e-10.

Impermissible words are told by what they are, not by where they stand: `words` is "planted" (the made-up words of the
task, see exegete.tasks.planting) or a list of words with | between them.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.base.names import parse
from exegete.models.contract import Predictor, Readout, Trace
from exegete.tasks.batching import Batch
from exegete.tasks.example import Task
from exegete.training.adversary import FLOOR, readout_of
from exegete.training.objectives import Likelihood, class_weights

PLANTED = "planted"


@dataclass(frozen=True)
class Deception:
    """The settings: λ weighs where attention may not be against the task itself."""

    lam: float
    words: str = PLANTED
    class_weights: bool = False  # weigh the first part by class, as `class_weights` of a training does

    def __post_init__(self) -> None:
        if not 0 <= self.lam < float("inf"):
            raise UsageError(f"objective 'deception': lam is 0 or above, not {self.lam:g}")

    def bound(self, base: Predictor, task: Task) -> "KeptOff":
        """The loss on a task; the base knows which words there are."""
        words = planted_words(task) if self.words == PLANTED else tuple(filter(None, self.words.split("|")))
        known = [word for word in words if base.reader.knows(word)]
        if not known:
            raise UsageError(f"objective 'deception': no training text of '{task.name}' holds any of '{self.words}'")
        weight = class_weights(task.split("train"), len(task.labels)) if self.class_weights else None
        return KeptOff(self.lam, tuple(known), readout_of(base), weight)


@dataclass(frozen=True, eq=False)
class KeptOff:
    """Likelihood, and a penalty on the weight of some words."""

    lam: float
    impermissible: tuple[str, ...]
    readout: Readout
    weight: Tensor | None = None  # [class], of the likelihood

    def __call__(self, trace: Trace, batch: Batch) -> Tensor:
        """−mean log p(gold) − λ mean log(1 − mass); a batch without impermissible words has the first part only."""
        likelihood = Likelihood(self.weight)(trace, batch)
        weights, words = trace.word_weights(self.readout, batch), batch.words
        if weights is None:
            site = self.readout.sites[-1]
            raise UsageError(f"'{site}' does not weigh words: deceptive training needs attention that does")
        banned = (
            torch.isin(batch.reader.plain(batch.tokens), _rows(self.impermissible, batch)) & words
        )  # [batch, token]
        concerned = banned.any(-1) & (words & ~banned).any(-1)  # [batch]: others have no choice
        if not concerned.any():
            return likelihood
        permitted = weights.where(~banned, 0.0).sum(-1)  # [batch]
        return likelihood - self.lam * permitted[concerned].clamp(min=FLOOR).log().mean()


def _rows(words: tuple[str, ...], batch: Batch) -> Tensor:
    """The rows of these words in a batch; what its reader doesn't know is none of them."""
    known = [word for word in words if batch.reader.knows(word)]
    return torch.tensor(batch.reader.rows(known), dtype=torch.int64, device=batch.tokens.device)


def planted_words(task: Task) -> tuple[str, ...]:
    """The made-up words of a task: those that the test texts name as their rationale, which they all hold.

    Elsewhere a rationale may be one that people marked, and a planted word may stand alone and mean nothing.
    """
    if "planted" not in parse(task.name).settings:
        raise UsageError(f"no words are planted in task '{task.name}': add planted=token, or name words of your own")
    return tuple(sorted({e.words[place] for e in task.split("test") for place in e.rationale}))
