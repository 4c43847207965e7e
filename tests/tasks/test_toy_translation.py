"""The toy language: its grammar written again, its alignments, and that its sentences depend on the seed alone."""

import pytest

from exegete.base.errors import UsageError
from exegete.tasks.catalogue import load_task
from exegete.tasks.example import Link
from exegete.tasks.pieces import join_pieces, word_of_piece
from exegete.tasks.toy_translation import (
    ADJECTIVES,
    NOUNS,
    NUMBERS,
    SENTENCES,
    VERBS,
    Phrase,
    Sentence,
    translate_sentence,
)

SMALL = "toy_translation:train=300,dev=40,test=50"


def slowly(source: str) -> str:
    """Object, subject, verb; in each phrase noun, adjective, number; an adjective ends as its noun."""
    words = source.split()
    verb = next(i for i, word in enumerate(words) if word in VERBS)
    target = []
    for phrase in (words[verb + 1 :], words[:verb]):
        for word in reversed(phrase):
            ending = NOUNS[phrase[-1]][-1]
            target.append(NOUNS.get(word) or NUMBERS.get(word) or ADJECTIVES[word] + ending)
    return " ".join([*target, VERBS[words[verb]]])


def test_by_hand() -> None:
    sentence = Sentence(Phrase("three", "small", "dogs"), "chase", Phrase("two", "", "birds"))
    source, target, links = translate_sentence(sentence)
    assert (source, target) == ("three small dogs chase two birds", "avia du kaneko miko tri pelat")
    assert set(links) == {
        *(Link(0, 4), Link(1, 3), Link(2, 2), Link(3, 5), Link(4, 1), Link(5, 0)),
        Link(2, 3, sure=False),
    }
    assert translate_sentence(Sentence(Phrase("six", "red", "cats"), "fear", None))[1] == "felina ruda sek timat"


def test_every_pair_follows_the_grammar() -> None:
    task = load_task(SMALL)
    assert (task.kind, task.labels, task.step) == ("translation", (), "quartile")
    assert [len(task.split(split)) for split in ("train", "dev", "test")] == [300, 40, 50]
    for examples in task.splits.values():
        for e in examples:
            source, target = (join_pieces(text) for text in e.texts)
            assert target == slowly(source)
            assert e.label == 0
    assert {len(e.words) for e in task.split("train")} == {3, 4, 5, 6, 7}


def test_links_lead_to_translations() -> None:
    task = load_task(SMALL)
    words = {**NUMBERS, **NOUNS, **VERBS}
    for split, examples in task.splits.items():
        for e in examples:
            source, target = (join_pieces(text).split() for text in e.texts)
            links = task.alignments[split][e.id]
            sure = [link for link in links if link.sure]
            assert sorted(link.source for link in sure) == list(range(len(source)))
            assert sorted(link.target for link in sure) == list(range(len(target)))
            for i, j, certain in links:
                stem = words.get(source[i]) or ADJECTIVES[source[i]]
                if certain:
                    assert target[j].startswith(stem)
                else:
                    assert source[i] in NOUNS
                    assert target[j][:-1] in ADJECTIVES.values()


def test_no_sentence_twice() -> None:
    task = load_task(SMALL)
    sources = [e.texts[0] for examples in task.splits.values() for e in examples]
    assert len(set(sources)) == len(sources) == 390


def test_sizes_and_seeds() -> None:
    task, larger, other = load_task(SMALL), load_task(f"{SMALL.replace('300', '500')}"), load_task(f"{SMALL},seed=1")
    assert larger.split("train")[:300] == task.split("train")
    assert larger.split("test") == task.split("test")
    assert task.hash == load_task(SMALL).hash != other.hash
    assert len({e.texts for e in other.split("test")} & {e.texts for e in task.split("test")}) < 5


def test_pieces_and_reverse() -> None:
    task = load_task(f"{SMALL},pieces=60,reverse=true")
    whole = load_task(SMALL)
    for cut, e in zip(task.split("test"), whole.split("test"), strict=True):
        assert join_pieces(cut.texts[0]) == join_pieces(e.texts[1])
        assert word_of_piece(cut.texts[0])[-1] == len(e.texts[1]) - 1
        assert {(i, j) for i, j, _ in task.alignments["test"][e.id]} == {
            (j, i) for i, j, _ in whole.alignments["test"][e.id]
        }
    assert sum(len(e.words) for e in task.split("test")) > sum(len(e.texts[1]) for e in whole.split("test"))


@pytest.mark.parametrize("sizes", ["test=0", f"train={SENTENCES}"])
def test_more_than_there_are(sizes: str) -> None:
    with pytest.raises(UsageError, match="half of all sentences that there are"):
        load_task(f"toy_translation:{sizes}")
