"""Stories: questions over generated stories, where the sentences that answer each question are known.

Like the first three bAbI tasks (Weston et al. 2015) in what they ask, with a simulator and words of our own. One fact:
where is a person, whose last walk counts. Two: where is an object, with whoever took it last or where it was left.
Three: where was an object before it came to a place. Other people, objects and earlier walks distract. The sentences
that answer the question, each of them needed, are the rationale. Stories are drawn by number: a smaller split is the
beginning of a larger one, and no two stories are the same, within a split or across splits.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Annotated, Self

from pydantic import Field, model_validator

from exegete.base.errors import UsageError
from exegete.base.names import Spec
from exegete.tasks.example import Record, Task
from exegete.tasks.prepare import SourceRow, prepare
from exegete.tasks.settings import AtLeastOne, PairSource
from exegete.tasks.story_world import PER_SENTENCE, Event, StoryAnswer, StoryQuestion, World, ask_question, story

PEOPLE = ("Ada", "Bruno", "Clara", "Emil", "Farah", "Greta", "Hugo", "Ines", "Jonas", "Kenji", "Lena", "Marco")
PLACES = (
    *("attic", "bakery", "cellar", "harbour", "library", "orchard"),
    *("chapel", "market", "museum", "stable", "terrace", "workshop"),
)
OBJECTS = (
    *("lantern", "violin", "kettle", "compass", "basket", "umbrella"),
    *("candle", "hammer", "ladder", "mirror", "pillow", "trumpet"),
)
WORDING = {
    "walk": ("walked to", "hurried to", "strolled to", "wandered to"),
    "take": ("fetched", "lifted", "collected"),
    "leave": ("set aside", "let go of", "abandoned"),
}
SENTENCES = {1: 10, 2: 16, 3: 20}  # the most, by number of facts
AT_ONCE = 3  # drafts that are drawn for every story: nearly always one of them can be asked about
TRIES = 200  # drafts before giving up
CHUNK = 500


class StoriesTask(PairSource):
    """How many stories of which kind."""

    facts: int = 1  # sentences that a question needs: 1, 2 or 3
    train: AtLeastOne = 10_000  # sizes of the splits
    dev: AtLeastOne = 1_000
    test: AtLeastOne = 1_000
    sentences: AtLeastOne | None = None  # the most; stories have from half as many; 10, 16 or 20 unless given
    people: Annotated[int, Field(ge=1, le=len(PEOPLE))] = 4
    places: Annotated[int, Field(le=len(PLACES))] = 6
    objects: Annotated[int, Field(ge=1, le=len(OBJECTS))] = 3
    seed: int = 0

    @model_validator(mode="after")
    def _a_question_is_possible(self) -> Self:
        if self.facts not in SENTENCES:
            raise UsageError(f"task 'stories': facts is 1, 2 or 3, not {self.facts}")
        if self.longest < self.facts:
            raise UsageError(
                f"task 'stories': {self.facts} facts don't fit in {self.longest} sentences: "
                f"give sentences={self.facts} or more"
            )
        least = 3 if self.facts == 3 else 2  # of two places, the one that the question doesn't name is the answer
        if self.places < least:
            few = f"{self.places} places are too few for facts={self.facts}"
            raise UsageError(f"task 'stories': {few}: give places={least}")
        return self

    @property
    def longest(self) -> int:
        """The most sentences of a story."""
        return self.sentences or SENTENCES[self.facts]

    @property
    def shortest(self) -> int:
        """The fewest sentences of a story."""
        return max(self.facts, (self.longest + 1) // 2)

    @property
    def world(self) -> World:
        """The world that these settings ask for."""
        return World(self.facts, self.people, self.places, self.objects)

    def task(self, spec: Spec) -> Task:
        """Write the stories: test first, then dev, then train, so that none depends on the size of a later one."""
        seen: set[str] = set()
        rows = {split: list(self._rows(split, size, seen)) for split, size in self._sizes.items()}
        return prepare(str(spec), rows, self, f"generated, seed {self.seed}", (self._note,))

    @property
    def _sizes(self) -> dict[str, int]:
        return {"test": self.test, "dev": self.dev, "train": self.train}

    @property
    def _note(self) -> str:
        alone = f", or {1 / (self.places - 1):.1%} for who knows that it is not the place in the question"
        return (
            f"The answers are {self.places} places, equally often: chance is {1 / self.places:.1%}"
            f"{alone if self.facts == 3 else ''}. The rationales are the sentences that the questions need."
        )

    def _rows(self, split: str, size: int, seen: set[str]) -> Iterator[SourceRow]:
        for number, drafts in enumerate(self._drafts(split, size)):
            yield SourceRow(number, self._record(number % self.places, drafts, seen))

    def _record(self, wanted: int, drafts: Iterator[Sequence[float]], seen: set[str]) -> Record:
        """The first new draft that can be asked about, with its places named so that the answer is the wanted one.

        The world treats all places alike, so their names can be given afterwards: answers are balanced, nothing else
        is changed.
        """
        for numbers in drafts:
            told = _told(self, numbers, wanted)
            if told and told.texts[0] not in seen:
                seen.add(told.texts[0])
                return told
        raise UsageError(
            f"task 'stories': {TRIES} drafts gave no new story that needs {self.facts} facts: allow more sentences, "
            "people or objects, or ask for fewer stories"
        )

    def _drafts(self, split: str, size: int) -> Iterator[Iterator[Sequence[float]]]:
        """The numbers of the drafts of every story, keyed by seed, split, story and draft."""
        import torch  # here, not above: listing tasks must stay quick

        from exegete.base.noise import stable_seed, uniform

        key = stable_seed("stories", self.seed, self.facts, split)
        places = torch.arange(3 + (PER_SENTENCE + 1) * self.longest + self.places)

        def drawn(ids: torch.Tensor, first: int, last: int) -> list[list[list[float]]]:
            table: list[list[list[float]]] = uniform(
                key, ids[:, None, None], torch.arange(first, last)[:, None], places
            ).tolist()  # [story, draft, number]
            return table

        def further(number: int, drafts: list[list[float]]) -> Iterator[Sequence[float]]:
            yield from drafts
            yield from drawn(torch.tensor([number]), AT_ONCE, TRIES)[0]

        for start in range(0, size, CHUNK):
            ids = torch.arange(start, min(start + CHUNK, size))
            for number, drafts in zip(ids.tolist(), drawn(ids, 0, AT_ONCE), strict=True):
                yield further(number, drafts)


def _told(settings: StoriesTask, numbers: Sequence[float], wanted: int) -> Record | None:
    """A story in words, with its question, answer and supporting sentences; None if nothing can be asked."""
    draws = iter(numbers)
    length = settings.shortest + int(next(draws) * (settings.longest - settings.shortest + 1))
    events = story(settings.world, length, draws.__next__)
    asked = ask_question(settings.world, events, draws.__next__)
    if asked is None:
        return None
    names = _names([next(draws) for _ in range(settings.places)], asked[1].place, wanted)
    return _written(events, *asked, names, [next(draws) for _ in events])


def _names(order: Sequence[float], answer: int, wanted: int) -> list[str]:
    """A name for every place, in a drawn order in which the answer has the wanted one."""
    names = sorted(range(len(order)), key=order.__getitem__)
    other = names.index(wanted)
    names[other], names[answer] = names[answer], wanted
    return [PLACES[name] for name in names]


def _written(
    events: Sequence[Event],
    question: StoryQuestion,
    answer: StoryAnswer,
    names: Sequence[str],
    wording: Sequence[float],
) -> Record:
    sentences = []
    for (who, does, what), number in zip(events, wording, strict=True):
        verbs = WORDING[does]
        thing = names[what] if does == "walk" else OBJECTS[what]
        sentences.append(f"{PEOPLE[who]} {verbs[int(number * len(verbs))]} the {thing} .")
    ends = [0, *accumulate(sentence.count(" ") + 1 for sentence in sentences)]  # in words
    rationale = tuple((ends[at], ends[at + 1]) for at in answer.facts)
    return Record((" ".join(sentences), _asked(len(answer.facts), question, names)), names[answer.place], rationale)


def _asked(facts: int, question: StoryQuestion, names: Sequence[str]) -> str:
    if facts == 1:
        return f"Where is {PEOPLE[question.about]}"
    if question.before is None:
        return f"Where is the {OBJECTS[question.about]}"
    return f"Where was the {OBJECTS[question.about]} before the {names[question.before]}"
