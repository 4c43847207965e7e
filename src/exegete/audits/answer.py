"""Answering: what the tests of a scorecard say together, in plain words.

The sentences are those of the declarations; here they are chosen and put together.
"""

from collections import Counter
from collections.abc import Sequence

from exegete.audits.context import Context, Cost, Where
from exegete.audits.criteria import SEEDS_FOR_A_RECIPE
from exegete.base.names import Spec, parse
from exegete.experiments.common.test import Goal
from exegete.experiments.tests import by_part, declared
from exegete.page.labels import method_label
from exegete.page.section import Outcome, Verdict

OUTCOMES: tuple[Outcome, ...] = ("holds", "fails", "cannot tell")
NOT_TESTED = "Agreement is not faithfulness: whether the prediction depends on these weights was not tested."
AGREEMENT = ("agrees", "agrees_beyond_ties", "beats_chance")  # they decide together
COMPOSED = (*AGREEMENT, "faithful", "faithful_by_size", "known_answer")  # they are told together with others
# Where only agreement was asked for, it is the answer.
ALONE = {
    "holds": "Yes, as far as agreement goes: attention ranks words about as {against} do.",
    "fails": "Not in place of {against}: attention ranks words clearly differently. Read {against} instead.",
}
TIES = "Undecided, for it hangs on ties: corrected for the words that attention ties, the verdict turns around."
PLANTED = {
    "context": "a word in the context of another, planted to decide the class",
    "pair": "two words planted to decide the class by their order",
}
Named = dict[str, Verdict]  # the tests of one model on one task


def answer(lines: Sequence[Verdict], context: Context | None = None) -> str:
    """The short answer first, then, in paragraphs of their own, for which purpose, what else was found, and of what."""
    context = context or Context()
    models = _by_model([line for line in lines if line.verdict != "not testable"])
    about = [f"{_about(named)}, {model} on {task}" for (task, model), named in models.items()]
    tested = any(_is_tested(named) for named in models.values())
    last = [] if tested or context.goal != "faithful" else [NOT_TESTED]
    if len(models) == 1:
        ((where, named),) = models.items()
        about_it = " ".join([f"This is about {about[0]}.", *last])
        first = [*_short(named, context.goal), *_missing(lines, context.goal)]
        return "\n\n".join([*first, *_paragraphs(where, named, context), about_it])
    counts = Counter(decision(named, context.goal)[0] for named in models.values())
    numbers = ", ".join(f"{word} for {counts[word]}" for word in OUTCOMES)
    each = [
        f"{place[0].upper()}{place[1:]}: "
        + " ".join([*_short(named, context.goal), *_paragraphs(where, named, context)]).strip()
        for place, (where, named) in zip(about, models.items(), strict=True)
    ]
    return "\n\n".join([f"{_question(context.goal, tested)} Of {len(models)} models it {numbers}.", *each, *last])


def _missing(lines: Sequence[Verdict], goal: Goal) -> list[str]:
    """A sentence where what a goal hangs on was not told of; that weights are used can always be asked."""
    needed = [
        test for test in declared().values() if goal in test.goals and test.name != "used"
    ]  # that is always asked
    asked = [line for line in lines if line.name in {test.name for test in needed}]
    if goal == "faithful" or any(line.verdict != "not testable" for line in asked):
        return []
    words = " or ".join(test.words.removeprefix("whether ") for test in needed)
    why = f"can't be tested: {asked[0].doubt}" if asked else "was not asked"
    return [f"It hangs on whether {words}. That {why}."]


def untested(lines: Sequence[Verdict]) -> list[str]:
    """Sentences: what can't be tested here, with its reason, and what was not asked for."""
    known, asked = declared(), {line.name for line in lines}
    absent = {f"It can't be tested {known[n.name].words}: {n.doubt}." for n in lines if n.verdict == "not testable"}
    rest = [test.words for test in by_part() if test.words and not test.kind and test.name not in asked]
    return [*sorted(absent), *([f"It was not asked {', '.join(rest)}."] if rest else [])]


def _question(goal: Goal, tested: bool) -> str:
    if goal == "plausible":
        return "Does attention mark what a person would mark?"
    if goal == "sanity":
        return "Does attention do something, and find what must be found?"
    return "May attention be read as an explanation?" if tested else "Does attention rank words as others do?"


def _is_tested(named: Named) -> bool:
    """Whether any test looked at what the prediction depends on."""
    return bool({"beats_random", "used"} & set(named))


def _about(named: Named) -> str:
    """What the tests of a model are about: one checkpoint, where any of them is."""
    about = [test.about for test in named.values()]
    return next((words for words in about if "checkpoint" in words), about[0])


def _by_model(lines: Sequence[Verdict]) -> dict[tuple[str, str], Named]:
    """Tests by task and model; what was found on planted words goes with the same model on the same task without."""
    found: dict[tuple[str, str], Named] = {}
    for test in lines:
        if test.name != "known_answer":
            found.setdefault((test.task, test.model), {})[test.name] = test
    for test in (test for test in lines if test.name == "known_answer"):
        named = found.setdefault((_without_planting(test.task), test.model), {})
        named[f"{test.name} {parse(test.task).settings.get('planted', '')}".strip()] = test
    return found


def _without_planting(task: str) -> str:
    name, settings = parse(task)
    return str(Spec(name, {key: value for key, value in settings.items() if not key.startswith("planted")}))


def _planted(named: Named) -> list[Verdict]:
    return [test for name, test in named.items() if name.startswith("known_answer")]


def decision(named: Named, goal: Goal = "faithful") -> tuple[Outcome, bool]:
    """What the tests of one model decide for a goal, and whether it hangs on ties alone.

    One failure is enough for no; yes needs all. Only tests with a vote count: uniqueness has none (attention claims to
    be one explanation, not the only one), nor has what is about the training recipe.
    """
    agreement = any(named[name].votes for name in ("agrees", "beats_chance") if name in named)
    agrees, ties = _agreement(named) if agreement else (None, False)
    deciding = [t.verdict for name, t in named.items() if t.votes and name not in AGREEMENT and not _is_void(t)]
    every: list[Outcome] = [*([agrees] if agrees else []), *deciding]
    if "fails" in every:
        return "fails", False
    if every and set(every) == {"holds"} and _enough(named, goal):
        return "holds", False
    return "cannot tell", ties


def _is_void(test: Verdict) -> bool:
    """Another training, on texts with planted words, that did not learn them says nothing of this model's attention."""
    return test.name == "known_answer" and bool(test.doubt)


def _enough(named: Named, goal: Goal) -> bool:
    """That weights are used is needed, and not enough: their words must matter, or what must be found be found."""
    found = [test for test in (*_planted(named), *filter(None, [named.get("finds_facts")])) if not _is_void(test)]
    if goal == "sanity":
        return bool(found)
    return (
        goal == "plausible" or "used" not in named or bool(found or {"beats_random", "faithful_by_size"} & set(named))
    )


def _agreement(named: Named) -> tuple[Outcome, bool]:
    raw = named.get("agrees", named["beats_chance"])
    corrected = named.get("agrees_beyond_ties", raw)
    ties = {raw.verdict, corrected.verdict} == {"holds", "fails"}
    if raw.verdict == corrected.verdict:
        return raw.verdict, False
    return "cannot tell", ties


def _paragraphs(where: Where, named: Named, context: Context) -> list[str]:
    """For which purpose; what else was found; what to read instead, and what that takes."""
    agrees = [_agrees(named)] if "beats_chance" in named else []
    else_ = [*agrees, *_sayings(named), *map(_said, _planted(named))]
    parts = [*_purposes(named, context.goal), " ".join(else_), _instead(where, named, context)]
    return list(filter(None, parts))


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


def _sayings(named: Named) -> list[str]:
    """Sentences on the tests that have no purpose of their own; those that few seeds leave open share one."""
    told = [test for test in declared().values() if test.says and not test.purpose and test.name not in COMPOSED]
    asked = [test for test in told if test.name in named]
    open_ = [test for test in asked if test.about == "recipe" and named[test.name].verdict == "cannot tell"]
    said = [_said(named[test.name]) for test in asked if test not in open_]
    if not open_:
        return said
    listed = listed_in_words([test.says["cannot tell"] for test in open_])
    return [*said, f"Whether {listed} is not settled here; a claim about training needs {SEEDS_FOR_A_RECIPE} seeds."]


def _short(named: Named, goal: Goal) -> list[str]:
    """Yes or no, and what to read instead; nothing where only agreement was asked for."""
    if goal == "faithful" and not _is_tested(named) and not _planted(named):
        return []
    decided = decision(named, goal)[0]
    short, best = {"holds": "Yes.", "fails": "No."}.get(decided, "Undecided."), _better(named)
    if best is None or goal != "faithful":
        return [short]
    method = _against(best)
    return [
        f"{short} For the class that a word speaks for, read {method}."
        if decided == "holds"
        else f"{short} Read {method} instead."
    ]


def _better(named: Named) -> Verdict | None:
    """The comparison with the best method, where that is clearly better."""
    best = named.get("faithful")
    return best if best is not None and best.verdict == "fails" else None


def _instead(where: Where, named: Named, context: Context) -> str:
    """What to read in its place, by how much it is better on the test texts, and what it takes."""
    best = _better(named)
    low, high = best.interval if best is not None else (None, None)
    if best is None or best.statistic is None or low is None or high is None:
        return ""
    said = (
        f"Better: {_against(best)}, the best method on the texts held out for choosing it. On the test texts, removing "
        f"its first words lowers the probability by {-best.statistic:.3f} [{-high:.3f}, {-low:.3f}] more than removing "
        f"those of attention (mean of {best.n:,} texts)."
    )
    cost = context.costs.get(where, {}).get(best.against)
    return said if cost is None else f"{said} It takes {_passes(cost)} a text, {cost.ms:.1f} ms in one thread."


def _passes(cost: Cost) -> str:
    forward, backward = (
        f"{number:.0f} {name} pass{'es' if round(number) != 1 else ''}"
        for number, name in ((cost.forward, "forward"), (cost.backward, "backward"))
    )
    return f"{forward} and {backward}" if cost.backward else forward


def _agrees(named: Named) -> str:
    raw, (decided, ties) = named.get("agrees"), _agreement(named)
    listed = _against(raw) if raw is not None and raw.against else "the other importance"
    says = dict(declared()["agrees"].says)
    if "beats_random" not in named:  # else the short answer and what to read come from there
        says |= ALONE
    said = says[decided].format(against=listed)
    if decided == "cannot tell" and "recipe" in named["beats_chance"].about:
        said += f" A claim about a training recipe needs {SEEDS_FOR_A_RECIPE} seeds or more."
    if decided == "cannot tell" and (why := _undecided(named)):
        said = says["doubt"].format(against=listed, doubt=why)
    return f"{TIES if ties else said} {_said(named['beats_chance'])}"


def _undecided(named: Named) -> str:
    """Why the tests of agreement can't tell, where it is not for want of texts or seeds."""
    raw = named.get("agrees", named["beats_chance"])
    corrected = named.get("agrees_beyond_ties", raw)
    if raw.n == 0:
        return "no text has a τ, for attention gives all its words the same weight"
    if (raw.verdict, corrected.verdict) == ("holds", "cannot tell"):
        return "it holds, but not surely if τ is corrected for ties"
    if (raw.verdict, corrected.verdict) == ("cannot tell", "holds"):
        return "it holds only if τ is corrected for ties"
    return raw.doubt
