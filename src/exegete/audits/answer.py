"""Answering: what the tests of a scorecard say together, in plain words."""

from collections import Counter
from collections.abc import Sequence

from exegete.audits.context import Context, Cost, Where
from exegete.audits.goals import DECIDE
from exegete.audits.purposes import Named, purposes
from exegete.audits.saying import listed_in_words, sayings
from exegete.audits.scorecard import SEEDS_FOR_A_RECIPE, Goal, Test, Verdict
from exegete.audits.untested import WORDS
from exegete.base.names import Spec, parse
from exegete.page.labels import method_label

VERDICTS: tuple[Verdict, ...] = ("holds", "fails", "cannot tell")
NOT_TESTED = "Agreement is not faithfulness: whether the prediction depends on these weights was not tested."
AGREEMENT = ("agrees", "agrees_beyond_ties", "beats_chance")  # they decide together


def answer(tests: Sequence[Test], context: Context | None = None) -> str:
    """The short answer first, then, in paragraphs of their own, for which purpose, what else was found, and of what."""
    context = context or Context()
    models = _by_model([test for test in tests if test.verdict != "not testable"])
    about = [f"{_about(named)}, {model} on {task}" for (task, model), named in models.items()]
    tested = any(_is_tested(named) for named in models.values())
    last = [] if tested or context.goal != "faithful" else [NOT_TESTED]
    if len(models) == 1:
        ((where, named),) = models.items()
        about_it = " ".join([f"This is about {about[0]}.", *last])
        first = [*_short(named, context.goal), *_missing(tests, context.goal)]
        return "\n\n".join([*first, *_paragraphs(where, named, context), about_it])
    counts = Counter(decision(named, context.goal)[0] for named in models.values())
    numbers = ", ".join(f"{word} for {counts[word]}" for word in VERDICTS)
    each = [
        f"{place[0].upper()}{place[1:]}: "
        + " ".join([*_short(named, context.goal), *_paragraphs(where, named, context)]).strip()
        for place, (where, named) in zip(about, models.items(), strict=True)
    ]
    return "\n\n".join([f"{_question(context.goal, tested)} Of {len(models)} models it {numbers}.", *each, *last])


def _missing(tests: Sequence[Test], goal: Goal) -> list[str]:
    """A sentence where what a goal hangs on was not told of."""
    needed = [name for name in DECIDE[goal] if name != "used"]  # that weights are used can always be asked
    asked = [test for test in tests if test.name in needed]
    if goal == "faithful" or any(test.verdict != "not testable" for test in asked):
        return []
    words = " or ".join(WORDS[name].removeprefix("whether ") for name in needed)
    why = f"can't be tested: {asked[0].doubt}" if asked else "was not asked"
    return [f"It hangs on whether {words}. That {why}."]


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


def _by_model(tests: Sequence[Test]) -> dict[tuple[str, str], Named]:
    """Tests by task and model; what was found on planted words goes with the same model on the same task without."""
    found: dict[tuple[str, str], Named] = {}
    for test in tests:
        if test.name != "known_answer":
            found.setdefault((test.task, test.model), {})[test.name] = test
    for test in (test for test in tests if test.name == "known_answer"):
        named = found.setdefault((_without_planting(test.task), test.model), {})
        named[f"{test.name} {parse(test.task).settings.get('planted', '')}".strip()] = test
    return found


def _without_planting(task: str) -> str:
    name, settings = parse(task)
    return str(Spec(name, {key: value for key, value in settings.items() if not key.startswith("planted")}))


def _planted(named: Named) -> list[Test]:
    return [test for name, test in named.items() if name.startswith("known_answer")]


def decision(named: Named, goal: Goal = "faithful") -> tuple[Verdict, bool]:
    """What the tests of one model decide for a goal, and whether it hangs on ties alone.

    One failure is enough for no; yes needs all. Only tests with a vote count: uniqueness has none (attention claims to
    be one explanation, not the only one), nor has what is about the training recipe.
    """
    agreement = any(named[name].votes for name in ("agrees", "beats_chance") if name in named)
    agrees, ties = _agreement(named) if agreement else (None, False)
    deciding = [t.verdict for name, t in named.items() if t.votes and name not in AGREEMENT and not _is_void(t)]
    every: list[Verdict] = [*([agrees] if agrees else []), *deciding]
    if "fails" in every:
        return "fails", False
    if every and set(every) == {"holds"} and _enough(named, goal):
        return "holds", False
    return "cannot tell", ties


def _is_void(test: Test) -> bool:
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


def _agreement(named: Named) -> tuple[Verdict, bool]:
    raw = named.get("agrees", named["beats_chance"])
    corrected = named.get("agrees_beyond_ties", raw)
    ties = {raw.verdict, corrected.verdict} == {"holds", "fails"}
    if raw.verdict == corrected.verdict:
        return raw.verdict, False
    return "cannot tell", ties


def _paragraphs(where: Where, named: Named, context: Context) -> list[str]:
    """For which purpose; what else was found; what to read instead, and what that takes."""
    else_ = [
        _agrees(named) if "beats_chance" in named else "",
        *sayings(named),
        *(_known(test) for test in _planted(named)),
    ]
    parts = [*purposes(named, context.goal), " ".join(filter(None, else_)), _instead(where, named, context)]
    return list(filter(None, parts))


def _short(named: Named, goal: Goal) -> list[str]:
    """Yes or no, and what to read instead; nothing where only agreement was asked for."""
    if goal == "faithful" and not _is_tested(named) and not _planted(named):
        return []
    decided = decision(named, goal)[0]
    short, best = {"holds": "Yes.", "fails": "No."}.get(decided, "Undecided."), _better(named)
    if best is None or goal != "faithful":
        return [short]
    method = _method(best)
    return [
        f"{short} For the class that a word speaks for, read {method}."
        if decided == "holds"
        else f"{short} Read {method} instead."
    ]


def _better(named: Named) -> Test | None:
    """The comparison with the best method, where that is clearly better."""
    best = named.get("faithful")
    return best if best is not None and best.verdict == "fails" else None


def _method(test: Test) -> str:
    return method_label(test.against)


def _instead(where: Where, named: Named, context: Context) -> str:
    """What to read in its place, by how much it is better on the test texts, and what it takes."""
    best = _better(named)
    low, high = best.interval if best is not None else (None, None)
    if best is None or best.statistic is None or low is None or high is None:
        return ""
    said = (
        f"Better: {_method(best)}, the best method on the texts held out for choosing it. On the test texts, removing "
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
    others = named["agrees"].against.split(", ") if "agrees" in named else []
    listed = listed_in_words([method_label(name) for name in others]) if others else "the other importance"
    decided, ties = _agreement(named)
    said = {
        "holds": f"Yes, as far as agreement goes: attention ranks words about as {listed} do.",
        "fails": f"Not in place of {listed}: attention ranks words clearly differently. Read {listed} instead.",
        "cannot tell": f"These texts or seeds don't settle whether attention ranks words as {listed} do.",
    }[decided]
    if "beats_random" in named:  # then the short answer and what to read come from there
        said = {
            "holds": f"Attention ranks words about as {listed} do.",
            "fails": f"Attention ranks words clearly differently from {listed}.",
            "cannot tell": said,
        }[decided]
    if decided == "cannot tell" and "recipe" in named["beats_chance"].about:
        said += f" A claim about a training recipe needs {SEEDS_FOR_A_RECIPE} seeds or more."
    if decided == "cannot tell" and (why := _undecided(named)):
        said = f"Whether attention ranks words as {listed} do can't be told: {why}."
    if ties:
        said = "Undecided, for it hangs on ties: corrected for the words that attention ties, the verdict turns around."
    chance = {
        "holds": "It does agree with them more than noise would.",
        "fails": "It does not even agree with them more than noise would.",
        "cannot tell": "Whether it agrees with them more than noise would is not settled.",
    }[named["beats_chance"].verdict]
    return f"{said} {chance}"


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


def _known(test: Test) -> str:
    planted = {
        "context": "a word in the context of another, planted to decide the class",
        "pair": "two words planted to decide the class by their order",
    }.get(parse(test.task).settings.get("planted", ""), "a word planted to decide the class")
    if test.doubt:
        return f"Of {planted}, nothing can be told: {test.doubt}."
    where = "The same model, trained where there is"
    return {
        "holds": f"{where} {planted}: there attention finds it.",
        "fails": f"{where} {planted}: there attention misses it.",
        "cannot tell": f"{where} {planted}: whether attention finds it there is not settled.",
    }[test.verdict]
