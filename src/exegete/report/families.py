"""Families: what a method looks at, as its own class says, and the colour that it has everywhere."""

from exegete.base.names import parse
from exegete.importance.catalogue import IMPORTANCES
from exegete.report.theme import NEUTRAL, PALETTE

ATTENTION, OTHER, RANDOM = "attention", "other", "random"
FAMILIES = (ATTENTION, "gradients", "relevance", "erasure", OTHER, RANDOM)
COLOURS = dict(zip(FAMILIES, (*PALETTE, NEUTRAL), strict=True))


def family(method: str) -> str:
    """What a method looks at.

    >>> family("leave_one_out:of=logit"), family("given:file=a.csv"), family("my_own")
    ('erasure', 'other', 'other')
    """
    name = parse(method).name
    declared = getattr(IMPORTANCES[name].load(), "family", OTHER) if name in IMPORTANCES else OTHER
    return declared if declared in FAMILIES else OTHER
