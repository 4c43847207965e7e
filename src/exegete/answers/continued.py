"""Continued: the next word of a language model as the class that is explained, alone or against another.

Why A rather than B: the logit of A minus that of B, where both are one piece (Yin & Neubig 2022, section 3). Answers of
several pieces, or of unequal numbers of them, have the sum of their pieces' log-probabilities in the place of a logit.
"""

from dataclasses import replace
from typing import Any, NamedTuple

from exegete.models.capabilities import Continuing
from exegete.tasks.example import Example
from exegete.training.checkpoint import Checkpoint


class Continuation(NamedTuple):
    """A model that has the answers among its classes, and what these classes are called."""

    checkpoint: Checkpoint
    target: str | None
    contrast: str | None


def continued(checkpoint: Checkpoint, example: Example, target: str | None, contrast: str | None) -> Continuation:
    """The answers after a text: pieces of the vocabulary, or else classes of their own."""
    model: Any = checkpoint.model
    assert isinstance(model, Continuing)
    if target is None and contrast is None:
        return Continuation(checkpoint, None, None)
    if target is None:
        target = model.next_word(example)
    answers = [model.pieces_after(example, each) for each in (target, contrast) if each is not None]
    if all(len(answer) == 1 for answer in answers):
        names = [model.labels[answer[0]] for answer in answers]
        return Continuation(checkpoint, names[0], names[1] if contrast is not None else None)
    viewed = model.answering(answers)
    view = replace(checkpoint, model=viewed)
    return Continuation(view, viewed.labels[0], viewed.labels[1] if contrast is not None else None)
