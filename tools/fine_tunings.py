"""Does another fine-tuning of the same recipe say the same? `python -m tools.fine_tunings results/audit_hf_seeds`.

MiniLM is fine-tuned on film reviews with other seeds (order of the texts, head), and each checkpoint is audited quickly
by itself: its answer, how well it predicts, and the two tests that decide, Γ and M, each in the specification that its
verdict hangs on. Two fine-tunings show whether an answer is one of a checkpoint alone; they are no interval.
"""

import argparse
from pathlib import Path

import polars as pl

import exegete
from exegete.base.files import write_json
from exegete.runs.tables import write_csv

TASK, MODEL = "rotten_tomatoes", "hf:minilm:head=cls,frozen=3"
DECIDING = {"ranks": "gamma", "reads": "m"}


def audited(seed: int, folder: Path) -> dict[str, object]:
    """One line: the fine-tuning, its answer and what decided it."""
    found = exegete.audit(MODEL, TASK, quick=True, seeds=(seed,), out=folder / f"seed-{seed}")
    card = {str(line["name"]): line for line in found.scorecard.iter_rows(named=True)}
    models = pl.read_csv(folder / f"seed-{seed}" / "tables" / "models.csv")
    told: dict[str, object] = {
        "seed": seed,
        "answer": str(found.answer).splitlines()[0],
        "test_accuracy": models["test_accuracy"].item(),
    }
    for test, letter in DECIDING.items():
        line = card[test]
        told |= {f"{letter}_verdict": line["verdict"], letter: line["statistic"], f"{letter}_low": line["low"]}
        told |= {f"{letter}_high": line["high"], f"{letter}_texts": line["n"]}
    return told


def main() -> None:
    """Audit every fine-tuning, and keep a table of them."""
    asked = argparse.ArgumentParser()
    asked.add_argument("folder", type=Path)
    asked.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    asked.add_argument("--runs", type=Path, default=Path("runs/fine_tunings"))
    wanted = asked.parse_args()
    table = pl.DataFrame([audited(seed, wanted.runs) for seed in wanted.seeds])
    write_csv(wanted.folder / "seeds.csv", table)
    command = f"python -m tools.fine_tunings {wanted.folder} --seeds {' '.join(map(str, wanted.seeds))}"
    write_json(
        wanted.folder / "manifest.json",
        {"exegete": exegete.__version__, "command": command, "task": TASK, "model": MODEL, "audit": "quick"},
    )
    print(table)


if __name__ == "__main__":
    main()
