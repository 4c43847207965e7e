"""Dispersion in a report: how evenly importance spreads, what states are made of, and what sparsity changes."""

from collections.abc import Iterator

import polars as pl

from exegete.experiments.common.section import Found, which
from exegete.experiments.dispersion.sweep_figure import swept
from exegete.page.columns import Column, count, interval, number, probability, text
from exegete.page.panels import named
from exegete.page.section import Figure, Section, Table

MEANING = (
    "Attention weighs hidden states, and a state is made of many words. Normalised entropy says how evenly "
    "importance spreads over the words of a text: 0 if one word has all of it, 1 if all words have the same. "
    "Sparse attention has a low entropy by design; the question is whether the importance of words is low in "
    "entropy too (Meister et al. 2021). For a state the importance of a word is how much the state's length moves "
    "with the word's embedding; a word's share in its own state, and its rank there, stand beside what words that "
    "all count the same would have."
)
TAU = (
    "τ-b of attention with the importance of words and with that of states. Part of the second is so by "
    "construction: a state without weight has neither a gradient through the pool nor an effect when it is "
    "removed, so zeros meet zeros. With constant weights the gradient by a state is its weight times a constant, "
    "and τ is 1 whatever the model has learnt. τ-b among the states that have weight is free of the zeros. Ties "
    "cap τ-b with words: its attainable maximum stands beside it. τ-b over that maximum only counts pairs that "
    "attention tells apart, which are fewer and easier pairs the sparser it is: its rise is no proof of better "
    "agreement. Wiegreffe & Pinter (2019) object that τ disfavours models whose states mix words."
)
SWEEP = (
    "Larger λ makes attention sparser (sparsemax is λ = 0). So a negative τ of λ with entropy says that entropy falls "
    "as attention gets sparser; Meister et al. print negative numbers (table 2) and read them as a rise. They don't "
    "say what was correlated, so there are three readings: the means at each λ (grid), all texts at all λ in one list "
    "(pooled), and each text on its own (text). All intervals are over texts, for these trained models: another "
    "training moves all texts of a λ together, and intervals know nothing of it. So what is said needs p < 0.05 as "
    "well. Of the grid it is exact, over the order of its points, and needs 5 values of λ; of the others it is over "
    "permutations of each seed's models, and needs 5 seeds per λ. With fewer nothing is claimed. Where λ does nothing, "
    "one reading in twenty still claims something."
)
SHOWN = {
    "gradient_inputs": "words, gradient",
    "leave_one_out_inputs": "words, leave-one-out",
    "gradient_states": "states, gradient",
    "gradient_states_detached": "states, gradient, constant weights",
    "leave_one_out_states": "states, leave-one-out, weights renormalised",
    "leave_one_out_states_projected": "states, leave-one-out, scores projected again",
}
ENTROPIES = {
    "attention": "attention", "gradient_inputs": "gradient", "leave_one_out_inputs": "leave-one-out",
    "gradient_on_states": "words for a state",
}  # fmt: skip


def headline(found: Found) -> Table:
    """Entropies, and τ with words and with states by gradient."""
    wide = _side_by_side(found.summary, "mean")
    columns = [*which(wide), *(number(f"entropy_{name}", f"H {label}") for name, label in ENTROPIES.items())]
    columns += [number("tau_gradient_inputs", "τ words"), number("tau_gradient_states", "τ states")]
    caption = "H: mean normalised entropy over the words of a text; τ: mean τ-b of attention with the gradient."
    return Table("Dispersion of importance", wide, caption, columns)


def sections(found: Found) -> Iterator[Section]:
    """Entropies and states; attention against words and states; the sweep of λ; the paper's tables."""
    summary = found.summary
    charts = found.charts()
    figure = Figure("How evenly importance spreads", charts["entropy"])
    yield Section("Sparse attention, sparse words?", "", [MEANING], [_entropies(summary), _own(summary)], [figure])
    figure = Figure("Attention against words and states", charts["correlation"])
    yield Section("Attention against words and against states", "", [TAU], [_coefficients(summary)], [figure])
    has_sweep = not swept(summary).is_empty()
    if has_sweep:
        figures = [
            Figure("Attention against words and states by λ", charts["correlation_by_lambda"]),
            Figure("Entropy by λ", charts["entropy_by_lambda"]),
        ]
        yield Section("What the dial of sparsity changes", "", [SWEEP], [_moves(found)], figures)
    yield Section("The tables of Meister et al. (2021), ours", "", (), list(_paper(found, has_sweep)))


def _side_by_side(summary: pl.DataFrame, value: str) -> pl.DataFrame:
    """A line per task and model, a column per measure."""
    return named(summary.pivot("measure", index=["task", "model"], values=value, maintain_order=True))


def _entropies(summary: pl.DataFrame) -> Table:
    kinds = {f"entropy_{name}": label for name, label in ENTROPIES.items()}
    shown = named(summary.filter(pl.col("measure").is_in(list(kinds))))
    shown = shown.with_columns(pl.col("measure").replace_strict(kinds))
    columns = [*which(shown), text("measure", "importance"), *_NUMBERS]
    caption = "Mean normalised entropy over texts; the reference is that of words that all count the same."
    return Table("Normalised entropy", shown, caption, columns)


_NUMBERS: list[Column] = [
    number("mean"), number("std"), interval("low", "high"), number("reference"), count("n"), count("undefined"),
]  # fmt: skip


def _own(summary: pl.DataFrame) -> Table:
    kinds = {"own_share": "share", "own_rank": "rank"}
    shown = named(summary.filter(pl.col("measure").is_in(list(kinds))))
    shown = shown.with_columns(pl.col("measure").replace_strict(kinds))
    columns = [*which(shown), text("measure"), *_NUMBERS]
    caption = "Of word i in its own state h_i, mean over states and texts; rank 1 is the most important word."
    return Table("A word in its own state", shown, caption, columns)


def _coefficients(summary: pl.DataFrame) -> Table:
    parts = []
    for pair, label in SHOWN.items():
        measures = {f"{name}_{pair}": name for name in ("tau", "maximum", "corrected", "gamma", "inside")}
        kept = summary.filter(pl.col("measure").is_in(list(measures)))
        kept = kept.with_columns(pl.col("measure").replace_strict(measures))
        means = kept.pivot("measure", index=["task", "model"], values="mean", maintain_order=True)
        raw = kept.filter(pl.col("measure") == "tau").select("task", "model", "low", "high", "n", "undefined")
        joined = means.join(raw, on=["task", "model"], how="left", maintain_order="left")
        parts.append(joined.with_columns(pair=pl.lit(label)))
    shown = named(pl.concat(parts))
    columns = [
        *which(shown), text("pair", "attention with"), number("tau", "τ-b"), interval("low", "high"),
        number("maximum", "attainable"), number("corrected", "τ-b / attainable"), number("gamma", "γ"),
        number("inside", "among words with weight"), count("n"), count("undefined"),
    ]  # fmt: skip
    return Table("Attention against words and states", shown, "Means over texts; unrelated rankings have 0.", columns)


def _moves(found: Found) -> Table:
    labels = {f"entropy_{name}": f"entropy, {label}" for name, label in ENTROPIES.items()}
    for name, said in (("tau", "τ-b"), ("corrected", "τ-b / attainable"), ("inside", "τ-b among words with weight")):
        labels |= {f"{name}_{pair}": f"{said}, {label}" for pair, label in SHOWN.items()}
    labels |= {"own_share": "share of a word in its own state", "support_share": "share of words with weight"}
    moved = found.table("sweep").with_columns(pl.col("measure").replace_strict(labels))
    columns = [
        text("task"), text("family", "model"), text("measure"), text("reading"), number("tau", "τ with λ"),
        interval("low", "high", "interval, these models"), probability("p"), count("n"), count("seeds"),
        text("meaning", "it"),
    ]  # fmt: skip
    caption = (
        "Larger λ is sparser: negative means falling. Intervals are over texts, for these trained models; p is over "
        "trainings (see above)."
    )
    return Table("τ-b of λ with every measure", moved, caption, columns)


PAPER = {
    "meister_1": ("Table 1", "Mean, std and n of the normalised entropy of words for a state."),
    "meister_2": (
        "Table 2",
        "τ-b of λ with the normalised entropy of the gradient of words; larger λ is sparser. Intervals are over texts, "
        "for these trained models; p is over trainings.",
    ),
    "meister_3": ("Table 3", "Texts, and the accuracy of every model on those that were asked about."),
    "meister_6": ("Table 6", "Mean and std of τ-b of attention; its maximum, their ratio, γ, among words with weight."),
}


def _paper(found: Found, has_sweep: bool) -> Iterator[Table]:
    for name, (title, caption) in PAPER.items():
        if has_sweep or name != "meister_2":
            yield Table(title, found.table(name), caption)
