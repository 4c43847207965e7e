"""Test: the declaration of one line of the scorecard, from which everything that is said of it anywhere is read.

Criteria, judge, answer, report, calibration, the pages of the documentation and `exegete ls tests` have no list of
their own. A declaration stands in its question's folder (`tests.py`); it names its statistic as `module:function`, so
that listing tests imports nothing heavy.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

from exegete.base.catalogue import import_from

if TYPE_CHECKING:
    from exegete.experiments.common.statistic import Evidence, Measured, Varied

Goal = Literal["faithful", "plausible", "sanity"]
# What a test looks at: words that matter, weights as such, reasons that are known, other weights and trainings, people.
Part = Literal["words", "weights", "known reasons", "alternatives", "people"]
PARTS: tuple[Part, ...] = get_args(Part)
PART_TITLES: dict[Part, str] = {
    "words": "Words that matter",
    "weights": "Weights as such",
    "known reasons": "Reasons that are known",
    "alternatives": "Other weights, other trainings",
    "people": "People",
}
Statistic = Callable[["Evidence"], "Measured | Varied | None"]


@dataclass(frozen=True)
class Test:
    """What a test asks, of which rows, when it holds, and what is said then."""

    __test__: ClassVar[bool] = False  # pytest takes classes of this name for its own

    name: str
    question: str
    criterion: str  # when it holds; {margin} stands for the margin
    margin: float
    source: str  # the paper it comes from
    experiments: tuple[str, ...]  # whose rows it needs; in the first one's chapter it is told
    statistic: str | Statistic  # `module:function`, or the function
    part: Part
    label: str = ""  # two to five words for people, which attention does where the test holds; its name unless given
    within: bool = False  # it holds if attention is worse by less than the margin; else it must be better by more
    partly: float | None = None  # a test that fails, but lies above this, fails only partly
    bound: float = 1.0  # no value lies beyond ± this
    about: Literal["checkpoint", "recipe"] = "checkpoint"  # a recipe: the way of training, whatever the number of seeds
    kind: str = ""  # the kind of task that it is for; none: all
    goals: tuple[Goal, ...] = ()  # for which it may decide
    words: str = ""  # "whether …": it stands for its experiment where that was not asked, or can't be
    purpose: str = ""  # of a paragraph of its own in the answer
    says: Mapping[str, str] = field(default_factory=dict)  # by verdict, or for a `doubt`; may name {against}
    explains: Mapping[str, str] = field(default_factory=dict)  # said instead, where the test that it refines fails
    measures: str = ""  # the statistic, in words; this and the next two are for its page
    chance: str = "0"  # what weights that know nothing would score
    remark: str = ""

    def __post_init__(self) -> None:
        if not self.label:
            object.__setattr__(self, "label", self.name.replace("_", " "))

    def threshold(self, margin: float) -> float:
        """What the interval is compared with."""
        return -margin if self.within else margin

    def measured(self, evidence: "Evidence") -> "Measured | Varied | None":
        """The values that the verdict rests on, perhaps by specification; None where these rows have none."""
        statistic: Statistic = import_from(self.statistic)
        return statistic(evidence)
