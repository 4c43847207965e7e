"""Supporting facts: precision of sentences, against a plain recount."""

import math

import polars as pl
import pytest
import torch

from exegete.base.errors import UsageError
from exegete.experiments.common.contract import Subject
from exegete.experiments.supporting_facts.experiment import SupportingFacts, sentence_owners
from exegete.tasks.example import Example, Task
from tests.small import small_model, texts
from tests.subjects import subject_of

# Three sentences, then two; the marked words make the second and third, and the first of two, supporting.
STORY = (("ann", "bob", "."), ("bob", "."), ("cat", "ann", "bob", "."))
EXAMPLES = (
    Example(0, (sum(STORY, ()), ("ann",)), 0, rationale=(3, 4, 5, 6, 7, 8)),
    Example(1, (("ann", ".", "bob", "cat", "."), ("bob",)), 1, rationale=(0, 1)),
    Example(2, (("ann", ".", "bob", "."), ("bob",)), 1, rationale=(0, 1, 2, 3)),  # every sentence supports the answer
)
TASK = Task("pairs", ("no", "yes"), {"train": EXAMPLES, "dev": EXAMPLES, "test": EXAMPLES}, "here", kind="pair")
NAN = math.nan
SCORES = torch.tensor(
    [
        [0.1, 0.9, 0.0, 0.3, -2.0, 0.2, 0.1, 0.8, 0.0],
        [0.5, 0.0, 0.1, 0.2, -0.9, NAN, NAN, NAN, NAN],
        [0.5, 0.0, 0.1, 0.2, NAN, NAN, NAN, NAN, NAN],
    ],
    dtype=torch.float64,
)


def subject() -> Subject:
    model = small_model("average:size=4,hidden=4", texts(9))
    more = {"predicted": torch.tensor([0, 0, 1]), "scores": {"gradient": SCORES}, "signed": {"gradient": True}}
    return subject_of(model, TASK, EXAMPLES, **more)


def slowly(example: Example, scores: list[float], of: str) -> tuple[float, float]:
    """Precision at k and at 1 of one text, by plain loops."""
    found: list[list[float]] = [[]]
    marked: list[bool] = [False]
    for place, word in enumerate(example.words):
        found[-1].append(scores[place])
        marked[-1] |= place in example.rationale
        if word == "." and place + 1 < len(example.words):
            found.append([])
            marked.append(False)
    total = {"max": [max(w) for w in found], "sum": [sum(w) for w in found], "mean": [sum(w) / len(w) for w in found]}
    order = sorted(range(len(found)), key=lambda s: -total[of][s])
    k = sum(marked)
    return sum(marked[s] for s in order[:k]) / k, float(marked[order[0]])


@pytest.mark.parametrize("of", ["max", "mean", "sum"])
@pytest.mark.parametrize("ranking", ["signed", "magnitude"])
def test_precision_is_that_of_a_plain_recount(of: str, ranking: str) -> None:
    rows = SupportingFacts(("gradient",), of).rows(subject())  # type: ignore[arg-type]
    for e, scores in zip(EXAMPLES[:2], SCORES.tolist(), strict=False):
        sized = [abs(s) for s in scores] if ranking == "magnitude" else scores
        precision, first = slowly(e, sized, of)
        own = rows.filter(pl.col("example") == e.id, pl.col("ranking") == ranking)
        found = dict(own.select("measure", "value").iter_rows())
        assert found == pytest.approx({"precision_at_k": precision, "first": first})
    chance = dict(rows.filter(pl.col("example") < 2).select("example", "chance").iter_rows())
    assert chance == pytest.approx({0: 2 / 3, 1: 1 / 2})


def test_a_text_of_which_every_sentence_supports_the_answer_is_counted_not_averaged() -> None:
    ask = SupportingFacts(("gradient",))
    rows = ask.rows(subject()).with_columns(task=pl.lit("pairs"), model=pl.lit("average"), seed=0, split=pl.lit("test"))
    assert rows.filter(pl.col("example") == 2)["value"].null_count() == 4
    told = ask.summary(rows).filter(pl.col("measure") == "first", pl.col("ranking") == "signed")
    assert dict(told.select("texts", "undefined").iter_rows()) == {"all": 1, "correct": 1}
    assert dict(told.select("texts", "n").iter_rows()) == {"all": 2, "correct": 1}


def test_sentences_are_those_of_the_passage() -> None:
    assert sentence_owners(EXAMPLES[:2]).tolist() == [[0, 0, 0, 1, 1, 2, 2, 2, 2], [0, 0, 1, 1, 1, -1, -1, -1, -1]]


def test_what_it_is_not_for() -> None:
    plain = Task("one", ("no", "yes"), {"train": texts(3), "dev": texts(3), "test": texts(3)}, "here")
    assert "use stories or babi" in (SupportingFacts().unsuited(plain, subject().model) or "")
    with pytest.raises(UsageError, match="way to score a sentence"):
        SupportingFacts(of="best")  # type: ignore[arg-type]
