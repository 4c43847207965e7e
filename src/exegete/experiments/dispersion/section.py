"""Dispersion in a report: how evenly importance spreads, what states are made of, and what sparsity changes."""

from collections.abc import Callable, Mapping

import polars as pl

from exegete.experiments.common.section import Passage, QuestionResult, Shown, chapter, shown
from exegete.experiments.dispersion.figure import swept
from exegete.report.columns import count, interval, number, probability, text
from exegete.report.section import Table

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
CELL = ["task", "model"]
KINDS = {f"entropy_{name}": label for name, label in ENTROPIES.items()}
OWN = {"own_share": "share", "own_rank": "rank"}


def _by_measure(frame: pl.DataFrame) -> pl.DataFrame:
    """A line per task and model, a column per measure."""
    return frame.pivot("measure", index=CELL, values="mean", maintain_order=True)


def _measured(title: str, kinds: Mapping[str, str], name: str, caption: str) -> Shown:
    return shown(
        title,
        text("measure", name), number("mean"), number("std"), interval("low", "high"), number("reference"), count("n"),
        count("undefined"),
        caption=caption, where=pl.col("measure").is_in(list(kinds)), words={"measure": kinds},
    )  # fmt: skip


def _coefficients(summary: pl.DataFrame) -> pl.DataFrame:
    """A line per task, model and pair: τ-b with its interval, and all that is made of it."""
    parts = []
    for pair, label in SHOWN.items():
        measures = {f"{name}_{pair}": name for name in ("tau", "maximum", "corrected", "gamma", "inside")}
        kept = summary.filter(pl.col("measure").is_in(list(measures)))
        kept = kept.with_columns(pl.col("measure").replace_strict(measures))
        raw = kept.filter(pl.col("measure") == "tau").select(*CELL, "low", "high", "n", "undefined")
        joined = _by_measure(kept).join(raw, on=CELL, how="left", maintain_order="left")
        parts.append(joined.with_columns(pair=pl.lit(label)))
    return pl.concat(parts)


def _moves() -> dict[str, str]:
    """Every measure that λ may move, in words."""
    labels = {name: f"entropy, {label}" for name, label in KINDS.items()}
    for name, said in (("tau", "τ-b"), ("corrected", "τ-b / attainable"), ("inside", "τ-b among words with weight")):
        labels |= {f"{name}_{pair}": f"{said}, {label}" for pair, label in SHOWN.items()}
    return labels | {"own_share": "share of a word in its own state", "support_share": "share of words with weight"}


DISPERSION = shown(
    "Dispersion of importance",
    *(number(name, f"H {label}") for name, label in KINDS.items()),
    number("tau_gradient_inputs", "τ words"), number("tau_gradient_states", "τ states"),
    caption="H: mean normalised entropy over the words of a text; τ: mean τ-b of attention with the gradient.",
    first=_by_measure,
)  # fmt: skip
SPREAD = _measured(
    "Normalised entropy",
    KINDS,
    "importance",
    "Mean normalised entropy over texts; the reference is that of words that all count the same.",
)
STATES = _measured(
    "A word in its own state",
    OWN,
    "measure",
    "Of word i in its own state h_i, mean over states and texts; rank 1 is the most important word.",
)
COEFFICIENTS = shown(
    "Attention against words and states",
    text("pair", "attention with"), number("tau", "τ-b"), interval("low", "high"), number("maximum", "attainable"),
    number("corrected", "τ-b / attainable"), number("gamma", "γ"), number("inside", "among words with weight"),
    count("n"), count("undefined"),
    caption="Means over texts; unrelated rankings have 0.", first=_coefficients,
)  # fmt: skip
MOVES = shown(
    "τ-b of λ with every measure",
    text("task"), text("family", "model"), text("measure"), text("reading"), number("tau", "τ with λ"),
    interval("low", "high", "interval, these models"), probability("p"), count("n"), count("seeds"),
    text("meaning", "it"),
    caption="Larger λ is sparser: negative means falling. Intervals are over texts, for these trained models; p is "
    "over trainings (see above).", of="sweep", words={"measure": _moves()},
)  # fmt: skip
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


def _printed(name: str) -> Callable[[QuestionResult], Table | None]:
    """A table of the paper; that of the sweep only where there is one."""
    title, caption = PAPER[name]

    def table(found: QuestionResult) -> Table | None:
        there = name != "meister_2" or not swept(found.summary).is_empty()
        return Table(title, found.table(name), caption) if there else None

    return table


headline, sections = chapter(
    DISPERSION,
    Passage(
        "Sparse attention, sparse words?", [MEANING], [SPREAD, STATES], {"entropy": "How evenly importance spreads"}
    ),
    Passage(
        "Attention against words and against states",
        [TAU],
        [COEFFICIENTS],
        {"correlation": "Attention against words and states"},
    ),
    Passage(
        "What the strength of sparsity changes",
        [SWEEP],
        [MOVES],
        {"correlation_by_lambda": "Attention against words and states by λ", "entropy_by_lambda": "Entropy by λ"},
    ),
    Passage("The tables of Meister et al. (2021), ours", (), [_printed(name) for name in PAPER]),
)
