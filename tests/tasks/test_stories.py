"""Stories: a reader who knows nothing of the simulator finds every answer, and needs exactly the marked sentences."""

import hashlib
import re
import time
from collections import Counter
from typing import NamedTuple

import pytest

from exegete.base.errors import UsageError
from exegete.tasks.catalogue import load_task
from exegete.tasks.example import Example, Task
from exegete.tasks.sentences import sentences, split_sentences

SMALL = "train=300,dev=60,test=60"
WALKED = re.compile(r"(\w+) (?:walked|hurried|strolled|wandered) to the (\w+) \.")
TOOK = re.compile(r"(\w+) (?:fetched|lifted|collected) the (\w+) \.")
LEFT = re.compile(r"(\w+) (?:set aside|let go of|abandoned) the (\w+) \.")


@pytest.fixture(scope="module", params=[1, 2, 3])
def stories(request: pytest.FixtureRequest) -> Task:
    return load_task(f"stories:facts={request.param},{SMALL}")


class Seen(NamedTuple):
    """Where everybody and everything is after a sentence, as far as it is known."""

    people: dict[str, str]
    things: dict[str, str]
    hands: dict[str, str]  # who holds a thing


def replay(told: list[str]) -> list[Seen]:
    """The state of the world after every sentence, from the text alone."""
    people: dict[str, str] = {}
    things: dict[str, str] = {}
    hands: dict[str, str] = {}
    states = []
    for sentence in told:
        if match := WALKED.fullmatch(sentence):
            people[match[1]] = match[2]
        elif match := TOOK.fullmatch(sentence):
            hands[match[2]] = match[1]
        elif match := LEFT.fullmatch(sentence):
            hands.pop(match[2], None)
            if match[1] in people:
                things[match[2]] = people[match[1]]
        else:
            raise AssertionError(f"no reader knows this sentence: {sentence}")
        things.update({thing: people[who] for thing, who in hands.items() if who in people})
        states.append(Seen(dict(people), dict(things), dict(hands)))
    return states


def solve(told: list[str], question: str) -> str | None:
    """The answer, read off the states of the world."""
    states = replay(told)
    if match := re.fullmatch(r"Where is the (\w+)", question):
        return states[-1].things.get(match[1]) if states else None
    if match := re.fullmatch(r"Where is (\w+)", question):
        return states[-1].people.get(match[1]) if states else None
    match = re.fullmatch(r"Where was the (\w+) before the (\w+)", question)
    assert match, question
    trail: list[str] = []
    for state in states:
        if match[1] in state.things and trail[-1:] != [state.things[match[1]]]:
            trail.append(state.things[match[1]])
    came = [i for i, place in enumerate(trail) if place == match[2]]
    return trail[came[-1] - 1] if came and came[-1] else None


def read(e: Example) -> tuple[list[str], str, set[int]]:
    """Sentences, question and marked sentences of an example."""
    numbers = sentences(e.words)
    marked = {numbers[i] for i in e.rationale}
    whole = [i for i, number in enumerate(numbers) if number in marked]
    assert list(e.rationale) == whole  # sentences are marked as a whole
    return [" ".join(each) for each in split_sentences(e.words)], " ".join(e.texts[1]), marked


def test_a_reader_finds_every_answer(stories: Task) -> None:
    for split in stories.splits.values():
        for e in split:
            told, question, _ = read(e)
            assert solve(told, question) == stories.labels[e.label], (told, question)


def test_exactly_the_marked_sentences_are_needed(stories: Task) -> None:
    facts = int(stories.name[len("stories:facts=")])
    for e in stories.split("train"):
        told, question, marked = read(e)
        answer = stories.labels[e.label]
        needed = {i for i in range(len(told)) if solve(told[:i] + told[i + 1 :], question) != answer}
        assert needed == marked, (told, question)
        assert len(marked) == facts
        assert solve([told[i] for i in sorted(marked)], question) == answer  # they alone are enough


def test_stories_can_happen(stories: Task) -> None:
    """Nobody takes what is elsewhere or held, leaves what they don't hold, or walks to where they are."""
    for e in stories.split("train"):
        told, _, _ = read(e)
        before = Seen({}, {}, {})
        for sentence, state in zip(told, replay(told), strict=True):
            if match := WALKED.fullmatch(sentence):
                assert before.people.get(match[1]) != match[2]
            elif match := TOOK.fullmatch(sentence):
                assert match[2] not in before.hands
                assert before.things.get(match[2], before.people[match[1]]) == before.people[match[1]]
            elif match := LEFT.fullmatch(sentence):
                assert before.hands[match[2]] == match[1]
            before = state


def test_answers_are_balanced_and_chance_is_told(stories: Task) -> None:
    assert stories.kind == "pair"
    assert len(stories.labels) == 6
    for split, each in (("train", 50), ("test", 10)):
        assert set(Counter(e.label for e in stories.split(split)).values()) == {each}
    assert "chance is 16.7%" in stories.notes[0]
    assert ("20.0%" in stories.notes[0]) == ("facts=3" in stories.name)


def test_no_story_is_there_twice_and_lengths_vary(stories: Task) -> None:
    passages = [e.words for split in stories.splits.values() for e in split]
    assert len(set(passages)) == len(passages) == 420
    lengths = Counter(len(split_sentences(words)) for words in passages)
    most = {"1": 10, "2": 16, "3": 20}[stories.name[len("stories:facts=")]]
    assert set(lengths) == set(range(most // 2, most + 1))


def test_a_guess_that_reads_no_question_is_often_wrong(stories: Task) -> None:
    """Places of a passage alone don't give the answer away: the last one, the first one, the most frequent one."""
    train, labels = stories.split("train"), stories.labels
    right: Counter[str] = Counter()
    for e in train:
        places = [word for word in e.words if word in labels and word not in e.texts[1]]
        guesses = {"last": places[-1], "first": places[0], "most": Counter(places).most_common(1)[0][0]}
        right.update(cue for cue, place in guesses.items() if place == labels[e.label])
    assert max(right.values()) / len(train) < 0.5


@pytest.mark.parametrize("facts", [1, 2, 3])
def test_the_same_seed_gives_the_same_stories_whatever_else_is_asked(facts: int) -> None:
    one, same = load_task(f"stories:facts={facts},{SMALL}"), load_task(f"stories:facts={facts},{SMALL}")
    assert one.hash == same.hash
    smaller = load_task(f"stories:facts={facts},train=70,dev=60,test=60")
    assert smaller.split("train") == one.split("train")[:70]
    assert smaller.split("test") == one.split("test")
    other = load_task(f"stories:facts={facts},{SMALL},seed=1")
    assert not {e.words for e in one.split("train")} & {e.words for e in other.split("train")}


def test_stories_stay_what_they_are() -> None:
    """Published numbers rest on these stories: a change of the simulator must be meant."""
    tasks = [load_task(f"stories:facts={facts},train=40,dev=10,test=10") for facts in (1, 2, 3)]
    written = repr([(e.texts, e.label, e.rationale) for task in tasks for e in task.split("train")])
    assert hashlib.sha256(written.encode()).hexdigest()[:16] == "e320787804379a4d"


def test_sizes_of_the_world() -> None:
    task = load_task("stories:facts=2,train=200,dev=20,test=20,people=2,places=3,objects=1,sentences=8")
    assert len(task.labels) == 3
    names = {e.words[0] for e in task.split("train")}
    assert names == {"Ada", "Bruno"}
    assert {e.texts[1] for e in task.split("train")} == {("Where", "is", "the", "lantern")}
    assert max(len(split_sentences(e.words)) for e in task.split("train")) == 8


def test_many_and_large() -> None:
    task = load_task("stories:facts=3,train=24,dev=12,test=12,people=12,places=12,objects=12,sentences=60")
    assert len(task.labels) == 12
    assert max(len(split_sentences(e.words)) for e in task.split("train")) > 45


def test_the_question_can_be_explained() -> None:
    task = load_task(f"stories:facts=3,{SMALL},explain=question")
    e = task.split("test")[0]
    assert e.explained == 1
    assert e.words[:3] == ("Where", "was", "the")
    assert e.rationale == ()  # marked are words of the passage


def test_stories_are_quick() -> None:
    """Ten thousand in three seconds; the bound leaves room for a busy machine."""
    start = time.process_time()
    load_task("stories:facts=3,train=1000,dev=100,test=100")
    assert time.process_time() - start < 1.5


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ("facts=4", "facts is 1, 2 or 3, not 4"),
        ("facts=0", "facts is 1, 2 or 3, not 0"),
        ("facts=two", "facts"),
        ("facts=3,sentences=2", "3 facts don't fit in 2 sentences: give sentences=3 or more"),
        ("places=1", "1 places are too few for facts=1: give places=2"),
        ("facts=3,places=2", "2 places are too few for facts=3: give places=3"),
        ("places=40", "places"),
        ("people=0", "people"),
        ("objects=99", "objects"),
        ("train=0", "train"),
        ("explain=answer", "'passage' or 'question'"),
        ("fact=2", "did you mean 'facts'"),
        ("sentences=2,people=1,places=2", "no new story that needs 1 facts: allow more sentences"),
    ],
)
def test_what_is_refused(settings: str, sentence: str) -> None:
    with pytest.raises(UsageError) as raised:
        load_task(f"stories:{settings}")
    assert sentence in str(raised.value)
