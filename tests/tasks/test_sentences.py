"""Sentences: examples by hand, and what holds for any text."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from exegete.tasks.batching import collate
from exegete.tasks.example import Example
from exegete.tasks.sentences import sentences, split_sentences
from exegete.tasks.vocabulary import UNKNOWN, Vocabulary


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("good . bad", [0, 0, 1]),
        ("no end here", [0, 0, 0]),
        ("what ?! no ... yes .. so", [0, 0, 1, 1, 2, 2, 3]),
        ("why ? ? ! because", [0, 0, 0, 0, 1]),
        ("he left ( early . ) Then", [0, 0, 0, 0, 0, 0, 1]),
        ('" Go ! " he said . " Why ? \'\'', [0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2]),
        ('he said " no . maybe . " then left', [0, 0, 0, 0, 0, 1, 1, 1, 2, 2]),
        ('it ends . "', [0, 0, 0, 0]),
        ("it `` ends . '' then", [0, 0, 0, 0, 0, 1]),
        ("so . `` then ''", [0, 0, 1, 1, 1]),
        ("a great film.” it ends", [0, 0, 0, 1, 1]),
        ("the end. the start!) x", [0, 0, 1, 1, 2]),
        ("fine ! -rrb- next", [0, 0, 0, 1]),
        ("Mr. Hyde of the U.S. by J. Doe wins", [0] * 9),
        ("mr . hyde vs . j . k . doe wins . yes", [0] * 12 + [1]),
        ("so do i . yes", [0, 0, 0, 0, 1]),
        ("(Dr. Jekyll) met Mrs ... who", [0, 0, 0, 0, 0, 1]),
        ("rated 3.5 or 7/10, well-known", [0] * 5),
        (". . a", [0, 0, 1]),
        (". a", [0, 1]),
        ("", []),
    ],
)
def test_sentences_end_with_closing_punctuation(text: str, expected: list[int]) -> None:
    assert sentences(text.split()) == expected


def test_sentences_as_texts() -> None:
    assert split_sentences(["good", ".", "bad", "!", ")", "so"]) == [("good", "."), ("bad", "!", ")"), ("so",)]
    assert split_sentences([]) == []


WORD = st.sampled_from(["a", "word", "mr", "j", ".", "!", "...", '"', "''", ")", "(", "end.", "e.g.", "``", "…”", "'"])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(WORD, st.text(min_size=1, max_size=4)), max_size=25))
def test_sentences_are_numbered_without_gaps_and_are_the_text(words: list[str]) -> None:
    numbers = sentences(words)
    assert len(numbers) == len(words)
    assert numbers[:1] in ([], [0])
    assert all(b - a in (0, 1) for a, b in pairwise(numbers))
    parts = split_sentences(words)
    assert all(parts)
    assert [word for part in parts for word in part] == words


@settings(max_examples=60, deadline=None)
@given(st.lists(WORD, max_size=15))
def test_without_an_end_mark_there_is_one_sentence_and_marks_never_begin_one(words: list[str]) -> None:
    ends = {".", "!", "...", "end.", "…”"}
    unmarked = [word for word in words if word not in ends]
    assert sentences(unmarked) == [0] * len(unmarked)
    numbers = sentences(words)
    for i in range(1, len(words)):
        if words[i] in {".", "!", "...", "…”"}:
            assert numbers[i] == numbers[i - 1] or words[i - 1] == '"'  # unless it is the quote that began it


def test_batches_say_which_sentence_of_the_example_a_word_is_in() -> None:
    examples = [Example(0, (("a", ".", "b"), ("c", "!", "?"), ("d",)), 0), Example(1, (("unseen.", "b"),), 0)]
    words = ("a", "b", "c", "d")  # marks needn't be in the vocabulary
    plain, wrapped = (collate(examples, Vocabulary(words, wrap)) for wrap in (False, True))
    assert plain.sentence.tolist() == [[0, 0, 1, 2, 2, 2, 3], [0, 1, -1, -1, -1, -1, -1]]
    assert plain.tokens[0, 1] == UNKNOWN
    assert wrapped.sentence[0].tolist() == [-1, 0, 0, 1, -1, -1, 2, 2, 2, -1, -1, 3, -1]
    for batch in (plain, wrapped):
        assert torch.equal(batch.words, (batch.sentence >= 0) & (batch.part == 0))  # the first text is explained
        assert torch.equal(batch.part >= 0, batch.present)
    alone = collate(examples[1:], Vocabulary(words))
    assert torch.equal(alone.sentence[0], plain.sentence[1, :2])
    assert collate([Example(2, ((),), 0)], Vocabulary(words)).sentence.tolist() == [[-1]]
