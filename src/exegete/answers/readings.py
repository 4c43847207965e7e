"""Readings: what the audit says of every way of reading a transformer's attention, by the criteria of the readout.

Of each reading three things are judged, by the rules of `exegete.answers.rules`: that it orders words (Γ, the margin of
`ranks`), that words act through the edges that it looks at (M, that of `reads`), and, where it has heads that nobody
reads, that it orders words without them. It *may be read* if all hold in every specification, and *fails* if one fails.

One reading is chosen, on texts held out for it: the one that lies farthest above its nearest margin. It alone can be
the answer, *Yes, as R*, and is judged once, on the test texts. The readout is judged before it: that is a second chance
of a yes, so R must be sure at 2.5 %. Of many readings some look good by chance; of a *No* all must fail, an
intersection, which needs no correction. Single layers and heads that were not chosen are asked for Γ alone: they can
fail, and can't be read.

With several seeds every fine-tuning is a specification of its own: what is said of a recipe holds in all of them.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from exegete.answers.context import Where
from exegete.answers.criteria import Criteria
from exegete.answers.grades import NO_BY_OTHERS
from exegete.answers.rules import ERROR, Ruled, Varying, apply_rules
from exegete.experiments.readings.candidates import SAID
from exegete.experiments.readings.experiment import BASELINE
from exegete.experiments.readings.statistics import ReadingValues, by_reading
from exegete.experiments.readings.tests import MARGINS
from exegete.report.columns import count, interval, number, text, verdict, wide
from exegete.report.section import Outcome, Table, Variant

READOUT = "readout"
HOLDS: Outcome = "holds"


@dataclass(frozen=True)
class Judged:
    """A reading or a baseline, where it looks, and what was found, by the specification that its verdict hangs on."""

    reading: str  # as an importance is asked for
    kind: str
    site: str
    head: str
    query: str
    verdict: Outcome
    ranks: Variant | None = None
    carried: Variant | None = None  # without heads that nobody reads; None where there are none
    reads: Variant | None = None
    left_out: int = 0  # heads that nobody reads
    failed: tuple[str, ...] = ()  # of ranks, carried and reads, those that fail
    chosen: bool = False

    @property
    def name(self) -> str:
        """What it is, in words."""
        one = {"layer": f"layer {self.site}", "head": f"head {self.head} of {self.site}", BASELINE: self.reading}
        return one.get(self.kind) or SAID[self.kind]  # type: ignore[index]

    @property
    def said(self) -> str:
        """What it is and where it looks: site, head and query are always said."""
        site = "" if self.kind in ("layer", "head") else f"{self.site}, "
        return f"{self.name} ({site}{'' if self.kind == 'head' else 'mean of heads, '}read from {self.query})"

    @property
    def numbers(self) -> str:
        """Γ and M, as people read them."""
        return ", ".join(f"{name} {each.statistic:.2f}" for name, each in self._told() if each.statistic is not None)

    def _told(self) -> list[tuple[str, Variant]]:
        found = (("Γ", self.ranks), ("Γ of what is read", self.carried), ("M", self.reads))
        return [(name, each) for name, each in found if each is not None]

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)


@dataclass(frozen=True)
class Ways:
    """All readings of one model on one task, and baselines beside them."""

    lines: tuple[Judged, ...]
    seeds: int

    @property
    def readings(self) -> list[Judged]:
        """Without baselines."""
        return [line for line in self.lines if line.kind != BASELINE]

    @property
    def readout(self) -> Judged:
        """The declared default."""
        return next(line for line in self.lines if line.kind == READOUT)

    @property
    def chosen(self) -> Judged | None:
        """The one that may be the answer."""
        return next((line for line in self.lines if line.chosen), None)


def readings_of(rows: pl.DataFrame | None, criteria: Criteria) -> dict[Where, Ways]:
    """By task and model, of the rows of the experiment; None where it was not asked."""
    own = {} if rows is None else rows.partition_by("task", "model", as_dict=True, maintain_order=True)
    return {(str(task), str(model)): _ways(each, criteria) for (task, model), each in own.items()}


def _ways(rows: pl.DataFrame, criteria: Criteria) -> Ways:
    """Judge the readings of one model on one task."""
    found = by_reading(rows)
    best = _best(found, criteria)
    return Ways(tuple(_judged(each, criteria, each is best) for each in found), rows["seed"].n_unique())


def _best(found: Sequence[ReadingValues], criteria: Criteria) -> ReadingValues | None:
    """The farthest above its nearest margin where readings are chosen, of those that were asked for M."""
    able = [each for each in found if "reads" in each.level]
    return max(able, key=lambda each: _distance(each, criteria), default=None)


def _distance(each: ReadingValues, criteria: Criteria) -> float:
    levels = [each.level[name] - criteria[test].margin for name, test in MARGINS.items()]
    return min(levels) if all(level == level for level in levels) else -2.0  # nothing matters there


def _judged(each: ReadingValues, criteria: Criteria, chosen: bool) -> Judged:
    asked = [name for name in MARGINS if name in each.values and (name != "carried" or each.said["left_out"])]
    tests = [Varying(criteria[MARGINS[name]].margin, 1.0, each.values[name], each.void) for name in asked]
    second = chosen and each.said["kind"] != READOUT
    rulings = dict(zip(asked, apply_rules(tests, ERROR / 2 if second else ERROR), strict=True))
    if each.said["kind"] == READOUT and "carried" in asked:  # a way to a No, which shares its error with others
        rulings["carried"] = apply_rules([tests[asked.index("carried")]], NO_BY_OTHERS)[0]
    told = {name: _decisive(ruling) for name, ruling in rulings.items()}
    outcomes = {name: ruling.outcome for name, ruling in rulings.items()}
    return Judged(
        **{name: str(each.said[name] or "") for name in ("reading", "kind", "site", "head", "query")},
        verdict="not testable" if each.said["kind"] == BASELINE else _verdict(outcomes),  # which reads no attention
        ranks=told.get("ranks"), carried=told.get("carried"), reads=told.get("reads"),
        left_out=each.said["left_out"] or 0, chosen=chosen,
        failed=tuple(name for name, outcome in outcomes.items() if outcome == "fails"),
    )  # fmt: skip


def _decisive(ruling: Ruled) -> Variant | None:
    """The specification that a verdict hangs on; where none counts, the first."""
    return next((v for v in ruling.variants if v.name == ruling.decisive), next(iter(ruling.variants), None))


def _verdict(outcomes: dict[str, Outcome]) -> Outcome:
    """One failure is enough; what was not asked for M can't hold."""
    found = set(outcomes.values())
    if "fails" in found:
        return "fails"
    if found == {HOLDS} and "reads" in outcomes:
        return HOLDS
    return "hangs on" if "hangs on" in found else "cannot tell"


def table(found: Ways) -> Table:
    """All readings that could be chosen, and baselines; of single layers and heads how many others there are."""
    shown = [line for line in found.lines if line.reads is not None or line.kind == BASELINE]
    others = [line for line in found.readings if line.reads is None]
    failed = sum(line.verdict == "fails" for line in others)
    rest = f" Of {len(others)} single layers and heads that were not chosen {failed} fail by Γ." if others else ""
    columns = (
        text("reading"), verdict(), *wide(text("site"), text("head"), text("query", "read from")), number("ranks", "Γ"),
        interval("ranks_low", "ranks_high", "interval"), number("carried", "Γ of what is read"), number("reads", "M"),
        *wide(interval("reads_low", "reads_high", "interval of M")), count("n"),
        *wide(count("left_out", "unread heads")),
    )  # fmt: skip
    return Table("Readings", pl.DataFrame([_row(line) for line in shown], SCHEMA), CAPTION + rest, columns)


def _row(line: Judged) -> dict[str, Any]:
    judged = None if line.kind == BASELINE else line.verdict
    found: dict[str, Any] = {"reading": line.name + (" (chosen)" if line.chosen else ""), "verdict": judged}
    found |= {name: getattr(line, name) or None for name in ("site", "head", "query", "left_out")}
    for name in MARGINS:
        own: Variant | None = getattr(line, name)
        found |= {name: own and own.statistic, f"{name}_low": own and own.low, f"{name}_high": own and own.high}
    return found | {"n": line.ranks and line.ranks.n}


SCHEMA = pl.Schema(
    dict.fromkeys(("reading", "verdict", "site", "head", "query"), pl.String)
    | {f"{name}{end}": pl.Float64 for name in MARGINS for end in ("", "_low", "_high")}
    | dict.fromkeys(("n", "left_out"), pl.Int64)
)
CAPTION = (
    "Each by the specification that its verdict hangs on, on texts that chose nothing; chance: 0. One reading was "
    "chosen on other texts, and it alone can be the answer. Intervals are at 90 %, of the chosen one, where it is not "
    "the readout, at 95 %."
)
