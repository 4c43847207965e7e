"""Answering: what the tests of a scorecard say together, in plain words, in some eight lines.

First how far attention goes, and why. Then what to read: instead of attention, or for the sign. Then what it would be
wrong to conclude, what to do next, and which model it is about. What the literature's tests found informs and does not
decide: `findings` tells it, with the sentences of their declarations.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from textwrap import wrap
from types import MappingProxyType
from typing import NamedTuple

from exegete.answers.alternatives import Readable
from exegete.answers.context import Context, Where
from exegete.answers.criteria import SEEDS_FOR_A_RECIPE
from exegete.answers.decision import ANSWERS, Answer, Decision, decide
from exegete.answers.grades import Grading
from exegete.answers.groups import OFTEN, BesideGrade
from exegete.answers.readings import Ways
from exegete.base.names import Spec, parse
from exegete.experiments.common.test import Goal
from exegete.experiments.tests import all_tests, by_part
from exegete.report.labels import method_label, model_labels, task_labels
from exegete.report.section import Verdict

DECIDING = ("reads", "ranks", "carries", "locates", "supports")  # told by the decision
COMPOSED = ("agrees_beyond_ties", "faithful", "faithful_by_size", "known_answer", *DECIDING)  # told with others
WRONG = (3, 2, 1)  # conclusions that are warned of: as many as eight lines have room for
LINES, WIDTH = 8, 100  # of a terminal, which an answer should fit
PLANTED = {
    "context": "a word in the context of another, planted to decide the class",
    "pair": "two words planted to decide the class by their order",
}
Named = dict[str, Verdict]  # the tests of one model on one task
Instead = Mapping[Where, tuple[Readable, ...]]


class Known(NamedTuple):
    """What is known beside the lines of a scorecard, by task and model."""

    instead: Instead = MappingProxyType({})
    readings: Mapping[Where, Ways] = MappingProxyType({})
    grades: Mapping[Where, Grading] = MappingProxyType({})
    beside: Mapping[Where, BesideGrade] = MappingProxyType({})
    asked: Mapping[Where, int] = MappingProxyType({})  # texts, those that say nothing among them


def answer(lines: Sequence[Verdict], context: Context | None = None, known: Known | None = None) -> str:
    """In paragraphs: the decision, what to read, what would be wrong to conclude, what to do next, and of what."""
    context, known = context or Context(), known or Known()
    models, decided = by_model(lines), decisions(lines, context.goal, known)
    about = _about(models)
    told = {
        where: [*_told(where, named, decided[where], context, known), _this(about[where], decided[where])]
        for where, named in models.items()
    }
    if len(models) == 1:
        ((_, paragraphs),) = told.items()
        return "\n\n".join(paragraphs)
    counts = Counter(decision.answer for decision in decided.values())
    numbers = ", ".join(f"{_label(key).lower()} for {counts[key]}" for key in ANSWERS if counts[key])
    each = [f"{about[where]}: {' '.join(told[where][:-1])}" for where in models]
    return "\n\n".join([f"{_question(context.goal)} Of {len(models)} models: {numbers}.", *each])


def _label(key: Answer) -> str:
    return re.sub(r" \(.*\)", "", ANSWERS[key])  # without the line itself, which criteria may have moved


def decisions(lines: Sequence[Verdict], goal: Goal, known: Known | None = None) -> dict[Where, Decision]:
    """By task and model."""
    known = known or Known()
    return {
        where: decide(named, goal, known.readings.get(where), known.grades.get(where))
        for where, named in by_model(lines).items()
    }


def _told(where: Where, named: Named, decision: Decision, context: Context, known: Known) -> list[str]:
    """The paragraphs of one model."""
    instead, beside = known.instead.get(where, ()), known.beside.get(where, BesideGrade())
    if context.goal != "faithful":
        asked = {name: line for name, line in named.items() if line.verdict != "not testable"}
        found = [decision.first, _missing(named, context.goal), *_purposes(asked, context.goal)]
        return [part for part in found if part]
    every = context.predictions[where].texts if where in context.predictions else 0
    next_ = _next(decision, known.asked.get(where, decision.texts), every)
    wrong = _wrong(decision, named, beside)
    of = "Of the readout it" if decision.answer == "yes as" else "It"
    for most in WRONG:
        told = f"{of} would be wrong to conclude that {'; or that '.join(wrong[:most])}." if wrong else ""
        found = [part for part in (decision.first, to_read(decision, instead), told, next_) if part]
        if sum(len(wrap(part, WIDTH)) for part in found) < LINES:  # the last says what it is about
            break
    return found


def _this(about: str, decision: Decision) -> str:
    """What it is about, and what it rests on."""
    if not decision.texts:
        return f"This is about {about}."
    again = " Ask again after another training." if "checkpoint" in about else ""
    return f"This is about {about}, asked of {decision.texts} texts.{again}"


def findings(lines: Sequence[Verdict], goal: Goal) -> tuple[str, ...]:
    """What the tests found that inform and do not decide: a paragraph for every purpose, and one for all else."""
    models, found = by_model(lines), list[str]()
    about = _about(models)
    for where, named in models.items():
        asked = {name: line for name, line in named.items() if line.verdict != "not testable"}
        purposes = _purposes(asked, goal) if goal == "faithful" else []
        parts = [*purposes, " ".join([*_sayings(asked), *map(_said, _planted(asked))])]
        of = f"{about[where]}: " if len(models) > 1 else ""
        found += [f"{of}{part}" for part in parts if part]
    return tuple(found)


def _missing(named: Named, goal: Goal) -> str:
    """A sentence where what a goal hangs on was not told of; that weights are used can always be asked."""
    needed = [test for test in all_tests().values() if goal in test.goals and test.name != "used"]
    asked = [line for name, line in named.items() if name.split()[0] in {test.name for test in needed}]
    if any(line.verdict != "not testable" for line in asked):
        return ""
    words = " or ".join(test.words.removeprefix("whether ") for test in needed)
    why = f"can't be tested: {asked[0].doubt}" if asked else "was not asked"
    return f"It hangs on whether {words}. That {why}."


def to_read(decision: Decision, instead: Sequence[Readable]) -> str:
    """What to read: instead of attention, or for the sign; whatever the grade."""
    if not instead or not decision.edges:  # what only guesses has no words to find
        return ""
    first, *others = instead
    if decision.answer.startswith("yes"):
        return f"Attention has no sign: {_for_the_sign(instead)}."
    if max(each.gamma for each in instead) < decision.edges[0]:
        return (
            f"Nothing that was asked orders words well; the best is {first.said}. Leave-one-out is the yardstick "
            "itself: read it where you can afford a pass for every word."
        )
    if decision.answer != "no" and first.better.low is not None and first.better.low <= 0:
        sign = _for_the_sign(instead)
        return f"No method that was asked is surely better. {sign[0].upper()}{sign[1:]}."
    alike = list_in_words([method_label(each.method) for each in others]) if others else ""
    also = f" {alike[0].upper()}{alike[1:]} can't be told from it." if alike else ""
    return f"Read {first.said} instead.{also}"


def _for_the_sign(instead: Sequence[Readable]) -> str:
    """What says for which class a word speaks: not every method does."""
    best = next((each for each in instead if each.signed), None)
    if best is None:
        return f"{method_label(instead[0].method)}, which orders words best, has none either"
    return f"for the class that a word speaks for, read {best.said}"


def in_short(decision: Decision, instead: Sequence[Readable]) -> str:
    """The grade and what to read, for those who have a line for it: "partly; read LRP instead"."""
    if not instead:
        return decision.label
    best = method_label(instead[0].method)
    if decision.answer.startswith("yes"):
        signed = [method_label(each.method) for each in instead if each.signed]
        return f"{decision.label}; for the class that a word speaks for, read {signed[0]}" if signed else decision.label
    if decision.edges and max(each.gamma for each in instead) < decision.edges[0]:
        return f"{decision.label}; nothing that was asked orders words well, the best is {best}"
    return f"{decision.label}; read {best} instead"


def _wrong(decision: Decision, named: Named, beside: BesideGrade) -> list[str]:
    """What it would be wrong to conclude, what is surest of this model first."""
    if decision.gamma is None:
        return []
    return [*_by_classes(decision, beside), *_by_words(decision, beside), *_by_tests(decision, named)]


def _by_classes(decision: Decision, beside: BesideGrade) -> list[str]:
    pair = beside.apart(decision.edges)
    if pair is None:
        return []
    worse, better = pair
    return [f"this holds of every class (Γ {better.mean:.2f} for '{better.name}', {worse.mean:.2f} for '{worse.name}')"]


def _by_words(decision: Decision, beside: BesideGrade) -> list[str]:
    found = []
    if beside.idle >= OFTEN:
        which = f"{beside.idle_is}, which does nothing" if beside.idle_is else "words that do nothing"
        active = f"; Γ without them {beside.active:.2f}" if beside.active is not None else ""
        found.append(f"a word with much weight matters ({beside.idle:.0%} of the weight lies on {which}{active})")
    if beside.opposed >= OFTEN:
        found.append(
            f"a word with weight speaks for the prediction ({beside.opposed:.0%} of the weight lies on words against "
            "it)"
        )
    if beside.void >= OFTEN:
        found.append(f"every prediction has words that matter ({beside.void:.0%} of the texts have none)")
    if not decision.answer.startswith("yes"):
        assert decision.gamma is not None
        wrong = 50 - 50 * decision.gamma[0]
        found.append(
            f"the word with more weight is the one that matters more (not so in up to {wrong:.0f} of 100 pairs)"
        )
    return found


def _by_tests(decision: Decision, named: Named) -> list[str]:
    agrees = named.get("agrees")
    if decision.answer.startswith("yes") or agrees is None or agrees.verdict != "holds":
        return []
    return ["agreeing with gradients shows that it may be read"]


def _next(decision: Decision, asked: int, every: int) -> str:
    """What would tell more, where so many texts of all were asked."""
    if decision.gamma is None or decision.settled or decision.answer.startswith("yes"):
        return ""
    if every > asked:
        more = f"`--texts {every}` ({every - asked} are left), or a longer `--minutes`"
        return f"To settle what is open, ask more texts: {more}."
    return "To settle what is open, it needs more texts than this split has."


def untested(lines: Sequence[Verdict], apart: Collection[str] = ()) -> list[str]:
    """Sentences: what can't be tested here, with its reason, and what was not asked for, but for tests `apart`."""
    known, asked = all_tests(), {line.name for line in lines}
    absent = {f"It can't be tested {known[n.name].words}: {n.doubt}." for n in lines if n.verdict == "not testable"}
    rest = [test.words for test in by_part() if test.words and not test.kind and test.name not in (*asked, *apart)]
    return [*sorted(absent), *([f"It was not asked {', '.join(rest)}."] if rest else [])]


def _question(goal: Goal) -> str:
    if goal == "plausible":
        return "Does attention mark what a person would mark?"
    if goal == "sanity":
        return "Does attention do something, and find what must be found?"
    return "May attention be read as an explanation?"


def _about(models: Mapping[Where, Named]) -> dict[Where, str]:
    """What the tests of each model are about, by names for people that keep them apart."""
    tasks, labels = task_labels([task for task, _ in models]), model_labels([model for _, model in models])
    return {
        (task, model): f"{_called(model, labels[model])} on {tasks[task]} ({_what(named)})"
        for (task, model), named in models.items()
    }


def _called(model: str, label: str) -> str:
    """A label with the kind of the model, where it does not say that."""
    kind = parse(model).name
    return label if kind in label or ":" in kind or "/" in kind else f"{kind} ({label})"


def _what(named: Named) -> str:
    """One checkpoint, where any of the tests is about one."""
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
    says = all_tests()[line.name].says
    return _filled(says["doubt"] if line.doubt and "doubt" in says else says[line.verdict], line)


def _filled(sentence: str, line: Verdict) -> str:
    planted = PLANTED.get(parse(line.task).settings.get("planted", ""), "a word planted to decide the class")
    against = _against(line) if "{against}" in sentence else ""  # else it may be no method
    return sentence.format(against=against, doubt=line.doubt, planted=planted)


def _against(line: Verdict) -> str:
    """The methods that attention is compared with, as people say them."""
    return list_in_words([method_label(name) for name in line.against.split(", ")])


def list_in_words(parts: list[str]) -> str:
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
    if all_tests()[name].part != "people":
        return said
    return f"{said}." if goal == "plausible" else f"{said}; that says nothing of the model, and has no say here."


def _beside_the_best(named: Named) -> str:
    """How attention compares with the best method, and how much of that is the sign."""
    best, size = named.get("faithful"), named.get("faithful_by_size")
    if best is None:
        return "."
    if best.doubt or size is None or best.verdict == "holds":
        return _said(best)
    explains = all_tests()[size.name].explains[size.verdict]
    return _said(best) + (_filled(explains, size) if best.verdict == "fails" else _said(size))


def _ties(named: Named) -> list[str]:
    """A sentence where ties alone make the difference."""
    plain, beyond = named.get("agrees"), named.get("agrees_beyond_ties")
    if plain is None or beyond is None or {plain.verdict, beyond.verdict} != {"holds", "fails"}:
        return []
    return [all_tests()[beyond.name].explains[beyond.verdict]]


def _sayings(named: Named) -> list[str]:
    """Sentences on the tests that have no purpose of their own; those that few seeds leave open share one."""
    told = [test for test in all_tests().values() if test.says and not test.purpose and test.name not in COMPOSED]
    asked = [test for test in told if test.name in named]
    open_ = [test for test in asked if test.about == "recipe" and named[test.name].verdict == "cannot tell"]
    said = [_said(named[test.name]) for test in asked if test not in open_]
    said[1:1] = _ties(named)  # agrees is told first
    if not open_:
        return said
    listed = list_in_words([test.says["cannot tell"] for test in open_])
    return [*said, f"Whether {listed} is not settled here; a claim about training needs {SEEDS_FOR_A_RECIPE} seeds."]
