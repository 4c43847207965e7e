"""Next words: which steps are asked about, what was written before them, and what comes next."""

from dataclasses import replace

import pytest

from exegete.base.errors import ExegeteError, UsageError
from exegete.models.ours.translator import read_by_decoder
from exegete.tasks.batching import collate
from exegete.tasks.catalogue import load_task
from exegete.tasks.example import Example, Task
from exegete.tasks.next_word import next_words, quartile
from exegete.tasks.pieces import join_pieces, whole_words
from exegete.tasks.vocabulary import END, SPECIAL, UNKNOWN, Vocabulary, fit_vocabulary

TARGETS = (
    ("▁Ein", "▁Hund", ".",),
    ("▁Der", "▁Hund", "▁sieht", "▁einen", "▁Hunde", "korb", "."),
    ("▁„", "Hund", "“", "▁ist", "▁ein", "▁Wort"),
    ("▁Eine", "▁Katze", "▁schläft"),
    ("▁Bulldogge", "▁und", "▁Jagd", "hund"),
)  # fmt: skip


def task_of(targets: tuple[tuple[str, ...], ...] = TARGETS) -> Task:
    examples = tuple(Example(3 * i, (("▁a", "▁b"), target), 0) for i, target in enumerate(targets))
    return Task("mine", (), {"train": examples, "dev": examples[:1], "test": examples}, "here", kind="translation")


def vocabulary_of(task: Task) -> Vocabulary:
    return fit_vocabulary(task.split("train"), wrap=True)


@pytest.mark.parametrize(("lengths", "step"), [([5], 5), ([9, 3], 3), ([4, 3, 2, 1], 1), ([1, 2, 3, 4, 5], 2)])
def test_the_quartile(lengths: list[int], step: int) -> None:
    """The nearest rank: at least a quarter is no longer, and at least three quarters are no shorter."""
    assert quartile(lengths) == step
    assert sum(n <= step for n in lengths) >= len(lengths) / 4
    assert sum(n >= step for n in lengths) >= 3 * len(lengths) / 4


def test_at_the_quartile() -> None:
    task = task_of((*TARGETS, ("▁Ja",), *TARGETS[1:3]))  # lengths 3 7 6 3 4 1 7 6: a quarter are 3 or less
    vocabulary = vocabulary_of(task)
    view = next_words(task, vocabulary, "quartile")
    assert view.labels == (*SPECIAL, *vocabulary.words)
    assert (view.kind, view.step, set(view.splits)) == ("pair", "quartile", {"dev", "test"})
    assert view.notes == (
        "Explained is step 3 of dev, the 25th percentile of its reference lengths in pieces.",
        "Explained is step 3 of test, the 25th percentile of its reference lengths in pieces.",
        "1 sentence was left out of test: shorter than 3 pieces.",
    )
    assert [e.id for e in view.split("test")] == [0, 3, 6, 9, 12, 18, 21]
    for e in view.split("test"):
        whole = next(found for found in task.split("test") if found.id == e.id)
        assert e.texts == (whole.texts[0], whole.texts[1][:2])
        assert view.labels[e.label] == whole.texts[1][2]
        assert e.explained == 0


def test_all_steps() -> None:
    task = task_of()
    vocabulary = vocabulary_of(task)
    view = next_words(task, vocabulary, "all")
    assert len(view.split("test")) == sum(len(target) + 1 for target in TARGETS)
    for sentence in task.split("test"):
        steps = [e for e in view.split("test") if e.id // 1000 == sentence.id]
        assert [e.id % 1000 for e in steps] == list(range(len(sentence.texts[1]) + 1))
        assert [view.labels[e.label] for e in steps] == [*sentence.texts[1], "</s>"]
        assert [e.texts[1] for e in steps] == [sentence.texts[1][:i] for i in range(len(steps))]
        assert steps[-1].label == END
    assert len({e.id for e in view.split("test")}) == len(view.split("test"))


def test_a_word() -> None:
    """Whole, with the case that it has; punctuation beside it is no part of it, a compound is another word."""
    task = task_of()
    view = next_words(task, vocabulary_of(task), "Hund")
    assert [e.id for e in view.split("test")] == [1, 3001, 6001]
    assert [view.labels[e.label] for e in view.split("test")] == ["▁Hund", "▁Hund", "Hund"]
    assert [e.id for e in next_words(task, vocabulary_of(task), "Hundekorb").split("test")] == [3004]
    lower = replace(task, lower=True, splits={"test": (Example(0, (("▁a",), ("▁ein", "▁hund")), 0),), "train": ()})
    assert [e.id for e in next_words(lower, vocabulary_of(task), "Hund").split("test")] == [1]


def test_a_word_of_one_split_only() -> None:
    task = task_of()
    view = next_words(task, vocabulary_of(task), "Katze")
    assert set(view.splits) == {"test"}
    assert view.notes == ("No reference of dev has the word 'Katze'.",)


def test_a_word_that_nobody_says() -> None:
    task = task_of()
    with pytest.raises(UsageError, match="no reference of dev or test has the word 'hund': choose a word"):
        next_words(task, vocabulary_of(task), "hund")


def test_a_word_that_training_lacks() -> None:
    task = task_of()
    view = next_words(task, Vocabulary(("▁Ein",), wrap=True), "Hund")
    assert {e.label for e in view.split("test")} == {UNKNOWN}


def test_too_many_steps() -> None:
    task = task_of((("▁a",) * 1000,))
    with pytest.raises(ExegeteError, match=r"row 1 of dev has a target of 1,000 pieces, and steps are counted below"):
        next_words(task, vocabulary_of(task), "all")
    assert next_words(task, vocabulary_of(task), "quartile").split("test")[0].texts[1] == ("▁a",) * 999
    next_words(task_of((("▁a",) * 999,)), vocabulary_of(task), "all")


def test_the_decoder_reads_up_to_the_step() -> None:
    task = task_of()
    vocabulary = vocabulary_of(task)
    examples = next_words(task, vocabulary, "all").split("test")
    read = read_by_decoder(collate(examples, vocabulary))
    assert read.present.sum(-1).tolist() == [len(e.texts[1]) + 1 for e in examples]


def test_the_toy_language() -> None:
    task = load_task("toy_translation:train=50,dev=10,test=20")
    view = next_words(task, vocabulary_of(task), task.step)
    assert view.hash != task.hash
    for e in view.split("test"):
        whole = next(found for found in task.split("test") if found.id == e.id)
        assert whole_words(join_pieces(whole.texts[1]))[len(e.texts[1])] == view.labels[e.label]
