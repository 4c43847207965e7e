"""Decision: how far may attention be read? From the tests that decide to one answer, and why: the most that is known.

| evidence over the specifications that count | answer |
|---|---|
| M, F and Γ above their margins in all | yes; *by size* where most weight lies on words that hold a prediction back |
| M below in all | no: attention is not read |
| F below in all | no: the differences of weights are not used |
| Γ below its edge *partly* in all | no: weights hardly order words by what they do |
| M and F above, Γ between its edges in all; or above *partly* in all, and below the margin in one | partly |
| M and F above, Γ surely differs: two specifications on both sides of an edge | from one grade to another |
| M and F above, Γ above *partly* in all, the margin is open | at least partly; or about the margin |
| below a margin in one specification, the rest is open | at most partly; or about *partly* |
| nothing is excluded | undecided, with what would settle it |

What is *above*, *below* and *sure* is said in `exegete.answers.grades`. Where other readings of a transformer were
asked, too (`exegete.answers.readings`): a yes is none if the order is that of heads which nobody reads; where the
readout gives no yes, the one that was chosen may: *Yes, as R*.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, cast

from exegete.answers.context import NOTHING
from exegete.answers.grades import Graded, Grading, grade
from exegete.answers.readings import READOUT, Judged, Ways
from exegete.experiments.common.test import Goal
from exegete.experiments.mediation.statistics import VOID
from exegete.experiments.tests import all_tests, label_of
from exegete.report.section import Variant, Verdict

Answer = Literal[
    "yes", "yes by size", "yes as", "at least partly", "about strong", "partly to strongly", "partly",
    "hardly to strongly", "at most partly", "hardly to partly", "about partly", "no", "undecided",
]  # fmt: skip
ANSWERS: dict[Answer, str] = {
    "yes": "Yes",
    "yes by size": "Yes, by size",
    "yes as": "Yes, read in another way",
    "at least partly": "At least partly",
    "about strong": "Partly or strongly, too near the line between the two (Γ {strong:.2f}) to tell",
    "partly to strongly": "Partly to strongly, by how words are removed",
    "partly": "Partly",
    "hardly to strongly": "Hardly to strongly, by how words are removed",
    "at most partly": "At most partly",
    "hardly to partly": "Hardly to partly, by how words are removed",
    "about partly": "Hardly or partly, too near the line between the two (Γ {partly:.2f}) to tell",
    "no": "No",
    "undecided": "Undecided",
}
# From the worst to the best of what an answer leaves possible, for a gate: 0 no, 1 partly, 2 strong.
WORST: dict[Answer, int] = {
    "yes": 2, "yes by size": 2, "yes as": 2, "at least partly": 1, "about strong": 1, "partly to strongly": 1,
    "partly": 1, "hardly to strongly": 0, "at most partly": 0, "hardly to partly": 0, "about partly": 0, "no": 0,
    "undecided": 0,
}  # fmt: skip
NOT_ASKED = "What decides was not asked: add the experiment `mediation`"
NO_VOTE = "What decides was not calibrated for an audit like this one, so it has no vote."
TRAIN = "Train it longer, or on more texts, and ask again."
VerdictsByName = Mapping[str, Verdict]  # the tests of one model on one task


@dataclass(frozen=True)
class Decision:
    """The answer for one model on one task, what it rests on, and how far attention goes."""

    answer: Answer
    why: str  # a sentence or two
    gamma: tuple[float, float] | None = None  # Γ of attention: the least and the most of the specifications that count
    edges: tuple[float, ...] = ()  # of Γ, from the highest down
    texts: int = 0  # that the answer rests on
    settled: bool = False  # whether more texts would change nothing
    reading: str = ""  # of a "yes as": what may be read, as an importance is asked for
    said: str = ""  # the same in words

    @property
    def label(self) -> str:
        """The answer in words."""
        named = dict(zip(("strong", "partly"), self.edges, strict=False))
        return f"Yes, as {self.said}" if self.said else ANSWERS[self.answer].format(**named)

    @property
    def first(self) -> str:
        """The answer and its reason."""
        return f"{self.label}. {self.why}".strip()

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)


def decide(
    named: VerdictsByName, goal: Goal = "faithful", ways: Ways | None = None, grading: Grading | None = None
) -> Decision:
    """What the tests of one model decide for a goal, and its readings, where they were asked."""
    return _by_votes(named) if goal != "faithful" else _faithful(named, ways, grading)


def _faithful(named: VerdictsByName, ways: Ways | None, grading: Grading | None) -> Decision:
    reads, ranks = named.get("reads"), named.get("ranks")
    if reads is None or ranks is None:
        missing = reads or ranks
        why = f"It can't be tested: {missing.doubt}" if missing and missing.doubt else NOT_ASKED
        return Decision("undecided", f"{why}.")
    if reads.doubt and reads.doubt == ranks.doubt:
        learnt = not reads.doubt.endswith((NOTHING, VOID.partition("} ")[2]))
        return Decision("undecided", f"{reads.doubt[0].upper()}{reads.doubt[1:]}.{'' if learnt else f' {TRAIN}'}")
    if not (reads.votes and ranks.votes):
        if grading is None or not grading.ranks.bets:
            return Decision("undecided", NO_VOTE)
        return Decision("undecided", f"{NO_VOTE} {how_far(grading.ranks)}", edges=grading.ranks.edges)
    if grading is None or not grading.ranks.bets:
        return Decision("undecided", f"{ranks.doubt[0].upper()}{ranks.doubt[1:]}." if ranks.doubt else f"{NOT_ASKED}.")
    answer = cast(Answer, grade(grading))
    if answer == "yes" and (supports := named.get("supports")) is not None and supports.verdict == "fails":
        answer = "yes by size"
    means = grading.ranks.means
    decision = Decision(
        answer, _why(answer, grading, named), (min(means), max(means)), grading.ranks.edges, grading.ranks.texts,
        grading.is_settled,
    )  # fmt: skip
    return decision if ways is None else _read_otherwise(_carried(decision, ways), ways)


def _why(answer: Answer, grading: Grading, named: VerdictsByName) -> str:
    """How far attention goes, and what must be said beside it."""
    if answer == "no" and grading.unread:
        return _unread(grading, named.get("locates"))
    if answer == "no" and grading.flat:
        found = span(grading.carries)
        return f"Equal weights would do nearly as well: the differences of its weights are not used (F {found})."
    between = _between(grading)
    far = how_far(grading.ranks, scale=not between)
    more = {
        "yes": _shown(grading),
        "yes by size": "Most of its weight lies on words that hold the prediction back.",
        "no": _of_states(named.get("locates")),
        "partly": _of_states(named.get("locates")),
    }.get(answer, " ".join([*between, *_open(grading)]))
    return f"{far} {more}".strip()


def how_far(ranks: Graded, scale: bool = True) -> str:
    """Γ of attention as people read it, with Γ itself where `scale` says so.

    (1 + Γ) / 2 is the share of pairs of words in the right order, weighted by the difference of their effects.
    """
    low, high = min(ranks.means), max(ranks.means)
    ways, pairs = (_range(*ends) for ends in ((100 * low, 100 * high), (50 + 50 * low, 50 + 50 * high)))
    gamma = f" (Γ {_range(low, high, 2)})" if scale else ""
    return (
        f"Attention goes {ways} % of the way from a random to the best order of words{gamma}: in {pairs} of 100 pairs, "
        "the word with more weight matters more when removed."
    )


def _range(low: float, high: float, places: int = 0) -> str:
    ends = dict.fromkeys(f"{end:.{places}f}".replace("-", "−") for end in (low, high))
    return " to ".join(ends)


def _shown(grading: Grading) -> str:
    """What a Yes rests on, as it was shown."""
    ranks, reads, carries = (
        f"{test.edges[0] - test.tolerance:.2f}" for test in (grading.ranks, grading.reads, grading.carries)
    )
    return (
        f"Words act through their weights (M > {reads}), and the weights' differences count (F > {carries}): sure at "
        f"5 %, with Γ > {ranks}."
    )


def _between(grading: Grading) -> list[str]:
    """Two specifications on both sides of an edge, by name."""
    found = []
    for edge in grading.ranks.edges:
        pair = grading.ranks.differing(edge)
        if pair is not None:
            high, low = ((name, grading.ranks.bets[name].mean) for name in pair)
            found.append(f"Γ is {high[1]:.2f} by {high[0]}, and {low[1]:.2f} by {low[0]}.")
    return found[:1]


def _open(grading: Grading) -> list[str]:
    """What is not known of the other tests, a sentence each."""
    found = []
    for name, test in (("reads", grading.reads), ("carries", grading.carries)):
        if not test.bets:
            found.append("It was not asked whether the differences of its weights count.")
        elif test.outcome != "holds":
            found.append(all_tests()[name].says["cannot tell" if test.outcome == "cannot tell" else "hangs on"])
    return found


def _carried(decision: Decision, ways: Ways) -> Decision:
    """No, if the order of weights is that of heads which nobody reads, whatever it is worth."""
    own = ways.readout.carried
    if decision.answer == "no" or own is None or "carried" not in ways.readout.failed:
        return decision
    why = (
        f"The order of its weights is that of {_heads(ways.readout)} whose order nobody reads: made flat, they change "
        f"next to nothing, and without them weights do not order words by how much they matter ({_gamma(own)})."
    )
    return replace(decision, answer="no", why=why)


def _read_otherwise(decision: Decision, ways: Ways) -> Decision:
    """Where the readout gives no yes: what the other readings say."""
    if decision.answer.startswith("yes"):
        return decision
    best = ways.chosen
    if best is not None and best.verdict == "holds" and best.kind != READOUT:
        why = (
            f"It orders words by how much they matter, and they act through what it reads ({best.numbers}); it was "
            f"chosen on other texts and judged once. {_of_recipe(ways)} Not as the readout: {decision.why}"
        )
        return replace(decision, answer="yes as", why=why, reading=best.reading, said=best.said)
    return replace(decision, why=f"{decision.why} {_none(decision, ways)}")


def _none(decision: Decision, ways: Ways) -> str:
    """That no reading does, or how many are open."""
    every, best = ways.readings, ways.chosen
    failed = [line for line in every if line.verdict == "fails"]
    did = f" Best where readings were chosen: {best.said}, here {best.numbers}." if best is not None else ""
    if decision.answer == "no" and len(failed) == len(every):
        return f"No way of reading its attention that we know tells it: all of {len(every)} readings fail.{did}"
    return f"This is of the readout: of {len(every)} readings {len(failed)} fail, and none is shown to hold.{did}"


def _of_recipe(ways: Ways) -> str:
    if ways.seeds == 1:
        return "This is said of one checkpoint: of its recipe it needs a second fine-tuning seed that says the same."
    return f"It holds in each of {ways.seeds} fine-tunings."


def _heads(line: Judged) -> str:
    return "a head" if line.left_out == 1 else f"{line.left_out} heads"


def _gamma(variant: Variant) -> str:
    return f"Γ {variant.statistic:.2f}" if variant.statistic is not None else "Γ has no value"


def _unread(grading: Grading, locates: Verdict | None) -> str:
    spanned = span(grading.reads)
    if locates is not None and locates.variants and all(v.void for v in locates.variants):
        return f"Attention is computed and not read: zeroing a weight changes next to nothing (M {spanned})."
    if locates is not None and locates.verdict == "holds":
        return (
            "Its attention orders hidden states, and a state mixes several words: what a word does hardly goes through "
            f"its own weight (M {spanned}, Γ of states {_span(locates)})."
        )
    return f"What a word does to the prediction hardly goes through its own weight (M {spanned})."


def _of_states(locates: Verdict | None) -> str:
    if locates is None or locates.verdict != "holds":
        return ""
    return f"It orders the model's hidden states well (Γ {_span(locates)}), but a state mixes several words."


def span(test: Graded) -> str:
    """The means of all specifications that count, as people read a range."""
    return _ends(test.means)


def _span(test: Verdict) -> str:
    return _ends([v.statistic for v in test.variants if v.statistic is not None and not v.void])


def _ends(means: Sequence[float]) -> str:
    if not means:
        return "has no value"
    ends = dict.fromkeys(f"{end:.2f}".replace("-", "−") for end in (min(means), max(means)))
    return " to ".join(ends)


def _is_void(line: Verdict) -> bool:
    """Another training, on texts with planted words, that did not learn them says nothing of this model's attention."""
    return line.name == "known_answer" and bool(line.doubt)


def _something_found(deciding: Sequence[Verdict]) -> bool:
    """That weights are used is needed, and not enough: what must be found, or marked, has been."""
    return any(line.name != "used" for line in deciding)


def _by_votes(named: VerdictsByName) -> Decision:
    """For other goals: one failure is enough for no; yes needs all."""
    asked = [line for line in named.values() if line.votes and line.verdict != "not testable"]
    deciding = [line for line in asked if not _is_void(line)]
    failed = [label_of(line.name) for line in deciding if line.verdict == "fails" and not line.doubt]
    if failed:
        return Decision("no", f"What decides fails: {', '.join(failed)}.")
    open_ = [label_of(line.name) for line in deciding if line.verdict != "holds" or line.doubt]
    if open_:
        return Decision("undecided", f"What decides is not settled: {', '.join(open_)}.")
    if _something_found(deciding):
        return Decision("yes", f"All that decides holds: {', '.join(label_of(line.name) for line in deciding)}.")
    return Decision("undecided", "That weights are used is not enough." if deciding else "What decides was not asked.")
