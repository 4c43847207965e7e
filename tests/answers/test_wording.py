"""What the answer says, against the verdicts and numbers of many scorecards."""

import re
import textwrap
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from exegete.answers.alternatives import Readable
from exegete.answers.answer import DECIDING, Known, answer, decisions, findings
from exegete.answers.context import GUESS, Context, MethodCost, Prediction
from exegete.answers.decision import Decision
from exegete.answers.goals import votes
from exegete.answers.grades import Grading, grade
from exegete.answers.groups import OFTEN, BesideGrade, Group
from exegete.experiments.common.test import Goal
from exegete.experiments.tests import all_tests, built_in_tests
from exegete.report.section import Outcome, Variant, Verdict
from tests.answers.cards import VOID, WAYS, around, grading, grading_that, readable, still, values_of, verdict

WHERE = ("t", "m")
NUMBER = re.compile(r"(?<![\w.])[-−]?\d[\d,]*(?:\.\d+)?")
INFORMING = [name for name in built_in_tests() if name not in DECIDING]
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
    threshold = all_tests()[name].margin
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
        doubt="" if first else VOID, settle=settle, votes=votes(name, goal), threshold=threshold,
        partly=all_tests()[name].partly, variants=tuple(found),
    )  # fmt: skip


@st.composite
def one_way(draw: st.DrawFn, name: str, goal: Goal) -> Verdict:
    """A test that informs."""
    test = all_tests()[name]
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
        readable(method, draw(values), MethodCost(1.0, 1.0, draw(st.integers(1, 99)) / 10), draw(values) / 2)
        for method in methods
    )


@st.composite
def besides(draw: st.DrawFn) -> BesideGrade:
    shares = st.integers(0, 40).map(lambda x: x / 100)
    groups = tuple(
        Group(name, mean := draw(values), mean - 0.04, mean + 0.04, 60)
        for name in ("good", "bad")[: draw(st.integers(0, 2))]
    )
    which = draw(st.sampled_from(["", "the first word", "'the'"]))
    active = draw(st.none() | values)
    return BesideGrade(draw(shares), draw(shares), draw(shares), which, active, groups)


@st.composite
def gradings(draw: st.DrawFn) -> Grading:
    """Three tests in up to three specifications: of many texts or few, near together or far apart."""
    many, ways = draw(st.sampled_from([60, 300])), draw(st.integers(1, len(WAYS)))

    def some(low: int) -> Tensor:
        mean = draw(st.integers(low, 95)) / 100
        return around(mean, many, draw(st.sampled_from([0.02, 1.0])) * min(mean - low / 100, 1 - mean))

    ranks, reads, carries = (values_of(*(some(low) for _ in range(ways))) for low in (-95, -95, 0))
    void = {WAYS[0]: VOID} if draw(st.integers(0, 9)) == 0 else {}
    return grading(ranks, reads, carries, void)


SAID_WRONG = {
    "this holds of every class": "classes",
    "a word with much weight matters": "idle",
    "a word with weight speaks for the prediction": "opposed",
    "every prediction has words that matter": "void",
    "the word with more weight is the one that matters more": "order",
    "agreeing with gradients shows that it may be read": "agrees",
}


def wrong_to_conclude(decision: Decision, named: dict[str, Verdict], beside: BesideGrade) -> list[str]:
    """Whose condition holds, by its words in the answer; told are the first one to three."""
    if decision.gamma is None:
        return []
    yes = decision.answer.startswith("yes")
    apart = any(
        min(g.high for g in beside.classes) < edge < max(g.low for g in beside.classes)
        for edge in decision.edges
        if beside.classes
    )
    agrees = "agrees" in named and named["agrees"].verdict == "holds"
    holds = {
        "classes": apart,
        "order": not yes,
        "idle": beside.idle >= OFTEN,
        "opposed": beside.opposed >= OFTEN,
        "void": beside.void >= OFTEN,
        "agrees": not yes and agrees,
    }
    return [words for words, name in SAID_WRONG.items() if holds[name]]


def numbers(lines: Sequence[Verdict], instead: Sequence[Readable], grades: Grading, beside: BesideGrade) -> set[str]:
    """All that may be said: numbers of the evidence as they are rounded, and those in its own sentences."""
    own = [n for v in lines for n in (v.statistic, v.threshold, *v.interval)]
    own += [n for line in lines for v in line.variants for n in (v.statistic, v.low, v.high)]
    own += [n for r in instead for n in (r.gamma, r.low, r.high, r.cost.ms if r.cost else None)]
    own += [n for r in instead for n in (r.better.statistic, r.better.low, r.better.high)]
    own += [mean for test in grades.tests for mean in test.means]
    own += [test.edges[0] - test.tolerance for test in grades.tests]
    own += [*grades.ranks.edges, beside.active, *(g.mean for g in beside.classes)]
    said = {f"{sign * n:.{digits}f}" for n in own if n is not None for digits in (1, 2, 3) for sign in (1, -1)}
    low, high = (f(grades.ranks.means, default=0.0) for f in (min, max))
    hundred = [100 * low, 100 * high, 50 + 50 * low, 50 + 50 * high, 50 - 50 * low]
    hundred += [100 * n for n in (beside.void, beside.opposed, beside.idle)]
    said |= {f"{sign * n:.0f}" for n in hundred for sign in (1, -1)}
    words = " ".join([line.doubt + line.settle for line in lines])
    shown = said | set(NUMBER.findall(words)) | {str(grades.ranks.texts), SEEDS_NEEDED, "2", "5", "100"}
    return shown | {n.replace("-", "−") for n in shown} | {str(TEXTS), str(TEXTS - ASKED)}


def replacing(decision: Decision, instead: Sequence[Readable], to_choose: bool) -> tuple[bool, bool]:
    """Whether a method is read instead, or none is surely better, where one of them must be said."""
    low = instead[0].better.low if instead else None
    surely = decision.answer == "no" or low is None or low > 0
    return to_choose and surely, to_choose and not surely


TEXTS, ASKED = 777, 333  # of the split, and those that were asked


@settings(deadline=None, max_examples=80)
@given(scorecards(), readables(), gradings(), besides())
def test_the_answer_says_what_its_scorecard_says(
    card: tuple[Goal, list[Verdict]], instead: tuple[Readable, ...], grades: Grading, beside: BesideGrade
) -> None:
    goal, lines = card
    known = Known({WHERE: instead}, {}, {WHERE: grades}, {WHERE: beside}, {WHERE: ASKED})
    found = decisions(lines, goal, known)
    if not found:  # nothing could be tested
        return
    (decision,) = found.values()
    context = Context(goal, {WHERE: Prediction(0.9, 0.5, TEXTS)})
    said = answer(lines, context, known)
    first, named = said.split("\n\n")[0], {line.name: line for line in lines}
    beside_it = findings(lines, goal)
    for text in (said, *beside_it):
        _is_well_formed(text)
    assert first == decision.first

    # The grade is that of the values; without a vote, or where it guesses, there is none.
    if goal == "faithful" and {"reads", "ranks"} <= set(named):
        guesses = named["reads"].doubt != "" and named["reads"].doubt == named["ranks"].doubt
        graded = not guesses and bool(grades.ranks.bets)
        of_values = "yes" if decision.answer == "yes by size" else decision.answer
        assert of_values == (grade(grades) if graded else "undecided")
        assert decision.answer != "yes by size" or named["supports"].verdict == "fails"
        assert (decision.gamma is not None) == graded
        assert decision.settled == (graded and grades.is_settled)
    elif goal == "faithful":
        assert decision.answer == "undecided"
    else:
        asked = [line for line in lines if line.votes and line.verdict != "not testable"]
        deciding = [line for line in asked if not (line.name == "known_answer" and line.doubt)]  # of another training
        assert not first.startswith("Yes") or all(line.verdict == "holds" for line in deciding)
        assert first.startswith("No") == (decision.answer == "no")
        assert decision.answer != "no" or any(line.verdict == "fails" for line in deciding)
    if any(line.doubt == GUESS for line in lines):
        assert decision.answer == "undecided"

    # Every number is one of the evidence's.
    shown = " ".join([said, *beside_it])
    allowed = numbers(lines, instead, grades, beside)
    assert set(NUMBER.findall(shown)) <= allowed, set(NUMBER.findall(shown)) - allowed

    # What to read is told whatever the grade; the sign, for a Yes.
    read = [method for method in instead if method.said in said]
    graded = decision.gamma is not None
    assert bool(read) == (graded and bool(instead))
    assert ("Attention has no sign" in said) == (graded and bool(instead) and decision.answer.startswith("yes"))
    well = bool(instead) and max(each.gamma for each in instead) >= 0.7
    to_choose = graded and well and not decision.answer.startswith("yes")
    assert (" instead." in said, "is surely better" in said) == replacing(decision, instead, to_choose)
    assert ("orders words well" in said) == (graded and bool(instead) and not well and not said.startswith("Yes"))

    # What it would be wrong to conclude is told when its condition holds, and only then.
    warned = [words for words in SAID_WRONG if words in said]
    every = wrong_to_conclude(decision, named, beside)
    assert warned == every[: len(warned)]
    assert len(warned) >= min(len(every), 1)
    assert len(warned) <= 3
    assert ("It would be wrong to conclude that " in said) == bool(warned)

    # What would settle it is told where something is open.
    more = f"ask more texts: `--texts {TEXTS}` ({TEXTS - ASKED} are left)"
    assert (more in said) == (graded and not decision.settled and not decision.answer.startswith("yes"))
    _fits_its_numbers(shown, named)


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
        "hold the prediction back.": ("supports", "fails"),
        "states count": ("locates", "holds"),
    }
    for words, (name, needed) in claims.items():
        if words in said and not (name == "beats_chance" and "not even" in said):
            assert verdicts.get(name) == needed, words
    if "hangs on ties" in said:
        assert {verdicts["agrees"], verdicts["agrees_beyond_ties"]} == {"holds", "fails"}


LONG = BesideGrade(0.31, 0.22, 0.33, "the first word", 0.55, ())
COST = MethodCost(1.0, 1.0, 2.5)


@pytest.mark.parametrize(
    "grades",
    [
        grading(values_of(0.9, 0.85, 0.8)),
        grading(values_of(0.6, 0.55, 0.65)),
        grading(values_of(0.9, 0.6, 0.3)),
        grading(values_of(0.9, 0.6)),
        grading(values_of(0.3, 0.2, 0.25)),
        grading(values_of(around(0.7, 200, 0.15))),
        grading(values_of(around(0.8, 60, 0.2))),
        grading(values_of(0.3), values_of(0.05)),
        grading(values_of(0.3), None, values_of(0.05)),
        grading_that("cannot tell", "cannot tell", "cannot tell"),
    ],
)
@pytest.mark.parametrize("beside", [BesideGrade(), LONG])
def test_the_answer_fits_a_screen(grades: Grading, beside: BesideGrade) -> None:
    """Of a terminal that is 100 columns wide: eight lines; one more where it is open, for each reason, or has sinks."""
    lines = [verdict(name, "holds") for name in ("reads", "ranks", "carries", "agrees", "supports")]
    best = tuple(readable(method, 0.8, COST) for method in ("lrp", "gradient_x_input"))
    known = Known({WHERE: best}, {}, {WHERE: grades}, {WHERE: beside}, {WHERE: ASKED})
    said = answer(lines, Context("faithful", {WHERE: Prediction(0.9, 0.5, TEXTS)}), known)
    shown = [row for paragraph in said.split("\n\n") for row in textwrap.wrap(paragraph, 100)]
    open_ = said.startswith("Undecided") + ("To settle what is open" in said)
    assert len(shown) <= 8 + open_ + (beside == LONG), said


def test_for_the_sign_a_method_is_named_that_has_one() -> None:
    """The norm of a gradient has none."""
    lines = [verdict(name, "holds") for name in ("reads", "ranks", "carries")]
    norm, other = readable("gradient:norm=l2", 0.9, better=0.0), readable("gradient_x_input", 0.8, better=0.0)
    for gamma, opening in ((0.9, "Attention has no sign: "), (0.6, "No method that was asked is surely better. ")):
        for best, rest in (
            ((norm, other), "or the class that a word speaks for, read gradient × input (Γ 0.80"),
            ((norm,), "radient, which orders words best, has none either."),
        ):
            said = answer(lines, None, Known({WHERE: best}, {}, {WHERE: grading(values_of(gamma))}))
            assert said.split("\n\n")[1].startswith(opening)
            assert rest in said


def test_a_model_that_guesses_has_nothing_to_read_instead() -> None:
    lines = [replace(verdict(name, "cannot tell"), doubt=GUESS) for name in ("reads", "ranks", "carries")]
    best = {WHERE: (readable("lrp", 0.8),)}
    said = answer(lines, None, Known(best, {}, {WHERE: grading(values_of(0.9))}, {WHERE: LONG}))
    assert said.split("\n\n")[1:] == ["This is about m on t (this checkpoint)."]


def test_without_a_vote_what_to_read_is_told_by_the_same_edge() -> None:
    lines = [replace(verdict(name, "holds"), votes=False) for name in ("reads", "ranks", "carries")]
    for gamma, words in ((0.8, "Read LRP"), (0.6, "Nothing that was asked orders words well; the best is LRP")):
        known = Known({WHERE: (readable("lrp", gamma),)}, {}, {WHERE: grading(values_of(0.9))})
        assert answer(lines, None, known).split("\n\n")[1].startswith(words)


def test_where_all_texts_were_asked_no_more_are_asked_for() -> None:
    lines = [verdict(name, "cannot tell") for name in ("reads", "ranks", "carries")]
    grades = grading_that("cannot tell", "cannot tell", "cannot tell")
    context = Context("faithful", {WHERE: Prediction(0.9, 0.5, TEXTS)})
    for asked, words in ((TEXTS, "it needs more texts than this split has."), (700, "`--texts 777` (77 are left)")):
        known = Known(grades={WHERE: grades}, asked={WHERE: asked})
        assert f"To settle what is open, {'' if asked == TEXTS else 'ask more texts: '}{words}" in answer(
            lines, context, known
        )


def test_two_models_that_differ_in_a_setting_have_two_names() -> None:
    lines = [replace(verdict("used", "holds"), model=f"bilstm:hidden={size}") for size in (8, 16)]
    said = answer(lines)
    assert "hidden=8 on t" in said or "hidden=8) on t" in said
    assert "hidden=16" in said


@settings(deadline=None, max_examples=50)
@given(scorecards(), scorecards())
def test_several_models_are_counted_and_told_one_by_one(
    one: tuple[Goal, list[Verdict]], other: tuple[Goal, list[Verdict]]
) -> None:
    goal = one[0]
    lines = [replace(line, votes=votes(line.name, goal)) for line in one[1] + [replace(v, model="n") for v in other[1]]]
    known = Known(grades={WHERE: grading(values_of(0.9)), ("t", "n"): grading(values_of(0.3))})
    found = decisions(lines, goal, known)
    if len(found) == 2:
        said = answer(lines, Context(goal), known)
        assert "Of 2 models: " in said.split("\n\n")[0]
        for decision in found.values():
            assert decision.first in said
