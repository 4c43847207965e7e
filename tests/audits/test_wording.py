"""What the answer says, against the verdicts and numbers of many scorecards."""

import re
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from exegete.audits.answer import DECIDING, answer, decisions
from exegete.audits.context import GUESS, Context, MethodCost
from exegete.audits.decision import PARTLY
from exegete.audits.goals import votes
from exegete.audits.instead import Readable
from exegete.experiments.common.test import Goal
from exegete.experiments.tests import built_in, declared
from exegete.page.section import Outcome, Variant, Verdict
from tests.audits.cards import VOID, WAYS, still

WHERE = ("t", "m")
NUMBER = re.compile(r"(?<![\w.])[-−]?\d[\d,]*(?:\.\d+)?")
INFORMING = [name for name in built_in() if name not in DECIDING]
SEEDS_NEEDED = "5"  # of a claim about training
values = st.integers(-95, 95).map(lambda x: x / 100)


def compared(mean: float, half: float, threshold: float) -> Outcome:
    """What an interval says of a threshold."""
    return "holds" if mean - half > threshold else "fails" if mean + half < threshold else "cannot tell"


def outcome_of(found: Sequence[Variant]) -> Outcome:
    """What specifications say together, those that count."""
    said = {variant.verdict for variant in found if not variant.void}
    if len(said) == 1:
        return said.pop()
    return "hangs on" if {"holds", "fails"} <= said else "cannot tell"


@st.composite
def several_ways(draw: st.DrawFn, name: str, goal: Goal) -> Verdict:
    """A test that is asked in several ways, with what follows from its numbers."""
    threshold = declared()[name].margin
    found = []
    for way in WAYS[: draw(st.integers(1, len(WAYS)))]:
        mean, half, void = draw(values), draw(st.sampled_from([0.03, 0.2])), draw(st.integers(0, 9)) == 0
        said: Outcome = "cannot tell" if void else compared(mean, half, threshold)
        found.append(
            Variant(way, mean, mean - half, mean + half, draw(st.integers(40, 99)), said, VOID if void else "")
        )
    outcome, first = outcome_of(found), next((v for v in found if not v.void), None)
    settle = f"About {draw(st.integers(100, 900))} texts would settle it." if outcome == "cannot tell" and first else ""
    return Verdict(
        name, *WHERE, "?", first.statistic if first else None, first.n if first else 0, verdict=outcome,
        about="this checkpoint",
        doubt="" if first else VOID, settle=settle, votes=votes(name, goal), threshold=threshold, variants=tuple(found),
    )  # fmt: skip


@st.composite
def one_way(draw: st.DrawFn, name: str, goal: Goal) -> Verdict:
    """A test that informs."""
    test = declared()[name]
    threshold, mean = test.threshold(test.margin), draw(values)
    said = compared(mean, draw(st.sampled_from([0.01, 0.3])), threshold)
    doubt = draw(st.sampled_from(["", "", "the words hardly matter"]))
    absent = draw(st.integers(0, 5)) == 0
    outcome: Outcome = "not testable" if absent else "cannot tell" if doubt else said
    return Verdict(
        name, *WHERE, "?", mean, 100, verdict=outcome, about="this checkpoint", against="lrp, gradient",
        doubt="why not" if absent else doubt, votes=votes(name, goal), threshold=threshold,
    )  # fmt: skip


@st.composite
def scorecards(draw: st.DrawFn) -> tuple[Goal, list[Verdict]]:
    goal: Goal = draw(st.sampled_from(["faithful", "faithful", "plausible", "sanity"]))
    lines = [draw(several_ways(name, goal)) for name in DECIDING if draw(st.integers(0, 7))]
    if draw(st.integers(0, 4)) == 0:
        lines = [*(line for line in lines if line.name != "locates"), still()]
    lines += [draw(one_way(name, goal)) for name in INFORMING if draw(st.booleans())]
    if draw(st.integers(0, 5)) == 0:
        doubted = {"verdict": "cannot tell", "doubt": GUESS, "settle": ""}
        lines = [replace(line, **doubted) if line.verdict != "not testable" else line for line in lines]  # type: ignore[arg-type]
    return goal, lines


@st.composite
def readables(draw: st.DrawFn) -> tuple[Readable, ...]:
    methods = draw(st.lists(st.sampled_from(["lrp", "attention_x_gradient", "gradient"]), unique=True, max_size=3))
    return tuple(
        Readable(
            method, g := draw(values), g - 0.04, g + 0.04, 100, MethodCost(1.0, 1.0, draw(st.integers(1, 99)) / 10)
        )
        for method in methods
    )


def numbers(lines: Sequence[Verdict], instead: Sequence[Readable], coverage: tuple[int, int]) -> set[str]:
    """All that may be said: numbers of the scorecard as they are rounded, and those in its own sentences."""
    own = [n for v in lines for n in (v.statistic, v.threshold, *v.interval)]
    own += [n for line in lines for v in line.variants for n in (v.statistic, v.low, v.high)]
    own += [n for r in instead for n in (r.gamma, r.low, r.high, r.cost.ms if r.cost else None)]
    said = {f"{n:.{digits}f}" for n in own if n is not None for digits in (1, 2, 3)}
    words = " ".join([line.doubt + line.settle for line in lines])
    return said | set(NUMBER.findall(words)) | {*map(str, coverage), SEEDS_NEEDED, "2"}  # 2 passes


@settings(deadline=None, max_examples=200)
@given(scorecards(), readables())
def test_the_answer_says_what_its_scorecard_says(
    card: tuple[Goal, list[Verdict]], instead: tuple[Readable, ...]
) -> None:
    goal, lines = card
    found = decisions(lines, goal)
    if not found:  # nothing could be tested
        return
    (decision,) = found.values()
    said = answer(lines, Context(goal), {WHERE: instead})
    first = said.split("\n\n")[0]
    named = {line.name: line for line in lines}
    _is_well_formed(said)

    # Yes and No are what deciding tests say.
    deciding = [line for line in lines if (line.votes and line.verdict != "not testable")]
    if first.startswith("Yes"):
        assert deciding
        assert all(line.verdict == "holds" for line in deciding)
        assert goal != "faithful" or {line.name for line in deciding} == {"reads", "ranks"}
    assert first.startswith("No") == (decision.answer == "no")
    assert decision.answer != "no" or any(line.verdict == "fails" for line in deciding)
    if any(line.doubt == GUESS for line in lines):
        assert decision.answer == "undecided"
    assert decision.answer != "hangs on" or any(line.verdict == "hangs on" for line in deciding)

    # Coverage is what variants answered.
    if goal == "faithful" and {"reads", "ranks"} <= set(named):
        asked = [v for name in ("reads", "ranks") for v in named[name].variants]
        answered = sum(v.verdict in ("holds", "fails") for v in asked)
        guessed = named["reads"].doubt == named["ranks"].doubt != ""
        assert (decision.answered, decision.asked) == (0 if guessed else answered, len(asked))
        assert f"({decision.answered} of {decision.asked} specifications answered)" in first
    else:
        assert "specifications answered" not in said

    # Every number is one of the scorecard's.
    allowed = numbers(lines, instead, (decision.answered, decision.asked))
    assert set(NUMBER.findall(said)) <= allowed, set(NUMBER.findall(said)) - allowed

    # What to read instead is for a No, and the sign for a Yes.
    read = [method for method in instead if method.said in said]
    assert not read or (goal == "faithful" and decision.answer in ("yes", "yes by size", "no"))
    assert (" instead." in said) <= (decision.answer == "no")
    assert ("Attention has no sign" in said) <= decision.answer.startswith("yes")
    _fits_its_numbers(said, named)


def _is_well_formed(said: str) -> None:
    for paragraph in said.split("\n\n"):
        assert paragraph[0].isupper()
        assert paragraph.endswith(".")
    for wrong in ("{", "}", "  ", "..", " .", ";.", "None", "nan", "has no value"):
        assert wrong not in said, wrong
    assert not re.search(r"\. [a-z]", said), said


def _fits_its_numbers(said: str, named: dict[str, Verdict]) -> None:
    """Comparisons are said where the test behind them says so."""
    verdicts = {name: line.verdict for name, line in named.items()}
    claims = {
        "at least about as well as these agree": ("agrees", "holds"),
        "clearly less than these agree": ("agrees", "fails"),
        "keep the prediction at least about as well": ("sufficient", "holds"),
        "more than noise would.": ("beats_chance", "holds"),
        "hold the prediction back": ("supports", "fails"),
        "which states count": ("locates", "holds"),
    }
    for words, (name, needed) in claims.items():
        if words in said and not (name == "beats_chance" and "not even" in said):
            assert verdicts.get(name) == needed, words
    means = [v.statistic for v in named["ranks"].variants if not v.void] if "ranks" in named else []
    if "only partly" in said:
        assert all(mean is not None and PARTLY < mean < 0.7 for mean in means)
    if "hangs on ties" in said:
        assert {verdicts["agrees"], verdicts["agrees_beyond_ties"]} == {"holds", "fails"}


@settings(deadline=None, max_examples=50)
@given(scorecards(), scorecards())
def test_several_models_are_counted_and_told_one_by_one(
    one: tuple[Goal, list[Verdict]], other: tuple[Goal, list[Verdict]]
) -> None:
    goal = one[0]
    lines = [replace(line, votes=votes(line.name, goal)) for line in one[1] + [replace(v, model="n") for v in other[1]]]
    found = decisions(lines, goal)
    if len(found) == 2:
        said = answer(lines, Context(goal))
        assert "Of 2 models: " in said.split("\n\n")[0]
        for decision in found.values():
            assert decision.first in said
