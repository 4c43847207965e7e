"""How big can it get? `python -m tools.how_big FOLDER` computes time and money for more texts and larger models.

Everything here is an estimate: a product of few numbers, some of which were measured on one core of a machine without a
GPU, and the others assumed. Passes per text and seconds per pass are of the default audit's questions; a larger model
needs the same passes, each as long as its multiplications take.

    seconds = texts × passes × seconds of a pass        if every text is asked about
    seconds = texts × epochs × 3 passes                 to train on them, or 0 where the model came trained
"""

import sys
from pathlib import Path
from typing import NamedTuple

import polars as pl

from exegete import __version__
from exegete.base.files import write_json
from exegete.runs.tables import write_csv

TEXTS = (10**4, 10**6, 10**8)
ASKED = 1_000  # texts, where a keyed choice of them is asked about
EPOCHS = 8
# Measured, default audit, sentences of 21 words, one thread: milliseconds a text of all importances of faithfulness,
# of faithfulness's own passes on one split, and of mediation; milliseconds a pass (kernel SHAP, 195 passes in 42 ms).
SCORING, FAITHFULNESS, MEDIATION, PASS = 181.0, 144.0, 83.0, 0.215
PASSES = (SCORING + FAITHFULNESS + MEDIATION) / PASS  # as many readings as take that long
WORD = 30  # pieces that a sentence of 21 words has


class Kind(NamedTuple):
    """A model: how long one reading of a sentence takes, on what, and what an hour of that costs."""

    name: str
    seconds: float
    on: str
    dollars: float  # an hour; assumed
    known: str


KINDS = (
    Kind("BiLSTM", PASS / 1000, "core", 0.04, "measured"),
    Kind("encoder, 22 M", 9.6e-3 * WORD / 32, "core", 0.04, "measured: 9.6 ms for 32 pieces"),
    Kind("decoder, 7 B", 2 * 7e9 * WORD / 100e12, "GPU", 2.0, "assumed: 100 TFLOP/s of a GPU; none was tried"),
)


def estimated() -> pl.DataFrame:
    """Hours and dollars by model, texts and which of them are asked about."""
    rows = []
    for kind in KINDS:
        for texts in TEXTS:
            training = 0.0 if kind.on == "GPU" else texts * EPOCHS * 3 * kind.seconds
            for asked in (ASKED, texts):
                asking = asked * PASSES * kind.seconds
                hours = (training + asking) / 3600
                rows.append(
                    {
                        "model": kind.name,
                        "texts": texts,
                        "asked": asked,
                        "training_hours": training / 3600,
                        "asking_hours": asking / 3600,
                        "on": kind.on,
                        "dollars": hours * kind.dollars,
                        "dominates": "training" if training > asking else "asking",
                        "pass": kind.known,
                    }
                )
    return pl.DataFrame(rows)


def main(folder: Path) -> None:
    """Write the table, and what it rests on."""
    write_csv(folder / "how_big.csv", estimated())
    measured = {"scoring_ms": SCORING, "faithfulness_ms": FAITHFULNESS, "mediation_ms": MEDIATION, "pass_ms": PASS}
    facts = {"exegete": __version__, "estimated": True, "measured": measured, "passes": round(PASSES), "epochs": EPOCHS}
    write_json(folder / "manifest.json", facts | {"command": "python -m tools.how_big results/how_big"})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
