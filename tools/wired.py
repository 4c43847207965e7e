"""Readings of transformers whose truth is known: `python -m tools.wired FOLDER` keeps what the audit says of each.

Two tables: the answers, and every reading that could be chosen, with its verdict and numbers.
"""

import sys
from pathlib import Path

import polars as pl

from exegete.runs.tables import write_csv
from exegete.wings.calibration.transformers import WRONG, audit_transformer

SEEDS = 2


def main(folder: Path) -> None:
    """Ask all of them."""
    answers, readings = [], []
    for name, wrong in WRONG.items():
        for seed in range(SEEDS):
            found = audit_transformer(name, seed)
            ((where, decision),) = found.decisions.items()
            facts = {"truth": name, "seed": seed}
            answers.append(facts | {"answer": decision.answer, "reading": decision.reading,
                                    "wrong": decision.answer in wrong, "why": decision.why})  # fmt: skip
            for line in found.readings[where].lines:
                if line.reads is not None or line.kind == "baseline":
                    numbers = {
                        name: each.statistic if each else None
                        for name, each in (("gamma", line.ranks), ("gamma_read", line.carried), ("m", line.reads))
                    }
                    said = {"reading": line.name, "site": line.site, "head": line.head, "query": line.query}
                    told = {"verdict": line.verdict, "chosen": line.chosen, "unread_heads": line.left_out}
                    readings.append(facts | said | told | numbers)
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(folder / "answers.csv", pl.DataFrame(answers, infer_schema_length=None))
    write_csv(folder / "readings.csv", pl.DataFrame(readings, infer_schema_length=None))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
