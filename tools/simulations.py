"""Do intervals and rules keep their word? `python -m tools.simulations FOLDER` simulates both, and keeps what it found.

*Intervals*: samples of kinds of values that audits have (about normal; skewed; nearly all at the ceiling; many ties;
rarely far off), of as many texts as verdicts are given for. How often does the true mean lie beyond either end?
Percentiles of the bootstrap and Student's t stand beside the bootstrap-t.

*Rules*: twelve specifications that share most of what is particular to a text, at means that make a verdict wrong. How
often is it given? (exegete.audits.rules)
"""

import math
import sys
from collections.abc import Callable
from pathlib import Path

import altair as alt
import polars as pl
import torch
from torch import Tensor

from exegete.audits.rules import Varying, ruled
from exegete.measures.statistics import bootstrap_mean, t_interval
from exegete.measures.student import one_sided
from exegete.page.panels import series
from exegete.page.theme import figure, inline, to_svg
from exegete.runs.tables import write_csv

SAMPLES = 2000
TEXTS, ALPHAS = (40, 60, 120, 200), (0.05, 0.05 / 24)
TRUTH = 2_000_000  # values behind a true mean
SPECIFICATIONS, SHARED = 12, 0.7
THRESHOLD, SPREAD = 0.7, 0.25

Draw = Callable[[int, torch.Generator], Tensor]


def normal(n: int, of: torch.Generator) -> Tensor:
    """Γ of texts as most models have it, cut at ±1."""
    return (torch.randn(n, generator=of, dtype=torch.float64) * 0.3 + 0.5).clamp(-1, 1)


def skewed(n: int, of: torch.Generator) -> Tensor:
    """Near 1, with a long tail below."""
    return 1 - 2 * torch.rand(n, generator=of, dtype=torch.float64) ** 6


def inflated(n: int, of: torch.Generator) -> Tensor:
    """Seven of ten at the ceiling, as M of a model that pools single words."""
    rest = torch.rand(n, generator=of, dtype=torch.float64) * 2 - 1
    return torch.where(torch.rand(n, generator=of) < 0.7, torch.ones_like(rest), rest)


def tied(n: int, of: torch.Generator) -> Tensor:
    """Five different values, as of short texts."""
    return (torch.randn(n, generator=of, dtype=torch.float64) * 0.8).round().clamp(-2, 2) / 2


def rare(n: int, of: torch.Generator) -> Tensor:
    """One of twenty is off by 1, all others by nothing: differences of two models that mostly agree."""
    off = torch.rand(n, generator=of) < 0.05
    return -off.double()


KINDS: dict[str, Draw] = {
    "about normal": normal, "skewed": skewed, "at the ceiling": inflated, "tied": tied, "rarely far": rare,
}  # fmt: skip
WAYS: dict[str, Callable[[Tensor, float], tuple[float, float]]] = {
    "bootstrap-t": lambda values, alpha: one_sided(values[None], alpha)[1:3],
    "percentiles": lambda values, alpha: bootstrap_mean(values, 1 - 2 * alpha, math.ceil(40 / alpha))[1:3],
    "Student's t": lambda values, alpha: t_interval(values, 1 - 2 * alpha)[1:3],
}


def coverage(samples: int = SAMPLES) -> pl.DataFrame:
    """How often the true mean is below the low end, and above the high one."""
    rows = []
    for place, (kind, draw) in enumerate(KINDS.items()):
        truth = draw(TRUTH, torch.Generator().manual_seed(1000 + place)).mean().item()
        for texts in TEXTS:
            of = torch.Generator().manual_seed(100 * place + texts)
            drawn = [draw(texts, of) for _ in range(samples)]
            for alpha in ALPHAS:
                for way, interval in WAYS.items():
                    ends = [interval(values, alpha) for values in drawn]
                    rows.append(
                        {
                            "kind": kind, "texts": texts, "alpha": alpha, "way": way, "samples": samples,
                            "below": sum(truth < low for low, _ in ends) / samples,
                            "above": sum(truth > high for _, high in ends) / samples,
                        }
                    )  # fmt: skip
    return pl.DataFrame(rows)


# What every scenario's specifications have as their means, for two tests; and the verdict that would be wrong.
SCENARIOS: dict[str, tuple[list[float], list[float], str]] = {
    "all at the threshold": ([THRESHOLD] * 12, [THRESHOLD] * 12, "any"),
    "one below, yes is wrong": ([THRESHOLD - 0.001, *[0.9] * 11], [0.9] * 12, "holds"),
    "one above, no is wrong": ([THRESHOLD + 0.001, *[0.5] * 11], [0.9] * 12, "fails"),
    "half above, half below by little": ([0.72] * 6 + [0.68] * 6, [0.9] * 12, "none"),
    "all above by little": ([0.73] * 12, [0.73] * 12, "hangs on"),
}


def rules(samples: int = SAMPLES, texts: int = 120) -> pl.DataFrame:
    """How often each verdict is given by the first test of every scenario."""
    rows = []
    for place, (name, (first, second, wrong)) in enumerate(SCENARIOS.items()):
        of = torch.Generator().manual_seed(place)
        said = [ruled([_varying(first, texts, of), _varying(second, texts, of)])[0].outcome for _ in range(samples)]
        shares = {verdict: said.count(verdict) / samples for verdict in ("holds", "fails", "hangs on", "cannot tell")}
        rows.append({"scenario": name, "wrong": wrong, "texts": texts, "samples": samples} | shares)
    return pl.DataFrame(rows)


def _varying(means: list[float], texts: int, of: torch.Generator) -> Varying:
    """Values of every specification: what a text has in all of them, and what it has in each."""
    common = torch.randn(texts, generator=of, dtype=torch.float64)
    own = torch.randn(len(means), texts, generator=of, dtype=torch.float64)
    noise = SPREAD * (math.sqrt(SHARED) * common + math.sqrt(1 - SHARED) * own)
    return Varying(THRESHOLD, 10.0, {str(i): (mean + noise[i])[None] for i, mean in enumerate(means)}, {})


def misses(table: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: the worse end of every kind and number of texts, as a multiple of what was promised."""
    worse = pl.max_horizontal("below", "above")
    return table.select(
        "kind",
        "texts",
        "way",
        nominal=pl.format("{} %", (100 * pl.col("alpha")).round(2)),
        times=worse / pl.col("alpha"),
    )


@figure(misses, "nothing was simulated")
def missing(table: pl.DataFrame) -> alt.FacetChart:
    """How many times as often as promised a true mean lies beyond the worse end of an interval, by kind of values and
    number of texts.
    """
    colour, shape = series("way", list(WAYS))
    base = alt.Chart().encode(
        x=alt.X("texts:O", title="texts"), y=alt.Y("times:Q", title="misses / promised"), color=colour
    )
    layers = alt.layer(
        base.mark_line(), base.mark_point(filled=True, size=40, opacity=1).encode(shape=shape),
        alt.Chart().mark_rule(strokeDash=[4, 3]).encode(y=alt.datum(1.3)),
    )  # fmt: skip
    return layers.properties(width=120, height=110).facet(
        column=alt.Column("kind:N", title=None), row="nominal:N", data=inline(table)
    )


def main(folder: Path, samples: int = SAMPLES) -> None:
    """Simulate, and keep tables and figure."""
    found, said = coverage(samples), rules(samples)
    write_csv(folder / "coverage.csv", found)
    write_csv(folder / "rules.csv", said)
    (folder / "coverage.svg").write_text(to_svg(missing(found)), encoding="utf8")
    worst = max(misses(found.filter(pl.col("way") == "bootstrap-t"))["times"].to_list())
    print(f"bootstrap-t misses at most {worst:.2f} times as often as promised")
    print(said)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else SAMPLES)
