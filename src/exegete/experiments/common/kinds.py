"""Kinds of tasks: one text, a pair, or a text that is written (Vashishth et al. 2019, section 3)."""

from exegete.experiments.common.contract import Subject
from exegete.models.contract import Stepwise, Writing

ONE, PAIR, GENERATION = "one text", "pair of texts", "generation"
KINDS = (ONE, PAIR, GENERATION)


def kind_of(subject: Subject) -> str:
    """What a subject's model does with texts: classes of one or two, or the next word of a third."""
    if isinstance(subject.model, Stepwise | Writing):
        return GENERATION
    return PAIR if subject.task.kind == "pair" else ONE
