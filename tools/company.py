"""Whose weights does company need? `python -m tools.company FOLDER` keeps Γ in company by three definitions.

In company every word's effect is taken in what is left when a random half of the text is gone, and is the mean over
draws. The weights it is compared with may be

    whole    those of the whole text: Γ(mean |e| | α)
    mean     those that the model gives within each half, times the share of words that is left, the mean over draws:
             Γ(mean |e| | mean α)
    within   those within each half, half by half: the mean of Γ(|e| | α) over the halves in which some word matters
    pooled   the same as one ratio: the numerators of all halves by their denominators, so that halves count by effects

Asked of models whose truth is known, hand-set, wired and trained ones, and of one more kind that is none of the
families of calibration: *loud fallback*, where attention decides by its cue, and texts that lost it fall back on words
that say as much and have no order (alone it is in order; what company should say of it is the question).

Where attention is read and in order Γ should be near 1; where it isn't, low; and where it is partly in order, what it
is alone. All is computed by the slow formula of calibration (`calibration.truth`), of the drawn numbers or by
passes, over texts that no audit sees.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from exegete.base.noise import stable_seed
from exegete.models.truths.classifier import HandSet
from exegete.models.truths.families import FAMILIES, Dice, DrawnFamily, Family, draw_family
from exegete.models.truths.transformers import WIRED, build_wired
from exegete.runs.tables import write_csv
from exegete.wings.calibration.families import draw_truth
from exegete.wings.calibration.training import TRAINED
from exegete.wings.calibration.truth import (
    MATTERS,
    Arithmetic,
    Floats,
    Passes,
    TextFunction,
    WordRows,
    of_bases,
    true_effects,
)

DRAWS, HALVES, TEXTS = 16, 8, 60
FEW = 2  # draws of models that take long: trained and wired ones
DEFINITIONS = ("whole", "mean", "within", "pooled")
WIRED_KNOWN = {"planted": "strong", "planted beside an idle word": "strong", "partly planted": "partly"}


class Companies(NamedTuple):
    """Γ of a text: alone, and in company by the weights it is compared with."""

    alone: float
    whole: float
    mean: float
    within: float
    pooled: float


def parts(e: Floats, attention: Floats) -> tuple[float, float]:
    """Numerator and denominator of Γ(|e| | α), pair by pair."""
    apart = abs(e)[:, None] - abs(e)
    return float((np.sign(attention[:, None] - attention) * apart).sum()), float(abs(apart).sum())


def gamma(e: Floats, attention: Floats) -> float:
    """Γ(|e| | α) of a text."""
    in_order, apart = parts(e, attention)
    return in_order / max(apart, 1e-300)


def companies(told: TextFunction, text: WordRows, random: np.random.Generator) -> Companies:
    """Γ by all definitions; NaN where no word matters."""
    n, cut, whole = len(text), (len(text) + 1) // 2, told.attention(text[None])[0]
    alone, _ = true_effects(told, text)
    order = np.argsort(random.random((HALVES, n)), 1)
    e, weights, within, ratio = np.zeros((HALVES, n)), np.zeros((HALVES, n)), [], np.zeros(2)
    for half in (np.sort(order[:, :cut], 1), np.sort(order[:, cut:], 1)):  # [draw, word]: places in the text
        found, own = of_bases(told, text[half])[0], told.attention(text[half])
        np.put_along_axis(e, half, found, 1)
        np.put_along_axis(weights, half, own * half.shape[1] / n, 1)
        within += [gamma(*each) for each in zip(found, own, strict=True) if abs(each[0]).max() >= MATTERS]
        ratio += np.sum([parts(*each) for each in zip(found, own, strict=True)], 0)
    mean = e.mean(0)
    matters = abs(mean).max() >= MATTERS
    return Companies(
        gamma(alone, whole) if abs(alone).max() >= MATTERS else np.nan,
        gamma(mean, whole) if matters else np.nan,
        gamma(mean, weights.mean(0)) if matters else np.nan,
        float(np.mean(within)) if within else np.nan,
        float(ratio[0] / ratio[1]) if matters else np.nan,
    )


def _loud_fallback(dice: Dice) -> DrawnFamily:
    return DrawnFamily({"most": dice.whole("most", 1, 2)}, {"hum": dice.real("hum", 0.5, 1.0)}, {})


FALLBACK = Family("loud fallback", "strong", "without its cue a text falls back on words without order", _loud_fallback)


def row(name: str, number: int, known: str, told: TextFunction, texts: Sequence[Sequence[int]]) -> dict[str, object]:
    """Means over the texts in which a word matters, of one model; none where these are less than half."""
    random = np.random.default_rng(stable_seed("company", name, number))
    found = np.array([companies(told, np.array(text), random) for text in texts[:TEXTS]])
    counts = (~np.isnan(found)).mean(0) >= 0.5
    means = [float(np.nanmean(column)) if kept else None for column, kept in zip(found.T, counts, strict=True)]
    return {"family": name, "number": number, "known": known} | dict(zip(Companies._fields, means, strict=True))


def rows() -> Iterator[dict[str, object]]:
    """A row per model."""
    for name in (*FAMILIES, *TRAINED):
        for number in range(FEW if name in TRAINED else DRAWS):
            found = draw_truth(name, number)
            hand_set = isinstance(found.model, HandSet)
            told = Arithmetic.of(found.model) if isinstance(found.model, HandSet) else Passes(found.model)
            yield row(name, number, found.known, told, found.texts if hand_set else found.texts[: TEXTS // 3])
    for number in range(DRAWS):
        fallback = draw_family(FALLBACK, number)
        texts = [fallback.model.reader.rows(text.words) for text in fallback.task.split("population")]
        yield row(FALLBACK.name, number, FALLBACK.known, Arithmetic.of(fallback.model), texts)
    for name in WIRED:
        for seed in range(FEW):
            truth = build_wired(name, seed)
            texts = [truth.model.reader.rows(text.words) for text in truth.task.split("dev")[: TEXTS // 3]]
            yield row(f"wired: {name}", seed, WIRED_KNOWN.get(name, "no"), Passes(truth.model), texts)


def by_family(table: pl.DataFrame) -> pl.DataFrame:
    """Mean and least Γ of every definition, a row per family."""
    means = [pl.col(name).mean().round(3) for name in Companies._fields]
    ends = [
        getattr(pl.col(name), end)().round(3).name.suffix(f"_{end}") for name in DEFINITIONS for end in ("min", "max")
    ]
    return table.group_by("family", "known", maintain_order=True).agg(pl.len().alias("n"), *means, *ends)


def main(folder: Path) -> None:
    """Ask all of them."""
    table = by_family(pl.DataFrame(list(rows()), infer_schema_length=None))
    write_csv(folder / "company.csv", table)
    with pl.Config(tbl_rows=60, tbl_cols=20, tbl_width_chars=220):
        print(table)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
