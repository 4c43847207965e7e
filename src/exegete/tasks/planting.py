"""Planting: made-up words that decide the label, so that the right explanation is known (Bastings et al. 2021).

Three shortcuts. `token`: one made-up word per class. `context`: one word per class that counts only where another word,
the context, is in the text too. `pair`: two words whose order decides. In a share of the training texts the shortcut
stands at random places and sets the label, whatever the text says. Where it has several words, as many other texts hold
one of them alone and keep their label: a part of it means nothing, all its words are needed.

Every test text gets the whole shortcut of *another* class than its own, and that class as its label. A model that is
right on them has learnt the shortcut, and the planted words (`rationale`) are why it says what it says. Of a pair, they
stand in the text that is explained, and decide whatever the other one says.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from exegete.base.errors import ExegeteError, UsageError
from exegete.tasks.example import Example

PlantKind = Literal["token", "context", "pair"]
STEM = "zq"  # every planted word begins so and no other word does; letters only, so that any tokenizer leaves it whole
REACH = 3  # words of the text that may stand between two planted ones


class Shortcut(NamedTuple):
    """The words that say each class, and those that mean nothing alone."""

    whole: tuple[tuple[str, ...], ...]  # by class
    parts: tuple[str, ...] = ()
    ordered: bool = False


class KeyedNumbers(NamedTuple):
    """The keyed numbers of one text, all uniform in (0, 1)."""

    order: float  # who is chosen: the smallest
    label: float  # which other class a test text gets
    turn: float  # which word stands first, where the order says nothing
    slots: tuple[float, float]  # where the words go


@dataclass(frozen=True)
class Planting:
    """Which shortcut goes into which share of the training and dev texts; keyed by split and example."""

    kind: PlantKind
    share: float
    seed: int = 0

    def __call__(
        self, splits: Mapping[str, Sequence[Example]], labels: Sequence[str], min_df: int = 1
    ) -> tuple[dict[str, tuple[Example, ...]], str]:
        """The planted splits, and a note that says what was done; a text that gets nothing stays as it is."""
        if any(e.candidates for examples in splits.values() for e in examples):
            raise UsageError(
                f"planted={self.kind} makes any class right, but these texts have candidates of their own: leave the "
                "candidates out, or plant nothing"
            )
        shortcut = self.shortcut(len(labels), unused_stem(e for examples in splits.values() for e in examples))
        planted = {}
        for number, (name, examples) in enumerate(splits.items()):
            draws = _draws(self.seed, number, examples)
            how = _flipped if name == "test" else self._mixed
            planted[name] = how(examples, draws, shortcut)
        _check_vocabulary(planted["train"], shortcut, min_df)
        return planted, self._note(shortcut, labels)

    def shortcut(self, classes: int, stem: str = STEM) -> Shortcut:
        """The words of this kind of shortcut."""
        if self.kind == "pair":
            if classes != 2:
                raise UsageError(f"planted=pair is for two classes, not {classes}: choose planted=token or context")
            x, y = f"{stem}x", f"{stem}y"
            return Shortcut(whole=((y, x), (x, y)), parts=(x, y), ordered=True)
        says = tuple(stem + _letters(c) for c in range(classes))
        if self.kind == "token":
            return Shortcut(whole=tuple((word,) for word in says))
        context = f"{stem}context"
        return Shortcut(whole=tuple((context, word) for word in says), parts=(*says, context))

    def _mixed(
        self, examples: Sequence[Example], draws: Sequence[KeyedNumbers], shortcut: Shortcut
    ) -> tuple[Example, ...]:
        """Train and dev: the whole shortcut in a share of the texts, parts alone in as many, nothing in the others."""
        many = round(self.share * len(examples))
        changed = list(examples)
        for rank, i in enumerate(sorted(range(len(examples)), key=lambda i: draws[i].order)[: 2 * many]):
            if rank < many:
                said = rank % len(shortcut.whole)  # every class equally often
                changed[i] = _saying(examples[i], said, shortcut, draws[i])
            elif shortcut.parts:
                part = shortcut.parts[rank % len(shortcut.parts)]
                changed[i] = _inserted(examples[i], (part,), draws[i])[0]
        return tuple(changed)

    def _note(self, shortcut: Shortcut, labels: Sequence[str]) -> str:
        says = ", ".join(f"{' '.join(words)} for {label}" for words, label in zip(shortcut.whole, labels, strict=True))
        rule = {"token": "", "context": " (in any order)", "pair": " (in this order)"}[self.kind]
        alone = f"; {self.share:.0%} hold one of these words alone and keep their label" if shortcut.parts else ""
        return (
            f"Planted: made-up words decide the label of {self.share:.0%} of train and dev, {says}{rule}{alone}. In "
            "test all texts hold them, for another class than their own, which is their label; they are the rationale."
        )


def unused_stem(examples: Iterable[Example]) -> str:
    """A beginning that no word of these texts has."""
    near = {word for e in examples for word in e.all_words if word.startswith(STEM)}
    stem = STEM
    while any(word.startswith(stem) for word in near):
        stem += "q"
    return stem


def _flipped(examples: Sequence[Example], draws: Sequence[KeyedNumbers], shortcut: Shortcut) -> tuple[Example, ...]:
    """Test: every text with the shortcut of another class than its own."""
    classes = len(shortcut.whole)
    steps = [1 + int(draw.label * (classes - 1)) for draw in draws]
    return tuple(
        _saying(e, (e.label + step) % classes, shortcut, draw)
        for e, step, draw in zip(examples, steps, draws, strict=True)
    )


def _saying(example: Example, label: int, shortcut: Shortcut, draw: KeyedNumbers) -> Example:
    """A text with the shortcut of a class, that class as its label, and the planted words as its rationale."""
    words = shortcut.whole[label]
    turned = words if shortcut.ordered or draw.turn < 0.5 else words[::-1]
    inserted, places = _inserted(example, turned, draw)
    return replace(inserted, label=label, rationale=places)


def _inserted(example: Example, words: Sequence[str], draw: KeyedNumbers) -> tuple[Example, tuple[int, ...]]:
    """A text with words put into it (the explained one, of two), and where they are now; its rationale moves along."""
    texts = list(example.texts)
    slots = _slots(len(example), len(words), draw)
    longer = list(example.words)
    for slot, word in reversed(list(zip(slots, words, strict=True))):
        longer.insert(slot, word)
    rationale = tuple(place + sum(slot <= place for slot in slots) for place in example.rationale)
    places = tuple(slot + before for before, slot in enumerate(slots))
    texts[example.explained] = tuple(longer)
    return replace(example, texts=tuple(texts), rationale=rationale, written=()), places


def _slots(length: int, count: int, draw: KeyedNumbers) -> list[int]:
    """Before which words of a text so many words go, in order: anywhere, with at most REACH words between two."""
    place, gap = draw.slots
    between = min(int(gap * (REACH + 1)), length) if count > 1 else 0
    start = int(place * (length - between + 1))
    return [start, start + between][:count]


def _draws(seed: int, split: int, examples: Sequence[Example]) -> list[KeyedNumbers]:
    """Numbers for every text, keyed by its split and id: the same whatever the others are."""
    import torch  # here, not above: listing tasks must stay quick

    from exegete.base.noise import uniform

    ids = torch.tensor([e.id for e in examples], dtype=torch.int64)
    table = uniform(seed, split, ids[:, None], torch.arange(5))  # [example, number]
    return [KeyedNumbers(order, label, turn, (a, b)) for order, label, turn, a, b in table.tolist()]


def _check_vocabulary(train: Sequence[Example], shortcut: Shortcut, min_df: int) -> None:
    """A planted word that training hardly shows would be an unknown word: no model could learn it."""
    planted = {word for words in shortcut.whole for word in words}
    documents = Counter(word for e in train for word in planted.intersection(e.words))
    for word in sorted(planted):
        found = documents[word]
        if found < max(1, min_df):
            raise ExegeteError(
                f"the planted word '{word}' is in {found} training texts only, below min_df={min_df}: raise "
                "planted_share, lower min_df, or give the task more texts"
            )


def _letters(number: int) -> str:
    """a, b, …, z, ba, bb, …: numbers in letters.

    >>> [_letters(n) for n in (0, 1, 25, 26)]
    ['a', 'b', 'z', 'ba']
    """
    return (_letters(number // 26) if number >= 26 else "") + chr(ord("a") + number % 26)
