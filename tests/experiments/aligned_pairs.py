"""Three sentence pairs with links of people, and small translators, that tests of alignment share."""

from dataclasses import replace
from typing import Any

from exegete.experiments.common.contract import Subject
from exegete.models.ours.translator import Translator
from exegete.tasks.example import Example, Link, Links, Task
from tests.models.small_translation import BAHDANAU, small_translator
from tests.subjects import subject_of

TRANSFORMER = "translator:architecture=transformer,hidden=8,heads=2,layers=2"
FEW = ("attention", "gradient_x_input", "occlusion", "random")
# Two words of two pieces, one of one; a sentence of one word; one whose words repeat.
SENTENCES = (
    Example(3, (("▁lo", "w", "▁house"), ("▁das", "▁ha", "us")), 0),
    Example(4, (("▁go",), ("▁geh",)), 0),
    Example(7, (("▁go", "▁go", "▁low", "▁house"), ("▁geh", "▁geh", "▁haus")), 0),
)
GOLD: dict[int, Links] = {
    3: (Link(0, 0, sure=False), Link(1, 1)),
    4: (Link(0, 0),),
    7: (Link(0, 0), Link(1, 1), Link(2, 2, sure=False), Link(3, 2)),
}
TASK = Task("pairs", (), {"train": SENTENCES, "test": SENTENCES}, "made up", kind="translation")
KNOWN = replace(TASK, alignments={"test": GOLD})


def translator(spec: str = BAHDANAU) -> Translator:
    return small_translator(spec, SENTENCES).double()  # so that rounding decides nothing


def subject(model: Any, task: Task = KNOWN) -> Subject:
    return subject_of(model, task)
