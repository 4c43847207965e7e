"""Checks: no all-zero scores without a word about them, no score that is not a number, none where no word is."""

from torch import Tensor

from exegete.base.errors import ExegeteError
from exegete.importance.contract import Scores
from exegete.tasks.batching import Batch

_SATURATED = "the probability is saturated and its gradient vanishes: explain the logit (of=logit)"
_NO_EFFECT = "the prediction doesn't depend on any word by this method"


def complaints(scores: Scores, batch: Batch) -> list[str | None]:
    """What is wrong with the scores of every text, as a sentence, or None: all words score 0, or a method's caution."""
    silent = batch.words.any(-1) & ((scores.values == 0) | ~batch.words).all(-1)  # [batch]
    reason = _SATURATED if scores.target.of == "probability" else _NO_EFFECT
    return [
        f"the importance gives every word of example {example} 0: {reason}" if zero else scores.caution
        for example, zero in zip(batch.ids.tolist(), silent.tolist(), strict=True)
    ]


def finite(name: str, scores: Scores, batch: Batch) -> None:
    """Every word has a finite score and nothing else has one; otherwise an error that names the first text."""
    if scores.values.shape != batch.tokens.shape:
        raise ExegeteError(
            f"{name} gave scores of shape {tuple(scores.values.shape)} for tokens of shape {tuple(batch.tokens.shape)}"
            ": an importance must give one score per token"
        )
    lost = (batch.words & ~scores.values.isfinite()).any(-1)
    stray = (~batch.words & ~scores.values.isnan()).any(-1)
    if bool(lost.any()):
        raise ExegeteError(
            f"{name} gave a word of example {_first(batch, lost)} no finite score: an importance must give every word "
            "a number"
        )
    if bool(stray.any()):
        raise ExegeteError(
            f"{name} scored something in example {_first(batch, stray)} that is no word: an importance must give NaN "
            "to padding and to start and end symbols"
        )


def _first(batch: Batch, wrong: Tensor) -> int:
    """The id of the first text that is wrong."""
    return int(batch.ids[wrong][0])
