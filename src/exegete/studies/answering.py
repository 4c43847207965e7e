"""Answering: what the tests of a scorecard say together, in plain words."""

from collections import Counter
from collections.abc import Sequence

from exegete.base.names import Spec, parse
from exegete.figures.labels import importance_label
from exegete.studies.audit import SEEDS_FOR_A_RECIPE, Test, Verdict
from exegete.studies.saying import sayings

VERDICTS: tuple[Verdict, ...] = ("holds", "fails", "cannot tell")
NOT_TESTED = "Agreement is not faithfulness: whether the prediction depends on these weights was not tested."
Named = dict[str, Test]


def answer(tests: Sequence[Test]) -> str:
    """The short answer first, then, in paragraphs of their own, what it is about."""
    models = _by_model(tests)
    said = [_paragraph(named) for named in models.values()]
    about = [f"{_about(named)}, {model} on {task}" for (task, model), named in models.items()]
    tested = any({"beats_random", "used"} & set(named) for named in models.values())
    last = [] if tested else [NOT_TESTED]
    if len(said) == 1:
        short = _short(next(iter(models.values())))
        return "\n\n".join([*short, said[0], " ".join([f"This is about {about[0]}.", *last])])
    counts = Counter(decision(named)[0] for named in models.values())
    numbers = ", ".join(f"{word} for {counts[word]}" for word in VERDICTS)
    question = "May attention be read as an explanation?" if tested else "Does attention rank words as others do?"
    short = [" ".join(_short(named)) for named in models.values()]
    each = [
        f"{where[0].upper()}{where[1:]}: {f'{first} {sentence}'.strip()}"
        for where, first, sentence in zip(about, short, said, strict=True)
    ]
    return "\n\n".join([f"{question} Of {len(said)} models it {numbers}.", *each, *last])


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


def decision(named: Named) -> tuple[Verdict, bool]:
    """What the tests of one model decide, and whether it hangs on ties alone.

    One failure is enough for no; yes needs all. Plausibility never decides: people may like what a model ignores. Nor
    do uniqueness (attention claims to be one explanation, not the only one) and what is about the training recipe.
    """
    agrees, ties = _agreement(named) if "beats_chance" in named else (None, False)
    deciding = [named[n].verdict for n in ("used", "beats_random", "faithful_as_best") if n in named]
    deciding += [test.verdict for test in _planted(named)]
    every: list[Verdict] = [*([agrees] if agrees else []), *deciding]
    if "fails" in every:
        return "fails", False
    # That weights are used is needed for yes, and is not enough: the words that carry them must matter, too.
    enough = "used" not in named or _planted(named) or {"beats_random", "faithful_as_best"} & set(named)
    if every and set(every) == {"holds"} and enough:
        return "holds", False
    return "cannot tell", ties


def _agreement(named: Named) -> tuple[Verdict, bool]:
    raw = named.get("agrees", named["beats_chance"])
    corrected = named.get("agrees_beyond_ties", raw)
    ties = {raw.verdict, corrected.verdict} == {"holds", "fails"}
    if raw.verdict == corrected.verdict:
        return raw.verdict, False
    return "cannot tell", ties


def _paragraph(named: Named) -> str:
    parts = [
        _agrees(named) if "beats_chance" in named else "",
        _faithful(named) if "beats_random" in named else "",
        *sayings(named),
        *(_known(test) for test in _planted(named)),
        _plausible(named["plausible"]) if "plausible" in named else "",
    ]
    return " ".join(filter(None, parts))


def _short(named: Named) -> list[str]:
    """Yes or no, and what to read instead; nothing where only agreement or plausibility was asked for."""
    if not {"beats_random", "used"} & set(named) and not _planted(named):
        return []
    short = {"holds": "Yes.", "fails": "No.", "cannot tell": "Undecided."}[decision(named)[0]]
    best = named.get("faithful_as_best")
    instead = best is not None and best.verdict == "fails"
    return [f"{short} Read {importance_label(parse(best.against).name)} instead." if instead and best else short]


def _agrees(named: Named) -> str:
    others = named["agrees"].against.split(", ") if "agrees" in named else []
    listed = " and ".join(importance_label(parse(name).name) for name in others) or "the other importance"
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
    if ties:
        said = "Undecided, for it hangs on ties: corrected for the words that attention ties, the verdict turns around."
    chance = {
        "holds": "It does agree with them more than noise would.",
        "fails": "It does not even agree with them more than noise would.",
        "cannot tell": "Whether it agrees with them more than noise would is not settled.",
    }[named["beats_chance"].verdict]
    return f"{said} {chance}"


def _faithful(named: Named) -> str:
    over, best = named["beats_random"], named.get("faithful_as_best")
    first = {
        "holds": "Removing the words that it ranks first changes the prediction more than removing random words",
        "fails": "Removing the words that it ranks first changes the prediction no more than removing random words",
        "cannot tell": "Whether removing its first words changes the prediction more than random ones is not settled",
    }[over.verdict]
    if best is None:
        return f"{first}."
    if best.doubt:
        return f"{first}: {best.doubt}."
    other = importance_label(parse(best.against).name)
    second = {
        "holds": f"; it is about as much as with {other}, the best method on the texts held out for choosing it.",
        "fails": f"; with {other}, the best method on the texts held out for choosing it, it changes clearly more.",
        "cannot tell": f"; how it compares with {other}, the best method on held-out texts, is not settled.",
    }[best.verdict]
    size = named.get("faithful_by_size")
    return first + second + (_sign(size) if size is not None and best.verdict == "fails" else "")


def _sign(size: Test) -> str:
    """How much of the difference is that attention does not say for which class a word speaks."""
    other = importance_label(parse(size.against).name)
    return {
        "holds": f" That is for the sign: it finds words that matter about as well as {other} does by size alone, but "
        "not which class they speak for.",
        "fails": f" That is not for the sign alone: by size, too, {other} finds words that matter clearly better.",
        "cannot tell": f" How much of that is the sign is not settled: by size alone the best is {other}.",
    }[size.verdict]


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


def _plausible(test: Test) -> str:
    return {
        "holds": "It marks the words that people marked more than chance does, which says nothing of the model.",
        "fails": "It does not mark the words that people marked.",
        "cannot tell": "Whether it marks the words that people marked is not settled.",
    }[test.verdict]
