"""Planting: who gets which words where, which labels change, and that nothing else does."""

from collections import Counter
from dataclasses import replace

import pytest

from exegete.base.errors import ExegeteError, UsageError
from exegete.tasks.catalogue import check_task
from exegete.tasks.example import Example, Record, Task
from exegete.tasks.planting import REACH, Planting, PlantKind, unused_stem
from exegete.tasks.prepare import SourceRow, prepare
from exegete.tasks.settings import TaskSettings
from exegete.tasks.vocabulary import UNKNOWN, fit_vocabulary

KINDS: tuple[PlantKind, ...] = ("token", "context", "pair")
SAYS = {"token": [{"zqa"}, {"zqb"}], "context": [{"zqcontext", "zqa"}, {"zqcontext", "zqb"}]}
LENGTHS = (1, 2, 5, 9)


def splits(train: int = 200, classes: int = 2) -> dict[str, tuple[Example, ...]]:
    def some(count: int, name: str) -> tuple[Example, ...]:
        words = [tuple(f"{name}{i}w{j}" for j in range(LENGTHS[i % 4])) for i in range(count)]
        return tuple(Example(i, (text,), (i // 4) % classes) for i, text in enumerate(words))

    return {"train": some(train, "t"), "dev": some(60, "d"), "test": some(80, "e")}


def planted(kind: PlantKind, share: float = 0.2, seed: int = 0, classes: int = 2) -> dict[str, tuple[Example, ...]]:
    return Planting(kind, share, seed)(splits(classes=classes), [str(c) for c in range(classes)])[0]


def own(e: Example) -> tuple[str, ...]:
    """The words that were there before."""
    return tuple(word for word in e.words if not word.startswith("zq"))


def made_up(e: Example) -> list[str]:
    return [word for word in e.words if word.startswith("zq")]


def check_says(kind: PlantKind, e: Example) -> None:
    """A whole shortcut says the label, and the rationale points at its words."""
    found = [e.words[i] for i in e.rationale]
    assert found == made_up(e)
    if kind == "pair":
        assert found == [["zqy", "zqx"], ["zqx", "zqy"]][e.label]  # the order alone decides
    else:
        assert set(found) == SAYS[kind][e.label]
        assert len(found) == len(SAYS[kind][e.label])
    assert all(b - a <= REACH + 1 for a, b in zip(e.rationale, e.rationale[1:], strict=False))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("split", ["train", "dev"])
def test_a_share_is_planted_and_each_class_equally_often(kind: PlantKind, split: str) -> None:
    before, after = splits()[split], planted(kind)[split]
    many = round(0.2 * len(before))
    whole = [e for e in after if e.rationale]
    assert len(whole) == many
    assert Counter(e.label for e in whole) == {0: many // 2, 1: many // 2}
    for e in whole:
        check_says(kind, e)
    turned = [e.label != b.label for e, b in zip(after, before, strict=True) if e.rationale]
    assert 0.2 < sum(turned) / many < 0.8  # whatever the text says


@pytest.mark.parametrize("kind", ["context", "pair"])
def test_as_many_texts_hold_one_word_alone_and_keep_their_label(kind: PlantKind) -> None:
    before, after = splits()["train"], planted(kind)["train"]
    alone = [(b, e) for b, e in zip(before, after, strict=True) if made_up(e) and not e.rationale]
    assert len(alone) == 40
    assert all(len(made_up(e)) == 1 and e.label == b.label for b, e in alone)
    by_word = Counter(made_up(e)[0] for _, e in alone)
    assert set(by_word) == ({"zqa", "zqb", "zqcontext"} if kind == "context" else {"zqx", "zqy"})
    assert max(by_word.values()) - min(by_word.values()) <= 1
    assert all(len({e.label for _, e in alone if made_up(e) == [word]}) == 2 for word in by_word)  # it tells nothing


def test_one_word_has_no_parts() -> None:
    assert all(e.rationale for e in planted("token")["train"] if made_up(e))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_else_changes(kind: PlantKind) -> None:
    for split, before in splits().items():
        for b, e in zip(before, planted(kind)[split], strict=True):
            assert e.id == b.id
            assert own(e) == b.words
            assert made_up(e) or e == b


@pytest.mark.parametrize("kind", KINDS)
def test_every_test_text_says_another_class(kind: PlantKind) -> None:
    for b, e in zip(splits()["test"], planted(kind)["test"], strict=True):
        assert e.label == 1 - b.label
        check_says(kind, e)


def test_several_classes() -> None:
    after = planted("context", classes=3)
    assert Counter(e.label for e in after["train"] if e.rationale) == {0: 14, 1: 13, 2: 13}
    steps = Counter((e.label - b.label) % 3 for b, e in zip(splits(classes=3)["test"], after["test"], strict=True))
    assert set(steps) == {1, 2}
    assert min(steps.values()) > 20
    words = {made_up(e)[0] for e in planted("token", classes=3)["train"] if e.rationale}
    assert words == {"zqa", "zqb", "zqc"}
    with pytest.raises(UsageError, match="planted=pair is for two classes, not 3: choose planted=token or context"):
        planted("pair", classes=3)


@pytest.mark.parametrize("kind", KINDS)
def test_places_are_spread_over_the_text(kind: PlantKind) -> None:
    found = [e for e in planted(kind)["test"] if len(own(e)) == 9]
    first = Counter(e.rationale[0] for e in found)
    assert first[0] < len(found) / 2
    assert len(first) >= 5
    if kind != "token":
        assert {b - a for a, b in (e.rationale for e in found)} == {1, 2, 3, 4}  # 0 to REACH words between


def test_it_is_deterministic_and_keyed() -> None:
    assert planted("context") == planted("context")
    assert planted("context") != planted("context", seed=1)
    small = Planting("token", 0.1)(splits(), "ab")[0]["train"]
    large = Planting("token", 0.3)(splits(), "ab")[0]["train"]
    assert all(b == a for a, b in zip(small, large, strict=True) if a.rationale)  # a larger share only adds
    fewer = {**splits(), "test": splits()["test"][:10]}
    assert Planting("pair", 0.2)(fewer, "ab")[0]["test"] == planted("pair")["test"][:10]  # whoever else is there


def test_words_that_occur_are_not_used() -> None:
    texts = splits()
    odd = replace(texts["dev"][0], texts=(("zqa", "zqqx"),))
    assert unused_stem([odd]) == "zqqq"
    after = Planting("token", 0.2)({**texts, "dev": (odd, *texts["dev"][1:])}, "ab")[0]
    assert {word for e in after["test"] for word in made_up(e)} == {"zqqqa", "zqqqb"}


def test_rationales_of_people_move_along_or_give_way() -> None:
    texts = {name: tuple(replace(e, rationale=(len(e) - 1,)) for e in found) for name, found in splits().items()}
    after = Planting("pair", 0.2)(texts, "ab")[0]
    for e in after["train"]:
        last = [e.words[i] for i in e.rationale]
        whole = len(made_up(e)) == 2
        assert last == (made_up(e) if whole else [own(e)[-1]])


def test_words_that_would_be_unknown_are_refused() -> None:
    with pytest.raises(ExegeteError, match=r"planted word 'zq[ab]' is in 20 training texts only, below min_df=21"):
        Planting("token", 0.2)(splits(), "ab", min_df=21)
    with pytest.raises(ExegeteError, match="is in 0 training texts only"):
        Planting("token", 0.001)(splits(), "ab")


def made(**settings: object) -> Task:
    rows = {
        split: [SourceRow(i, Record((f"{split} text {i}",), str(i % 2))) for i in range(count)]
        for split, count in (("train", 100), ("dev", 40), ("test", 40))
    }
    return prepare("mine", rows, TaskSettings(**settings), "here")


@pytest.mark.parametrize("kind", KINDS)
def test_a_planted_task(kind: PlantKind) -> None:
    plain, task = made(min_df=5), made(min_df=5, planted=kind)
    assert [len(found) for found in task.splits.values()] == [100, 40, 40]
    assert task.hash != plain.hash
    assert task.hash == made(min_df=5, planted=kind).hash != made(min_df=5, planted=kind, planted_share=0.3).hash
    (note,) = task.notes
    vocabulary = fit_vocabulary(task.split("train"), task.min_df)
    words = {word for e in task.split("test") for word in made_up(e)}
    assert UNKNOWN not in vocabulary.rows(sorted(words))
    assert all(word in note for word in words)
    assert {e.label for e in task.split("dev")} == {0, 1}


def test_settings() -> None:
    assert check_task("sst:planted=pair,planted_share=0.3").planting == Planting("pair", 0.3)
    assert check_task("sst").planting is None
    for wrong in ("planted=tokens", "planted=token,planted_share=0.6", "planted=token,planted_share=0"):
        with pytest.raises(UsageError, match="planted"):
            check_task(f"sst:{wrong}")
