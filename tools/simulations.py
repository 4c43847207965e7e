"""Do intervals and rules keep their word? `python -m tools.simulations FOLDER` simulates both, and keeps what it found.

*Intervals*: samples of kinds of values that audits have (about normal; skewed; at the ceiling, mostly or nearly always;
many ties; rarely far off), of as many texts as verdicts are given for. How often does the true mean lie beyond either
end? Those that decide are bounded; the bootstrap-t informs, and
percentiles of the bootstrap and Student's t stand beside them. Of several seeds that share their texts, too.

*Rules*: six specifications that share most of what is particular to a text, at means that make a verdict wrong. How
often is it given? (exegete.answers.rules)
"""

import math
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import altair as alt
import polars as pl
import torch
from torch import Tensor

from exegete.answers.rules import Varying, apply_rules
from exegete.base.files import write_text
from exegete.measures.bounds import bounded_mean
from exegete.measures.statistics import bootstrap_mean, t_interval
from exegete.measures.student import one_sided
from exegete.report.panels import series
from exegete.report.section import Outcome
from exegete.report.theme import figure, inline, to_svg
from exegete.runs.tables import write_csv

SAMPLES = 6_000
BESIDE = 1_000  # of the ways that stand beside ours
SPECIFICATIONS, SHARED = 6, 0.7
TEXTS, ALPHAS = (40, 60, 100, 200), (0.05, 0.05 / (2 * SPECIFICATIONS))
SEEDS = (3, 5)
TRUTH = 2_000_000  # values behind a true mean
THRESHOLD, SPREAD = 0.7, 0.1
VERDICTS: tuple[Outcome, ...] = ("holds", "fails", "hangs on", "cannot tell")

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


def nearly(n: int, of: torch.Generator) -> Tensor:
    """Nineteen of twenty at the ceiling, the rest anywhere: in a sample of few texts hardly one is off."""
    rest = torch.rand(n, generator=of, dtype=torch.float64) * 2 - 1
    return torch.where(torch.rand(n, generator=of) < 0.95, torch.ones_like(rest), rest)


def around(n: int, of: torch.Generator) -> Tensor:
    """Nine of ten at the ceiling, the rest not far from it."""
    rest = 1 - torch.rand(n, generator=of, dtype=torch.float64) / 2
    return torch.where(torch.rand(n, generator=of) < 0.9, torch.ones_like(rest), rest)


def outlying(n: int, of: torch.Generator) -> Tensor:
    """Close together but for one of twenty, which lies anywhere below: what few texts do to an order that is right."""
    bulk = 1 - 0.1 * torch.rand(n, generator=of, dtype=torch.float64)
    rest = torch.rand(n, generator=of, dtype=torch.float64) * 1.5 - 1
    return torch.where(torch.rand(n, generator=of) < 0.95, bulk, rest)


def tied(n: int, of: torch.Generator) -> Tensor:
    """Five different values, as of short texts."""
    return (torch.randn(n, generator=of, dtype=torch.float64) * 0.8).round().clamp(-2, 2) / 2


def rare(n: int, of: torch.Generator) -> Tensor:
    """One of twenty is off by 1, all others by nothing: differences of two models that mostly agree."""
    off = torch.rand(n, generator=of) < 0.05
    return -off.double()


KINDS: dict[str, Draw] = {
    "about normal": normal, "skewed": skewed, "mostly 1": inflated, "nearly always 1": nearly,
    "1 or little less": around, "few far below": outlying, "tied": tied, "rarely far": rare,
}  # fmt: skip
OURS = "bounded"
WAYS: dict[str, Callable[[Tensor, float], tuple[float, float]]] = {
    OURS: lambda values, alpha: bounded_mean(values[None], alpha)[1:3],
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
                    asked = {"kind": kind, "texts": texts, "alpha": alpha, "way": way}
                    some = drawn if way in (OURS, "bootstrap-t") else drawn[:BESIDE]
                    rows.append(asked | _missed([interval(values, alpha) for values in some], truth))
    return pl.DataFrame(rows)


def _missed(ends: list[tuple[float, float]], truth: float) -> dict[str, float]:
    n = len(ends)
    below, above = sum(truth < low for low, _ in ends), sum(truth > high for _, high in ends)
    return {"samples": n, "below": below / n, "above": above / n}


def clustered(samples: int = BESIDE) -> pl.DataFrame:
    """The same of several seeds that share their texts, by how much of a value is the seed's, and the text's."""
    rows = []
    for seeds, texts, (of_seed, of_text) in product(SEEDS, TEXTS, ((0.0, 0.3), (0.1, 0.3), (0.3, 0.1))):
        of = torch.Generator().manual_seed(seeds * 1000 + texts)
        drawn = [_crossed(seeds, texts, of_seed, of_text, of) for _ in range(samples)]
        asked = {"seeds": seeds, "texts": texts, "of_seed": of_seed, "of_text": of_text}
        rows += [
            asked | {"alpha": alpha} | _missed([bounded_mean(values, alpha, 10.0)[1:3] for values in drawn], 0.0)
            for alpha in ALPHAS
        ]
    return pl.DataFrame(rows)


def _crossed(seeds: int, texts: int, of_seed: float, of_text: float, of: torch.Generator) -> Tensor:
    """Values with the mean 0, [seed, text]: what a seed has, what a text has, and what both together have."""
    seed, text, both = (
        torch.randn(*shape, generator=of).double() for shape in ((seeds, 1), (1, texts), (seeds, texts))
    )
    return of_seed * seed + of_text * text + 0.2 * both


# What every scenario's specifications have as their means, for two tests; and the verdict that would be wrong.
SCENARIOS: dict[str, tuple[list[float], list[float], str]] = {
    "all at the threshold": ([THRESHOLD] * 6, [THRESHOLD] * 6, "any"),
    "one just below, yes is wrong": ([THRESHOLD - 0.001, *[0.9] * 5], [0.9] * 6, "holds"),
    "one just above, no is wrong": ([THRESHOLD + 0.001, *[0.5] * 5], [0.9] * 6, "fails"),
    "half above, half below by little": ([0.72] * 3 + [0.68] * 3, [0.9] * 6, "none: all are true in part"),
    "all above by little": ([0.72] * 6, [0.72] * 6, "hangs on"),
}


def rules(samples: int = BESIDE, texts: int = 100) -> pl.DataFrame:
    """How often each verdict is given by the first test of every scenario."""
    rows = []
    for place, (name, (first, second, wrong)) in enumerate(SCENARIOS.items()):
        of = torch.Generator().manual_seed(place)
        said = [
            apply_rules([_varying(first, texts, of), _varying(second, texts, of)])[0].outcome for _ in range(samples)
        ]
        shares = {verdict: said.count(verdict) / samples for verdict in VERDICTS}
        rows.append({"scenario": name, "wrong": wrong, "texts": texts, "samples": samples} | shares)
    return pl.DataFrame(rows)


def _varying(means: list[float], texts: int, of: torch.Generator) -> Varying:
    """Values of every specification: what a text has in all of them, and what it has in each."""
    common = torch.randn(texts, generator=of, dtype=torch.float64)
    own = torch.randn(len(means), texts, generator=of, dtype=torch.float64)
    noise = SPREAD * (math.sqrt(SHARED) * common + math.sqrt(1 - SHARED) * own)
    return Varying(THRESHOLD, 1.0, {str(i): (mean + noise[i]).clamp(-1, 1)[None] for i, mean in enumerate(means)}, {})


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
        x=alt.X("texts:O", title="texts"),
        y=alt.Y("times:Q", title="misses / promised", scale=alt.Scale(type="sqrt")),
        color=colour,
    )
    layers = alt.layer(
        base.mark_line(), base.mark_point(filled=True, size=40, opacity=1).encode(shape=shape),
        alt.Chart().mark_rule(strokeDash=[4, 3]).encode(y=alt.datum(1.3)),
    )  # fmt: skip
    return layers.properties(width=66, height=120).facet(
        column=alt.Column("kind:N", title=None), row="nominal:N", data=inline(table)
    )


@figure(lambda table: table.unpivot(VERDICTS, index=["scenario"], variable_name="verdict"), "nothing was simulated")
def given(table: pl.DataFrame) -> alt.LayerChart:
    """How often each verdict is given by a test whose specifications lie where one would be wrong. Dashed: 5 %."""
    colour, shape = series("verdict", VERDICTS)
    base = alt.Chart(inline(table)).encode(
        x=alt.X("value:Q", title="share of samples", axis=alt.Axis(format="%")),
        y=alt.Y("scenario:N", title=None, sort=list(SCENARIOS), axis=alt.Axis(labelLimit=260)),
    )
    drawn = alt.LayerChart(
        layer=[
            base.mark_point(filled=True, size=70, opacity=1).encode(color=colour, shape=shape),
            alt.Chart().mark_rule(strokeDash=[4, 3]).encode(x=alt.datum(0.05)),
        ]
    )
    return drawn.properties(width=420, height=150)


def main(folder: Path, samples: int = SAMPLES) -> None:
    """Simulate, and keep tables and figures."""
    beside = min(samples, BESIDE)
    found, shared, said = coverage(samples), clustered(beside), rules(beside)
    for name, table in (("coverage", found), ("seeds", shared), ("rules", said)):
        write_csv(folder / f"{name}.csv", table)
    write_text(folder / "coverage.svg", to_svg(missing(found)))
    write_text(folder / "rules.svg", to_svg(given(said)))
    worst = max(misses(found.filter(pl.col("way") == OURS))["times"].to_list())
    print(f"bounded intervals miss at most {worst:.2f} times as often as promised")
    print(said)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else SAMPLES)
