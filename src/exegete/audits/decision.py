"""Decision: may attention be read? From the verdicts of the tests that decide, to one of five answers and why.

| evidence over the specifications that count | answer |
|---|---|
| `reads` and `ranks` hold | yes |
| so, but most weight lies on words whose removal raises the prediction (`supports` fails) | yes by size |
| `reads` fails, and zeroing weights does nothing | no: attention is computed and not read |
| `reads` fails, `locates` holds | no: it says which states count, and states are not words |
| `reads` fails, else | no: what words do does not go through their weights |
| `ranks` fails | no: it does not order words by what they do (above ½: partly) |
| one specification surely holds, another surely fails | it hangs on how words are removed |
| otherwise | undecided, with what would settle it |

Where other readings of a transformer were asked, too (`exegete.audits.readings`): a yes is none if the order is that of
heads which nobody reads; where the readout gives no yes, the one that was chosen may: *Yes, as R*.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from exegete.audits.readings import READOUT, Judged, Ways
from exegete.experiments.common.test import Goal
from exegete.experiments.tests import declared
from exegete.page.section import Variant, Verdict

Answer = Literal["yes", "yes by size", "yes as", "no", "hangs on", "undecided"]
ANSWERS: dict[Answer, str] = {
    "yes": "Yes.",
    "yes by size": "Yes, by size.",
    "yes as": "Yes, read in another way.",
    "no": "No.",
    "hangs on": "It hangs on how a word is removed.",
    "undecided": "Undecided.",
}
PARTLY = 0.5  # Γ from which on weights order words in part
NOT_ASKED = "What decides was not asked: add the experiment `mediation`"
NO_VOTE = "What decides was not calibrated for an audit like this one, so it has no vote."
Named = Mapping[str, Verdict]  # the tests of one model on one task


@dataclass(frozen=True)
class Decision:
    """The answer for one model on one task, what it rests on, and how much of what decides was answered."""

    answer: Answer
    why: str  # a sentence
    answered: int = 0  # specifications of the deciding tests
    asked: int = 0
    reading: str = ""  # of a "yes as": what may be read, as an importance is asked for
    said: str = ""  # the same in words

    @property
    def settled(self) -> bool:
        """Whether it says what to read: attention, for all but the sign, or something instead."""
        return self.answer not in ("hangs on", "undecided")

    @property
    def first(self) -> str:
        """The answer with its coverage and its reason."""
        coverage = f" ({self.answered} of {self.asked} specifications answered)" if self.asked else ""
        answer = f"Yes, as {self.said}" if self.said else ANSWERS[self.answer][:-1]
        return f"{answer}{coverage}. {self.why}"

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)


def decide(named: Named, goal: Goal = "faithful", ways: Ways | None = None) -> Decision:
    """What the tests of one model decide for a goal, and its readings, where they were asked."""
    return _by_votes(named) if goal != "faithful" else _faithful(named, ways)


def _faithful(named: Named, ways: Ways | None) -> Decision:
    reads, ranks = named.get("reads"), named.get("ranks")
    if reads is None or ranks is None:
        missing = reads or ranks
        why = f"It can't be tested: {missing.doubt}" if missing and missing.doubt else NOT_ASKED
        return Decision("undecided", f"{why}.")
    variants = (*reads.variants, *ranks.variants)
    if reads.doubt and reads.doubt == ranks.doubt:
        return Decision("undecided", f"{reads.doubt[0].upper()}{reads.doubt[1:]}.", 0, len(variants))
    if not (reads.votes and ranks.votes):
        return Decision("undecided", NO_VOTE)
    coverage = (sum(v.verdict in ("holds", "fails") for v in variants), len(variants))
    answer, why = _told(reads, ranks, named.get("locates"), named.get("supports"))
    decision = Decision(answer, why, *coverage)
    return decision if ways is None else _read_otherwise(_carried(decision, ways), ways)


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


def _told(reads: Verdict, ranks: Verdict, locates: Verdict | None, supports: Verdict | None) -> tuple[Answer, str]:
    """The first row of the table that fits, in words."""
    both = {reads.verdict, ranks.verdict}
    if both == {"holds"}:
        if supports is not None and supports.verdict == "fails":
            return "yes by size", f"{_ranks(ranks)}; its words mostly hold the prediction back."
        return "yes", f"{_ranks(ranks)}, and words act through their own weights (M {_span(reads)})."
    if reads.verdict == "fails":
        return "no", _unread(reads, locates)
    if ranks.verdict == "fails":
        return "no", _unordered(ranks, locates)
    if "hangs on" in both:
        return "hangs on", " ".join(_hanging(test) for test in (reads, ranks) if test.verdict == "hangs on")
    open_ = [test for test in (reads, ranks) if test.verdict != "holds"]
    return "undecided", " ".join(dict.fromkeys(_open(test) for test in open_))


def _ranks(ranks: Verdict) -> str:
    return f"Its weights order words by how much they matter (Γ {_span(ranks)})"


def _unread(reads: Verdict, locates: Verdict | None) -> str:
    if locates is not None and locates.variants and all(v.void for v in locates.variants):
        return f"Attention is computed and not read: zeroing a weight changes next to nothing (M {_span(reads)})."
    if locates is not None and locates.verdict == "holds":
        return (
            "Its attention says which states count, and states are not words: what a word does hardly goes through "
            f"its own weight (M {_span(reads)}, Γ of states {_span(locates)})."
        )
    return f"What a word does to the prediction hardly goes through its own weight (M {_span(reads)})."


def _unordered(ranks: Verdict, locates: Verdict | None) -> str:
    means = _means(ranks)
    states = locates is not None and locates.verdict == "holds"
    of_states = (
        f" It says which states count (Γ {_span(locates)}), and states are not words." if states and locates else ""
    )
    if means and min(means) > PARTLY:
        return f"Its weights order words by how much they matter only partly (Γ {_span(ranks)}).{of_states}"
    return f"Its weights do not order words by how much they matter (Γ {_span(ranks)}).{of_states}"


def _hanging(test: Verdict) -> str:
    held, failed = ([v for v in test.variants if v.verdict == said] for said in ("holds", "fails"))
    what = {"reads": "Words act through their own weights", "ranks": "Weights order words by how much they matter"}
    return f"{what[test.name]} by {_listed(held)}, and do not by {_listed(failed)}."


def _listed(variants: list[Variant]) -> str:
    return "; ".join(f"{v.name} ({v.statistic:.2f})" for v in variants if v.statistic is not None)


def _open(test: Verdict) -> str:
    said = declared()[test.name].says["cannot tell"]
    rest = f" {test.doubt[0].upper()}{test.doubt[1:]}." if test.doubt else f" {test.settle}" if test.settle else ""
    return f"{said}{rest}"


def _means(test: Verdict) -> list[float]:
    return [v.statistic for v in test.variants if v.statistic is not None and not v.void]


def _span(test: Verdict) -> str:
    """The means of all specifications that count, as people read a range."""
    means = _means(test)
    if not means:
        return "has no value"
    low, high = f"{min(means):.2f}", f"{max(means):.2f}"
    return low if low == high else f"{low} to {high}"


def _is_void(line: Verdict) -> bool:
    """Another training, on texts with planted words, that did not learn them says nothing of this model's attention."""
    return line.name == "known_answer" and bool(line.doubt)


def _something_found(deciding: Sequence[Verdict]) -> bool:
    """That weights are used is needed, and not enough: what must be found, or marked, has been."""
    return any(line.name != "used" for line in deciding)


def _by_votes(named: Named) -> Decision:
    """For other goals: one failure is enough for no; yes needs all."""
    asked = [line for line in named.values() if line.votes and line.verdict != "not testable"]
    deciding = [line for line in asked if not _is_void(line)]
    failed = [line.label for line in deciding if line.verdict == "fails" and not line.doubt]
    if failed:
        return Decision("no", f"What decides fails: {', '.join(failed)}.")
    open_ = [line.label for line in deciding if line.verdict != "holds" or line.doubt]
    if open_:
        return Decision("undecided", f"What decides is not settled: {', '.join(open_)}.")
    if _something_found(deciding):
        return Decision("yes", f"All that decides holds: {', '.join(line.label for line in deciding)}.")
    return Decision("undecided", "That weights are used is not enough." if deciding else "What decides was not asked.")
