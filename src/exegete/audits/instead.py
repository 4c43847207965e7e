"""Instead: what to read where attention may not be read, by the same yardstick that refused it.

The yardstick is Γ, how well the sizes of scores order words by what they do. Methods that erase words as the effect
does are left out: they nearly compute it. The best is chosen on texts held out for it. On the test texts every other is
held against it, text by text; those that can't be told from it (one-sided, 5 %) are as good an answer, and the cheapest
of them comes first.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from exegete.audits.context import MethodCost
from exegete.audits.rules import ERROR, TEXTS
from exegete.base.names import parse
from exegete.experiments.faithfulness.leaderboard import removal_of
from exegete.experiments.mediation.experiment import ATTENTION, TEST
from exegete.experiments.mediation.statistics import gammas
from exegete.measures.student import one_sided
from exegete.page.labels import method_label

NOISE = "random"


@dataclass(frozen=True)
class Readable:
    """A method that orders words by what they do, as well as any that was asked."""

    method: str
    gamma: float
    low: float
    high: float
    n: int
    cost: MethodCost | None = None  # per text, where it is known

    @property
    def said(self) -> str:
        """The method and its number, as people read them."""
        return f"{method_label(self.method)} (Γ {self.gamma:.2f} [{self.low:.2f}, {self.high:.2f}]{self._price})"

    @property
    def _price(self) -> str:
        if self.cost is None:
            return ""
        passes = round(self.cost.forward) + round(self.cost.backward)
        return f", {passes} pass{'es' if passes != 1 else ''} and {self.cost.ms:.1f} ms a text"

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self) | {"cost": None if self.cost is None else self.cost._asdict()}


def readable(
    rows: pl.DataFrame, choose_on: str, counted: Sequence[str], costs: dict[str, MethodCost]
) -> tuple[Readable, ...]:
    """The methods that can't be told from the best, the cheapest first; none where no other was asked."""
    split = choose_on or TEST
    rivals = [method for method in rows["method"].unique(maintain_order=True) if _competes(method)]
    level = {method: float(gammas(rows, split, method, list(counted)).nanmean()) for method in rivals}
    known = {method: value for method, value in level.items() if value == value}
    if not known:
        return ()
    best = max(known, key=lambda method: known[method])
    own = {method: gammas(rows, TEST, method, list(counted)) for method in known}
    alike = [m for m in known if m == best or not one_sided(own[best] - own[m], ERROR, 2.0).low > 0]
    found = []
    for method in alike:
        interval = one_sided(own[method], ERROR / 2)
        if interval.n >= TEXTS:
            found.append(Readable(method, interval.mean, interval.low, interval.high, interval.n, costs.get(method)))
    return tuple(sorted(found, key=lambda each: (each.cost.ms if each.cost else float("inf"), -each.gamma)))


def _competes(method: str) -> bool:
    """Not attention or noise, nor what erases words as the effect does."""
    return parse(method).name not in (ATTENTION, NOISE) and removal_of(method) is None
