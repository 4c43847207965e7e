"""Frames like those of the agreement experiment, small and made up."""

import numpy as np
import polars as pl

SOFTMAX = "bilstm:attention=tanh,projection=softmax,vectors=glove"
SPARSEMAX = "bilstm:attention=tanh,projection=sparsemax,vectors=glove"
PAIRS = (
    ("attention", "gradient"),
    ("attention", "leave_one_out"),
    ("gradient", "leave_one_out"),
    ("random", "gradient"),
)


def agreement_rows(
    texts: int = 60, classes: tuple[str, ...] = ("negative", "positive"), task: str = "rotten_tomatoes"
) -> pl.DataFrame:
    """τ of every text for two models and four pairs; the first text of each has none."""
    draw = np.random.default_rng(0)
    predicted = [classes[i % len(classes)] for i in range(texts)]
    parts = []
    for model in (SOFTMAX, SPARSEMAX):
        for first, second in PAIRS:
            values = np.clip(draw.normal(0.0 if first == "random" else 0.4, 0.3, texts), -1, 1)
            who = {"task": task, "model": model, "seed": 0, "example": range(texts), "n": 20, "gold": classes[0]}
            what = {
                "predicted": predicted,
                "first": first,
                "second": second,
                "measure": "tau",
                "k": "all",
                "size": None,
            }
            found = {"value": [None, *values[1:]], "p": 0.01, "maximum": 1.0, "chance": 0.0}
            parts.append(pl.DataFrame(who | what | found, schema_overrides={"size": pl.Int64, "value": pl.Float64}))
    return pl.concat(parts)


def agreement_summary() -> pl.DataFrame:
    """Means of every measure and k for two models and four pairs."""
    measures = [(name, "all") for name in ("tau", "tau_corrected", "gamma")]
    measures += [(name, k) for name in ("fagin", "bucket", "legacy") for k in ("10", "1", "average", "3", "nonzeros")]
    return pl.DataFrame(
        [
            {"task": "rotten_tomatoes", "model": model, "class": "all", "first": first, "second": second}
            | {"measure": measure, "k": k, "seeds": 3, "n": 750, "undefined": 1}
            | {"mean": 0.3, "std": 0.1, "low": 0.25, "high": 0.35, "significant": None, "chance": 0.1}
            | {"maximum": 0.6 if measure == "tau" else None}
            for model in (SPARSEMAX, SOFTMAX)
            for first, second in PAIRS
            for measure, k in measures
        ]
    )
