"""A small world: people walk between places, take objects and leave them, and are asked about.

Everything is a number here; words come later. A question is kept only if exactly so many sentences answer it as were
asked for, and each of them is needed: without it the answer is another one or none.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeVar

T = TypeVar("T")

DrawNumber = Callable[[], float]  # the next number of a story, uniform in (0, 1)
PER_SENTENCE = 3  # numbers that a sentence uses at most
# By number of facts: how often somebody would leave an object, and leave or take one. With two facts, left objects are
# to be asked about too; with three, objects are to be carried around.
HANDS = {1: (0.0, 0.0), 2: (0.35, 0.6), 3: (0.15, 0.4)}


class Event(NamedTuple):
    """One sentence: somebody walks to a place, or takes or leaves an object."""

    who: int
    does: Literal["walk", "take", "leave"]
    what: int  # a place, or an object


class World(NamedTuple):
    """How many sentences a question needs, and how many people, places and objects there are."""

    facts: int
    people: int
    places: int
    objects: int


class StoryQuestion(NamedTuple):
    """Where is this person (one fact) or object (two); or where was this object before a place (three)?"""

    about: int
    before: int | None = None


class StoryAnswer(NamedTuple):
    """A place, and the sentences that say so, in order."""

    place: int
    facts: tuple[int, ...]


Told = list[tuple[int, Event]]  # events with their places in the whole story


class Stop(NamedTuple):
    """An object at a place: the sentences that first showed it there, and the last that did."""

    place: int
    arrival: tuple[int, int]
    latest: tuple[int, int]


def story(world: World, sentences: int, draw: DrawNumber) -> list[Event]:
    """So many events that can happen one after the other; the first that is told of anyone is where they go.

    Who acts is drawn evenly. Who can leave or take something may do so (HANDS), else walks to another place. An object
    that nobody has touched may be found anywhere.
    """
    leave, handle = HANDS[world.facts]
    place: list[int | None] = [None] * world.people
    lying: list[int | None] = [None] * world.objects  # where an object was left; None: nowhere yet
    holder: list[int | None] = [None] * world.objects
    events: list[Event] = []
    for _ in range(sentences):
        who, act, what = int(draw() * world.people), draw(), draw()
        here = place[who]
        handled = _handled(who, act < leave, here, lying, holder) if act < handle and here is not None else ()
        if not handled:
            place[who] = to = _another(here, world.places, what)
            events.append(Event(who, "walk", to))
            continue
        thing = handled[int(what * len(handled))]
        events.append(Event(who, "leave" if act < leave else "take", thing))
        lying[thing], holder[thing] = here, None if act < leave else who
    return events


def _handled(who: int, leaves: bool, here: int, lying: list[int | None], holder: list[int | None]) -> list[int]:
    """The objects that somebody could leave, or else take."""
    if leaves:
        return [thing for thing, by in enumerate(holder) if by == who]
    return [thing for thing, by in enumerate(holder) if by is None and lying[thing] in (None, here)]


def _another(place: int | None, places: int, number: float) -> int:
    """A place that is not this one, all equally likely."""
    if place is None:
        return int(number * places)
    other = int(number * (places - 1))
    return other + (other >= place)


def ask_question(world: World, events: Sequence[Event], draw: DrawNumber) -> tuple[StoryQuestion, StoryAnswer] | None:
    """A question that needs exactly the world's number of facts, the first from a drawn one on; None without one."""
    first, then = draw(), draw()
    for about in _subjects(world, events, first, then):
        told = _relevant(world, events, about)
        for question in _from(then, _questions(world, told, about)):
            found = _answer(world, told, question)
            if found and len(found.facts) == world.facts and _needs(world, told, question, found):
                return question, found
    return None


def _from(number: float, items: Sequence[T]) -> Iterator[T]:
    """The items in a circle, from a drawn one on."""
    start = int(number * len(items))
    yield from items[start:]
    yield from items[:start]


def _subjects(world: World, events: Sequence[Event], first: float, then: float) -> list[int]:
    """The people (one fact) or objects that the story tells of, in a drawn order.

    Few objects end where somebody left them and walked away from: in half of the stories with two facts these are asked
    about first, or else whoever knows the last hands would nearly always be right.
    """
    if world.facts == 1:
        return list(_from(first, sorted({who for who, _, _ in events})))
    last = {what: does for _, does, what in events if does != "walk"}  # what happened to an object last
    things = list(_from(first, sorted(last)))
    return sorted(things, key=lambda thing: last[thing] == "take") if world.facts == 2 and then < 0.5 else things


def _questions(world: World, told: Told, about: int) -> list[StoryQuestion]:
    """What could be asked; of the places of an object, about those that it came to only once."""
    if world.facts < 3:
        return [StoryQuestion(about)]
    places = [stop.place for stop in _trail(told, about)]
    return [StoryQuestion(about, place) for place in places[1:] if places.count(place) == 1]


def _relevant(world: World, events: Sequence[Event], about: int) -> Told:
    """The sentences that could matter: those about the object, and the walks of people who ever touch it."""
    told = list(enumerate(events))
    if world.facts == 1:
        return [one for one in told if one[1][0] == about]
    hands = {who for who, does, what in events if what == about and does != "walk"}
    return [(at, event) for at, event in told if (event[0] in hands if event[1] == "walk" else event[2] == about)]


def _needs(world: World, told: Told, question: StoryQuestion, found: StoryAnswer) -> bool:
    """Whether the answer's facts are the very sentences without which a reader would find another answer, or none."""
    for i, (at, _) in enumerate(told):
        changes = _place(world, told[:i] + told[i + 1 :], question) != found.place
        if changes != (at in found.facts):
            return False
    return True


def _place(world: World, told: Told, question: StoryQuestion) -> int | None:
    found = _answer(world, told, question)
    return found.place if found else None


def _answer(world: World, told: Told, question: StoryQuestion) -> StoryAnswer | None:
    """What a reader finds who follows the story sentence by sentence."""
    if world.facts == 1:
        walks = [(at, event.what) for at, event in told if event.who == question.about and event.does == "walk"]
        return StoryAnswer(walks[-1][1], (walks[-1][0],)) if walks else None
    stops = _trail(told, question.about)
    if question.before is None:
        return StoryAnswer(stops[-1].place, stops[-1].latest) if stops else None
    for here, after in zip(stops[-2::-1], stops[:0:-1], strict=True):  # the last time that it came there
        if after.place == question.before:
            return StoryAnswer(here.place, tuple(sorted({*here.latest, *after.arrival})))
    return None


def _trail(told: Told, thing: int) -> list[Stop]:
    """The places of an object, one after the other, each with the sentences that show it there.

    Whoever takes or leaves it shows that it is where they last walked to; whoever holds it takes it along.
    """
    walked: dict[int, tuple[int, int]] = {}  # of people: their place, and the sentence that says so
    held: tuple[int, int] | None = None  # by whom, and the sentence that says so
    stops: list[Stop] = []
    for at, (who, does, what) in told:
        if does == "walk":
            walked[who] = (what, at)
            if held and held[0] == who:
                _stop(stops, what, (held[1], at))
        elif what == thing:
            held = (who, at) if does == "take" else None
            if who in walked:
                place, since = walked[who]
                _stop(stops, place, (since, at))
    return stops


def _stop(stops: list[Stop], place: int, facts: tuple[int, int]) -> None:
    """A further stop, or a further sign of the last one."""
    if stops and stops[-1].place == place:
        stops[-1] = Stop(place, stops[-1].arrival, facts)
    else:
        stops.append(Stop(place, facts, facts))
