"""Pieces: byte-pair encoding replayed slowly, and what joins back to the text."""

import json
import re
import subprocess
import sys
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exegete.base.errors import ExegeteError, UsageError
from exegete.tasks.pieces import MARK, Pieces, join_pieces, learn_pieces, unknown_count, whole_words, word_of_piece
from exegete.tasks.vocabulary import SPECIAL, UNKNOWN, Vocabulary

TEXTS = (
    "Two dogs are running, and two cats watch the dogs run.",
    "Zwei Hunde laufen, und zwei Katzen sehen den Hunden zu.",
    "The dog's owner (a man) runs after the running dog!",
    "Der Besitzer des Hundes (ein Mann) läuft dem laufenden Hund nach!",
    "Two men are running near the running water of the river.",
)
SIZE = 60
LEARNT = learn_pieces(TEXTS, SIZE)
Merges = list[tuple[str, str]]


def units(text: str) -> list[list[str]]:
    """Words with a mark, letters apart from all else, as single characters: no regular expression of the code's own."""
    found = []
    for word in text.split():
        parts = [list(part) for part in re.split(r"([^\w]+)", word) if part]
        parts[0].insert(0, MARK)
        found += parts
    return found


def merged(unit: list[str], pair: tuple[str, str]) -> list[str]:
    out, i = [], 0
    while i < len(unit):
        both = i + 1 < len(unit) and (unit[i], unit[i + 1]) == pair
        out.append(unit[i] + unit[i + 1] if both else unit[i])
        i += 1 + both
    return out


def merges_of(pieces: Pieces) -> Merges:
    return [(a, b) for a, b in json.loads(pieces.json)["model"]["merges"]]


def test_every_merge_is_of_the_most_frequent_pair() -> None:
    """Sennrich et al. (2016), algorithm 1, replayed on the same texts."""
    words = [unit for text in TEXTS for unit in units(text)]
    characters = {c for unit in words for c in unit}
    merges = merges_of(LEARNT)
    assert len(merges) == SIZE - len(characters)
    for pair in merges:
        counts = Counter(two for unit in words for two in pairwise(unit))
        assert counts[pair] == max(counts.values()) >= 2
        words = [merged(unit, pair) for unit in words]


@pytest.mark.parametrize("text", [*TEXTS, "The running Hundewatch, under (dogs)", "a"])
def test_texts_are_cut_by_the_merges_in_their_order(text: str) -> None:
    slowly = units(text)
    for pair in merges_of(LEARNT):
        slowly = [merged(unit, pair) for unit in slowly]
    assert LEARNT.cut(text) == tuple(piece for unit in slowly for piece in unit)


def test_pairs_that_occur_once_are_no_pieces() -> None:
    learnt = learn_pieces(["abc abd", "xy"], 100)
    assert set(merges_of(learnt)) == {(MARK, "a"), (f"{MARK}a", "b")} or merges_of(learnt) == [("a", "b"), (MARK, "ab")]
    assert learnt.cut("xy") == (MARK, "x", "y")


@given(st.text(alphabet="Twodgs anu,.()'-\t\n ", max_size=30))
@settings(max_examples=100, deadline=None)
def test_pieces_join_back_to_the_text(text: str) -> None:
    pieces = LEARNT.cut(text)
    if not unknown_count([pieces]):
        assert join_pieces(pieces) == " ".join(text.split())
    assert [join_pieces(p for p, w in zip(pieces, word_of_piece(pieces), strict=True) if w == i) for i in
            range(len(text.split()))] == join_pieces(pieces).split()  # fmt: skip


@given(st.lists(st.sampled_from([MARK, f"{MARK}a", "b", ",", f"{MARK}cd", "<unk>"]), max_size=8))
@settings(max_examples=100, deadline=None)
def test_words_of_whatever_a_model_writes(pieces: list[str]) -> None:
    """Also where marks follow each other, begin nothing, or are missing at the start."""
    numbers, words = word_of_piece(pieces), join_pieces(pieces).split()
    assert len(numbers) == len(pieces)
    assert numbers == sorted(numbers)
    for i, word in enumerate(words):
        assert "".join(p for p, n in zip(pieces, numbers, strict=True) if n == i).replace(MARK, "") == word
    assert not words or set(numbers) == set(range(len(words)))


def test_unknown_characters() -> None:
    pieces = LEARNT.cut("Two ☃☃ dogs▁")
    assert pieces.count("<unk>") == unknown_count([pieces]) == 3  # a mark of the text's own is no mark
    assert join_pieces(pieces) == "Two <unk><unk> dogs<unk>"
    assert Vocabulary(("a",)).rows(["<unk>"]) == [UNKNOWN]


def test_no_piece_is_a_special_symbol() -> None:
    texts = [" ".join(f"x{s} {s}" for s in SPECIAL)] * 20
    learnt = learn_pieces(texts, 60)
    assert not set(learnt.cut(texts[0])) & set(SPECIAL)
    assert join_pieces(learnt.cut(texts[0])) == texts[0]


def test_case() -> None:
    assert LEARNT.cut("Two") != LEARNT.cut("two")
    learnt = learn_pieces(TEXTS, SIZE, lower=True)
    assert learnt.cut("TWO Dogs") == learnt.cut("two dogs")
    assert join_pieces(learnt.cut("TWO Dogs")) == "two dogs"
    assert whole_words("Two Dogs", lower=True) == ("▁two", "▁dogs")


def test_kept_as_json() -> None:
    assert Pieces(LEARNT.json).cut(TEXTS[0]) == LEARNT.cut(TEXTS[0])
    assert Pieces(LEARNT.json) == LEARNT


def test_the_same_pieces_in_every_process_and_order() -> None:
    code = f"from exegete.tasks.pieces import learn_pieces; print(learn_pieces({TEXTS[::-1]!r}, {SIZE}).json)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == LEARNT.json


def test_fewer_pieces_than_characters() -> None:
    with pytest.raises(UsageError, match=r"pieces=5 is fewer than the \d+ different characters of train: ask for more"):
        learn_pieces(TEXTS, 5)


def test_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ExegeteError, match=r'package tokenizers: pip install "sacrebleu'):
        learn_pieces(TEXTS, SIZE)
