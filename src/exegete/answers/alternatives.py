"""Alternatives: which method goes furthest, by the same yardstick as attention, whatever attention's own grade is.

The yardstick is Γ, how well the sizes of scores order words by what they do. Methods that erase words as the effect
does are left out: they nearly compute it. The best is chosen on texts held out for it (where there are none, on every
other text, and judged on the rest). On the texts that judge, every other is held against it, text by text; those that
can't be told from it (5 %) are as good an answer, and the cheapest of them comes first. How much better than attention
each is, is a paired difference, of all specifications and of each. All intervals hold however many texts were asked
(exegete.measures.betting).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl
from torch import Tensor

from exegete.answers.context import MethodCost
from exegete.answers.rules import ERROR, TEXTS
from exegete.base.names import parse
from exegete.experiments.faithfulness.leaderboard import removal_of
from exegete.experiments.mediation.experiment import ATTENTION, TEST
from exegete.experiments.mediation.statistics import gammas
from exegete.importance.catalogue import IMPORTANCES
from exegete.measures.betting import Bets
from exegete.report.labels import method_label
from exegete.report.section import Outcome, Variant

NOISE = "random"


@dataclass(frozen=True)
class Readable:
    """A method that orders words by what they do, as well as any that was asked."""

    method: str
    gamma: float
    low: float
    high: float
    n: int
    better: Variant  # than attention: the paired difference of Γ
    specifications: tuple[Variant, ...] = ()  # the same by specification
    cost: MethodCost | None = None  # per text, where it is known

    @property
    def signed(self) -> bool:
        """Whether its scores say for which class a word speaks; a norm of a gradient does not, for one.

        Scores from a file, which may be gone by now, and methods that nobody knows any more are taken to have one.
        """
        name = parse(self.method).name
        return name == "given" or name not in IMPORTANCES or getattr(IMPORTANCES.make(self.method), "signed", True)

    @property
    def said(self) -> str:
        """The method and its number, as people read them."""
        order = f"Γ {self.gamma:.2f} [{self.low:.2f}, {self.high:.2f}]"
        return f"{method_label(self.method)} ({order}{self._gain}{self._price})"

    @property
    def _gain(self) -> str:
        low, high, by = self.better.low, self.better.high, self.better.statistic
        if low is None or high is None or by is None:
            return ""
        if low > 0:
            return f", {by:.2f} [{low:.2f}, {high:.2f}] better than attention"
        return ", not surely better than attention" if high > 0 else f", {-by:.2f} worse than attention"

    @property
    def _price(self) -> str:
        if self.cost is None:
            return ""
        passes = round(self.cost.forward) + round(self.cost.backward)
        return f"; {passes} pass{'es' if passes != 1 else ''} and {self.cost.ms:.1f} ms a text"

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self) | {"cost": None if self.cost is None else self.cost._asdict()}


def readable(
    rows: pl.DataFrame, choose_on: str, counted: Sequence[str], costs: dict[str, MethodCost]
) -> tuple[Readable, ...]:
    """The methods that can't be told from the best, the cheapest first; none where no other was asked."""
    names = list(counted)
    rivals = [method for method in rows["method"].unique(maintain_order=True) if _competes(method)]
    own = {method: gammas(rows, TEST, method, names).nanmean(0) for method in rivals}  # [text], in their keyed order
    held_out = choose_on and (rows["split"] == choose_on).any()
    if held_out:
        level = {method: float(gammas(rows, choose_on, method, names).nanmean()) for method in rivals}
    else:
        level = {method: float(values[::2].nanmean()) for method, values in own.items()}
        own = {method: values[1::2] for method, values in own.items()}
    known = {method: value for method, value in level.items() if value == value}
    if not known:
        return ()
    best = max(known, key=lambda method: known[method])
    alike = [m for m in known if m == best or not _difference(own[best], own[m]).rejects_at_most(0.0, ERROR)]
    half = slice(None) if held_out else slice(1, None, 2)
    found = []
    for method in alike:
        interval = Bets(own[method]).interval(ERROR / 2)
        if interval.n >= TEXTS:
            better = _better(rows, method, names, "all", half)
            each = tuple(_better(rows, method, [name], name, half) for name in names)
            found.append(
                Readable(
                    method, interval.mean, interval.low, interval.high, interval.n, better, each, costs.get(method)
                )
            )
    return tuple(sorted(found, key=lambda each: (each.cost.ms if each.cost else float("inf"), -each.gamma)))


def _better(rows: pl.DataFrame, method: str, counted: list[str], name: str, texts: slice) -> Variant:
    """How much higher a method's Γ is than attention's on the same texts."""
    attention = next(m for m in rows["method"].unique(maintain_order=True) if parse(m).name == ATTENTION)
    mine, theirs = (gammas(rows, TEST, each, counted).nanmean(0)[texts] for each in (method, attention))
    mean, low, high, n, _ = _difference(mine, theirs).interval(ERROR / 2)
    verdict: Outcome = "holds" if low > 0 else "fails" if high < 0 else "cannot tell"
    return Variant(name, mean, low, high, n, verdict) if n else Variant(name, n=0, verdict="cannot tell")


def _difference(one: Tensor, other: Tensor) -> Bets:
    return Bets(one - other, -2.0, 2.0)


def _competes(method: str) -> bool:
    """Not attention or noise, nor what erases words as the effect does."""
    return parse(method).name not in (ATTENTION, NOISE) and removal_of(method) is None
