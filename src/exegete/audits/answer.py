"""Answering: what the tests of a scorecard say together, in plain words.

The first line is the decision with its coverage and its reason. Then what to read instead, where attention may not be
read, or for the sign; then what the literature's tests found, which inform and do not decide; last, what it is about.
The sentences of tests are those of their declarations; here they are chosen and put together.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from exegete.audits.context import Context, Where
from exegete.audits.criteria import SEEDS_FOR_A_RECIPE
from exegete.audits.decision import ANSWERS, Answer, Decision, decide
from exegete.audits.instead import Readable
from exegete.audits.readings import Ways
from exegete.base.names import Spec, parse
from exegete.experiments.common.test import Goal
from exegete.experiments.tests import by_part, declared
from exegete.page.labels import method_label
from exegete.page.section import Verdict

DECIDING = ("reads", "ranks", "locates", "supports")  # told by the decision
COMPOSED = ("agrees_beyond_ties", "faithful", "faithful_by_size", "known_answer", *DECIDING)  # told with others
ORDERS_WORDS = 0.7  # Γ from which on a method is worth reading instead, as for attention
PLANTED = {
    "context": "a word in the context of another, planted to decide the class",
    "pair": "two words planted to decide the class by their order",
}
Named = dict[str, Verdict]  # the tests of one model on one task
Instead = Mapping[Where, tuple[Readable, ...]]
Read = Mapping[Where, Ways]


def answer(
    lines: Sequence[Verdict],
    context: Context | None = None,
    instead: Instead | None = None,
    readings: Read | None = None,
) -> str:
    """The decision first, then, in paragraphs of their own, what to read, what else was found, and of what."""
    context, instead = context or Context(), instead or {}
    models, decided = by_model(lines), decisions(lines, context.goal, readings)
    told = {
        where: _told(named, decided[where], context.goal, instead.get(where, ())) for where, named in models.items()
    }
    about = {where: f"{_about(named)}, {where[1]} on {where[0]}" for where, named in models.items()}
    if len(models) == 1:
        ((where, paragraphs),) = told.items()
        return "\n\n".join([*paragraphs, f"This is about {about[where]}."])
    counts = Counter(decision.answer for decision in decided.values())
    numbers = ", ".join(f"{ANSWERS[said][:-1].lower()} for {counts[said]}" for said in _order(counts))
    each = [f"{about[where][0].upper()}{about[where][1:]}: {' '.join(told[where])}" for where in models]
    return "\n\n".join([f"{_question(context.goal)} Of {len(models)} models: {numbers}.", *each])


def decisions(lines: Sequence[Verdict], goal: Goal, readings: Read | None = None) -> dict[Where, Decision]:
    """By task and model."""
    return {where: decide(named, goal, (readings or {}).get(where)) for where, named in by_model(lines).items()}


def _order(counts: Counter[Answer]) -> list[Answer]:
    return [said for said in ANSWERS if counts[said]]


def _told(named: Named, decision: Decision, goal: Goal, instead: Sequence[Readable]) -> list[str]:
    """The paragraphs of one model."""
    found = [decision.first, _missing(named, goal), _to_read(decision.answer, instead) if goal == "faithful" else ""]
    asked = {name: line for name, line in named.items() if line.verdict != "not testable"}
    informing = [*_purposes(asked, goal), " ".join([*_sayings(asked), *map(_said, _planted(asked))])]
    return [part for part in (*found, *informing) if part]


def _missing(named: Named, goal: Goal) -> str:
    """A sentence where what a goal hangs on was not told of; that weights are used can always be asked."""
    needed = [test for test in declared().values() if goal in test.goals and test.name != "used"]
    asked = [line for name, line in named.items() if name.split()[0] in {test.name for test in needed}]
    if goal == "faithful" or any(line.verdict != "not testable" for line in asked):
        return ""
    words = " or ".join(test.words.removeprefix("whether ") for test in needed)
    why = f"can't be tested: {asked[0].doubt}" if asked else "was not asked"
    return f"It hangs on whether {words}. That {why}."


def _to_read(said: Answer, instead: Sequence[Readable]) -> str:
    """What to read where attention may not be read; where it may, for the class that a word speaks for."""
    if not instead or said in ("hangs on", "undecided"):
        return ""
    first, *others = instead
    if said != "no":
        return f"Attention has no sign: for the class that a word speaks for, read {first.said}."
    if max(each.gamma for each in instead) < ORDERS_WORDS:
        return f"Nothing that was asked orders words well, either; the best is {first.said}."
    alike = f" As good as can be told: {listed_in_words([each.said for each in others])}." if others else ""
    part = any(parse(each.method).name == "attention_x_gradient" for each in instead)
    weights = " Attention × gradient is among them: weights are part of the answer, and not the whole." if part else ""
    return f"Read {first.said} instead.{alike}{weights}"


def untested(lines: Sequence[Verdict], apart: Collection[str] = ()) -> list[str]:
    """Sentences: what can't be tested here, with its reason, and what was not asked for, but for tests `apart`."""
    known, asked = declared(), {line.name for line in lines}
    absent = {f"It can't be tested {known[n.name].words}: {n.doubt}." for n in lines if n.verdict == "not testable"}
    rest = [test.words for test in by_part() if test.words and not test.kind and test.name not in (*asked, *apart)]
    return [*sorted(absent), *([f"It was not asked {', '.join(rest)}."] if rest else [])]


def _question(goal: Goal) -> str:
    if goal == "plausible":
        return "Does attention mark what a person would mark?"
    if goal == "sanity":
        return "Does attention do something, and find what must be found?"
    return "May attention be read as an explanation?"


def _about(named: Named) -> str:
    """What the tests of a model are about: one checkpoint, where any of them is."""
    about = [test.about for test in named.values() if test.verdict != "not testable"]
    return next((words for words in about if "checkpoint" in words), about[0] if about else "this checkpoint")


def by_model(lines: Sequence[Verdict]) -> dict[Where, Named]:
    """Tests by task and model; what was found on planted words goes with the same model on the same task without."""
    found: dict[Where, Named] = {}
    for test in lines:
        if test.name != "known_answer":
            found.setdefault((test.task, test.model), {})[test.name] = test
    for test in (test for test in lines if test.name == "known_answer"):
        named = found.setdefault((_without_planting(test.task), test.model), {})
        named[f"{test.name} {parse(test.task).settings.get('planted', '')}".strip()] = test
    return {where: named for where, named in found.items() if any(t.verdict != "not testable" for t in named.values())}


def _without_planting(task: str) -> str:
    name, settings = parse(task)
    return str(Spec(name, {key: value for key, value in settings.items() if not key.startswith("planted")}))


def _planted(named: Named) -> list[Verdict]:
    return [test for name, test in named.items() if name.startswith("known_answer")]


def _said(line: Verdict) -> str:
    """A test's own sentence."""
    says = declared()[line.name].says
    return _filled(says["doubt"] if line.doubt and "doubt" in says else says[line.verdict], line)


def _filled(sentence: str, line: Verdict) -> str:
    planted = PLANTED.get(parse(line.task).settings.get("planted", ""), "a word planted to decide the class")
    against = _against(line) if "{against}" in sentence else ""  # else it may be no method
    return sentence.format(against=against, doubt=line.doubt, planted=planted)


def _against(line: Verdict) -> str:
    """The methods that attention is compared with, as people say them."""
    return listed_in_words([method_label(name) for name in line.against.split(", ")])


def listed_in_words(parts: list[str]) -> str:
    """Parts of a sentence: "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _purposes(named: Named, goal: Goal) -> list[str]:
    """A sentence or two for every purpose that was tested."""
    return [
        f"{test.purpose}: {_for_purpose(named, test.name, goal)}"
        for test in by_part()
        if test.purpose and test.name in named
    ]


def _for_purpose(named: Named, name: str, goal: Goal) -> str:
    said = _said(named[name])
    if name == "beats_random":
        return said + _beside_the_best(named)
    if declared()[name].part != "people":
        return said
    return f"{said}." if goal == "plausible" else f"{said}; that says nothing of the model, and has no say here."


def _beside_the_best(named: Named) -> str:
    """How attention compares with the best method, and how much of that is the sign."""
    best, size = named.get("faithful"), named.get("faithful_by_size")
    if best is None:
        return "."
    if best.doubt or size is None or best.verdict == "holds":
        return _said(best)
    explains = declared()[size.name].explains[size.verdict]
    return _said(best) + (_filled(explains, size) if best.verdict == "fails" else _said(size))


def _ties(named: Named) -> list[str]:
    """A sentence where ties alone make the difference."""
    plain, beyond = named.get("agrees"), named.get("agrees_beyond_ties")
    if plain is None or beyond is None or {plain.verdict, beyond.verdict} != {"holds", "fails"}:
        return []
    return [declared()[beyond.name].explains[beyond.verdict]]


def _sayings(named: Named) -> list[str]:
    """Sentences on the tests that have no purpose of their own; those that few seeds leave open share one."""
    told = [test for test in declared().values() if test.says and not test.purpose and test.name not in COMPOSED]
    asked = [test for test in told if test.name in named]
    open_ = [test for test in asked if test.about == "recipe" and named[test.name].verdict == "cannot tell"]
    said = [_said(named[test.name]) for test in asked if test not in open_]
    said[1:1] = _ties(named)  # agrees is told first
    if not open_:
        return said
    listed = listed_in_words([test.says["cannot tell"] for test in open_])
    return [*said, f"Whether {listed} is not settled here; a claim about training needs {SEEDS_FOR_A_RECIPE} seeds."]
