"""The contract of an importance: one score per word of a text, for one prediction."""

from typing import Literal, NamedTuple, Protocol, get_args, runtime_checkable

import torch
from torch import Tensor

from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch

Quantity = Literal["logit", "probability", "loss"]


class Target(NamedTuple):
    """What is explained: which class, which function of its logit, and perhaps against which other class."""

    label: Tensor  # [batch]
    step: Tensor | None = None  # which output word, for translation
    of: Quantity = "logit"
    contrast: Tensor | None = None  # [batch]: why c and not d? f_c − f_d is explained

    def at(self, rows: Tensor) -> "Target":
        """The targets of some rows of a batch."""
        step, contrast = (None if each is None else each[rows] for each in (self.step, self.contrast))
        return Target(self.label[rows], step, self.of, contrast)


class Cost(NamedTuple):
    """What scoring a text took: how often a text of its kind ran forward and backward through the model."""

    forward: Tensor  # [batch]
    backward: Tensor  # [batch]


class Scores(NamedTuple):
    """What an importance returns."""

    values: Tensor  # [batch, token], NaN on padding and outside the explained texts
    signed: bool  # saliency (a word speaks for or against the class) or sensitivity (only how much it matters)
    target: Target
    error: Tensor | None = None  # [batch]: relative completeness or conservation error, where the method has one
    cost: Cost | None = None
    caution: str | None = None  # why scores of this method on this model may say little, as a sentence


class Importance(Protocol):
    """A way to score words. `target=None` explains the predicted class, and the result says so.

    Its class may say what it looks at (`family`, one of `report.families`), how people write its name (`label`), and
    that its scores never have a sign (`signed`).
    """

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        """Score the words of every text of a batch."""


@runtime_checkable
class Choosy(Protocol):
    """An importance that is not for every model."""

    def refuses(self, model: Predictor) -> str | None:
        """Why it can't be used on a model, as a sentence; None if it can."""


def refusal(importance: Importance, model: Predictor) -> str | None:
    """Why an importance can't be used on a model, or None."""
    return importance.refuses(model) if isinstance(importance, Choosy) else None


def explains(importance: Importance, of: Quantity) -> bool:
    """Whether an importance can explain a quantity: any, unless it names those that it can (`explains`)."""
    return of in getattr(importance, "explains", get_args(Quantity))


def predicted(logits: Tensor, of: Quantity = "logit") -> Target:
    """The class that a model predicts."""
    return Target(logits.detach().argmax(-1), of=of)


def explained(logits: Tensor, target: Target) -> Tensor:
    """f_c(x), the number that a target stands for, or f_c(x) − f_d(x), where it is set against a class d."""  # [batch]
    of_class = _of_class(logits, target.label, target.of)
    return of_class if target.contrast is None else of_class - _of_class(logits, target.contrast, target.of)


def _of_class(logits: Tensor, label: Tensor, of: Quantity) -> Tensor:
    """The logit, the probability, or the loss −log p of a class."""  # [batch]
    if of == "logit":
        return logits.gather(-1, label[:, None])[:, 0]
    log_p = logits.log_softmax(-1).gather(-1, label[:, None])[:, 0]
    return log_p.exp() if of == "probability" else -log_p


def on_words(values: Tensor, batch: Batch) -> Tensor:
    """Values with NaN wherever no word is."""
    return torch.where(batch.words, values, torch.nan)


def cost(batch: Batch, forward: int | Tensor = 0, backward: int | Tensor = 0) -> Cost:
    """Passes per text: one number for all texts of a batch, or one each."""
    n = len(batch.ids)
    counts = (torch.as_tensor(passes, dtype=torch.int64, device=batch.ids.device) for passes in (forward, backward))
    return Cost(*(count.expand(n) for count in counts))
