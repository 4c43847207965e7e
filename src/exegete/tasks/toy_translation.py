"""Toy translation: sentences of a small grammar into a made-up language, with the word alignments known.

"three small dogs chase two birds" becomes "avia du kaneko miko tri pelat": the object comes first and the verb last,
the noun before its adjective and its number, and an adjective ends as its noun does (-o or -a). So every word of the
target translates one word of the source, somewhere else in the sentence, and an adjective must look at its noun too:
sure links are the translations, possible ones lead from the noun to its adjective. Sentences are drawn by number: a
smaller split is the beginning of a larger one, and no two sentences are the same, within a split or across splits.
"""

from collections.abc import Iterator
from typing import NamedTuple, Self

from pydantic import model_validator

from exegete.base.errors import UsageError
from exegete.base.names import Spec
from exegete.tasks.example import Link, Links, Task
from exegete.tasks.splits import place
from exegete.tasks.translation import SentencePair, TranslationSettings, translation

NUMBERS = {"two": "du", "three": "tri", "four": "fer", "five": "pem", "six": "sek"}
ADJECTIVES = {"red": "rud", "small": "mik", "old": "vet", "green": "zel", "loud": "gal", "quick": "sor"}
NOUNS = {
    **{"dogs": "kaneko", "horses": "ekvo", "farmers": "ratajo", "ships": "navelo", "bears": "urso"},
    **{"cats": "felina", "birds": "avia", "queens": "regina", "foxes": "lisa", "nurses": "sestra"},
}
VERBS = {"chase": "pelat", "watch": "vidit", "follow": "sekvit", "find": "trovat", "help": "pomit", "fear": "timat"}
WITHOUT_OBJECT = 0.2  # the share of sentences
CHUNK = 500

_PHRASES = len(NUMBERS) * (len(ADJECTIVES) + 1) * len(NOUNS)
SENTENCES = _PHRASES * len(VERBS) * (_PHRASES + 1)  # that there are


class Phrase(NamedTuple):
    """A number, perhaps an adjective, and a noun, in the source's words."""

    number: str
    adjective: str  # empty: none
    noun: str


class Sentence(NamedTuple):
    """Who does what, perhaps to whom."""

    subject: Phrase
    verb: str
    object: Phrase | None


class ToyTranslationTask(TranslationSettings):
    """How many sentences."""

    train: int = 2000  # sizes of the splits
    dev: int = 200
    test: int = 200
    seed: int = 0

    @model_validator(mode="after")
    def _so_many_there_are(self) -> Self:
        sizes = (self.train, self.dev, self.test)
        if min(sizes) < 1 or sum(sizes) > SENTENCES // 2:
            raise UsageError(
                f"train={self.train}, dev={self.dev} and test={self.test} must be 1 or more each and at most "
                f"{SENTENCES // 2:,} together, half of all sentences that there are"
            )
        return self

    def task(self, spec: Spec) -> Task:
        """Write the sentences: test first, then dev, then train, so that none depends on the size of a later one."""
        seen: set[Sentence] = set()
        sizes = {"test": self.test, "dev": self.dev, "train": self.train}
        pairs = {split: list(self._pairs(split, size, seen)) for split, size in sizes.items()}
        return translation(str(spec), pairs, self, f"generated, seed {self.seed}")

    def _pairs(self, split: str, size: int, seen: set[Sentence]) -> Iterator[SentencePair]:
        drawn = _drawn(self.seed, split)
        for row in range(size):
            sentence = next(s for s in drawn if s not in seen)
            seen.add(sentence)
            source, target, links = translate_sentence(sentence)
            yield SentencePair(row, source, target, links, place((source,), self.split_seed))


def translate_sentence(sentence: Sentence) -> tuple[str, str, Links]:
    """Source, target and the links between them."""
    source: list[str] = []
    subject = _said(sentence.subject, source)
    verb = (VERBS[sentence.verb], (len(source),), ())
    source.append(sentence.verb)
    object_ = _said(sentence.object, source) if sentence.object else []
    target = [*object_, *subject, verb]
    links = [
        Link(i, j, sure)
        for j, (_, sure_ones, possible) in enumerate(target)
        for sure, some in ((True, sure_ones), (False, possible))
        for i in some
    ]
    return " ".join(source), " ".join(word for word, _, _ in target), tuple(sorted(links))


_Word = tuple[str, tuple[int, ...], tuple[int, ...]]  # of the target: its sure and its possible words of the source


def _said(phrase: Phrase, source: list[str]) -> list[_Word]:
    """Append a phrase to the source; its words in the target."""
    start = len(source)
    source += [word for word in phrase if word]
    noun = len(source) - 1
    said: list[_Word] = [(NOUNS[phrase.noun], (noun,), ())]
    if phrase.adjective:
        ending = NOUNS[phrase.noun][-1]
        said.append((ADJECTIVES[phrase.adjective] + ending, (start + 1,), (noun,)))
    said.append((NUMBERS[phrase.number], (start,), ()))
    return said


def _drawn(seed: int, split: str) -> Iterator[Sentence]:
    """Sentences without end, each from numbers that only its own number, the split and the seed decide."""
    import torch

    from exegete.base.noise import stable_seed, uniform

    key, start = stable_seed("toy_translation", seed, split), 0
    while True:
        numbers = uniform(key, torch.arange(start, start + CHUNK)[:, None], torch.arange(8))  # [sentence, choice]
        yield from map(_sentence, numbers.tolist())
        start += CHUNK


def _sentence(u: list[float]) -> Sentence:
    subject, object_ = _phrase(u[0:3]), _phrase(u[3:6])
    return Sentence(subject, _choice(tuple(VERBS), u[6]), None if u[7] < WITHOUT_OBJECT else object_)


def _phrase(u: list[float]) -> Phrase:
    return Phrase(_choice(tuple(NUMBERS), u[0]), _choice(("", *ADJECTIVES), u[1]), _choice(tuple(NOUNS), u[2]))


def _choice(words: tuple[str, ...], u: float) -> str:
    return words[int(u * len(words))]
