"""Outcomes: answers of real audits, word for word: `python -m tools.outcomes FOLDER [NAME …]` asks them and keeps each.

Every outcome is a command of `exegete audit`. What it answered is kept in `results/outcomes/NAME.toml`, with the
command, the version, the date and how long it took; `docs/concepts/outcomes.md` shows them all (`tools.pages`). A run
that is in the folder already is only read again.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import chdir
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import polars as pl

from exegete.answers.audit import judge_run
from exegete.answers.pages.build import for_reader
from exegete.base.files import write_text
from exegete.base.noise import stable_seed, uniform
from exegete.models.truths.transformers import build_wired
from exegete.runs.run import read_manifest, study_of
from exegete.tasks.catalogue import load_task
from tools.pages.outcomes import KEPT
from tools.pages.place import ROOT

QUICK = ("--quick", "--workers", "1")
BELOW = "planted below"  # the wired BERT whose first layer may be read


class Outcome(NamedTuple):
    """A command, and what its model is, for people."""

    words: tuple[str, ...]
    model: str


OUTCOMES = {
    "default": Outcome((), "the default: a BiLSTM on film reviews"),
    "single_words": Outcome(("--model", "average:vectors=glove-50", *QUICK), "single words, then attention"),
    "few_texts": Outcome(
        ("--model", "average:vectors=glove-50", *QUICK, "--texts", "50"), "the same, of 50 texts only"
    ),
    "cnn": Outcome(("--model", "cnn:vectors=glove-50", *QUICK), "a CNN"),
    "transformer": Outcome(("--model", "transformer:vectors=glove-50", *QUICK), "a transformer, trained from nothing"),
    "sparse": Outcome(
        ("--model", "bilstm:projection=sparsemax,vectors=glove-50", *QUICK), "a BiLSTM whose weights are mostly zero"
    ),
    "unread": Outcome(
        ("--model", "ladder:share=0,vectors=glove-50", *QUICK),
        "a model that hardly learnt",
    ),
    "stories": Outcome(("--task", "stories", *QUICK), "questions about little stories"),
    "own": Outcome(("--model", "own:file=own_model.py", *QUICK), "a module of one's own"),
    "guesses": Outcome(
        ("--task", "file:guesses.csv", "--model", "average:vectors=glove-50", *QUICK), "labels drawn by lot"
    ),
    "another_layer": Outcome(("hf:bert", "bert.csv"), "a BERT whose first layer is what counts"),
}


def prepare(folder: Path) -> None:
    """The files that commands name: texts with labels by lot, a module, and a BERT wired by hand with its texts."""
    if (folder / "bert.csv").is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    some = load_task("rotten_tomatoes").split("train")[:2000]
    drawn = [f"class {int(2 * float(uniform(stable_seed('guess'), example.id)))}" for example in some]
    texts = [" ".join(example.words) for example in some]
    pl.DataFrame({"text": texts, "label": drawn}).write_csv(folder / "guesses.csv")
    write_text(folder / "own_model.py", (ROOT / "examples" / "own_model.py").read_text(encoding="utf8"))
    truth = build_wired(BELOW)
    for part in (truth.base, truth.tokenizer):
        part.save_pretrained(folder / "bert")
    every = [example for split in ("dev", "test") for example in truth.task.split(split)]
    pl.DataFrame({"text": [" ".join(example.words) for example in every]}).write_csv(folder / "bert.csv")


def ask(name: str, folder: Path) -> None:
    """Run the command, unless its run is there, and keep what it answered."""
    run, words = folder / name, OUTCOMES[name].words
    if not (run / "manifest.json").is_file():
        front = "from exegete.cli import main; main()"
        command = [sys.executable, "-c", front, "audit", *words, "--out", name, "--quiet"]
        subprocess.run(command, cwd=folder, env=os.environ, check=True)
    with chdir(folder):  # where the files are that the run names
        found, manifest = judge_run(study_of(Path(name)), Path(name)), read_manifest(Path(name))
    (decision,) = found.decisions.values()
    said = {
        "name": name,
        "command": " ".join(["exegete", "audit", *(word for word in words if word not in QUICK[1:])]),
        "model": OUTCOMES[name].model,
        "key": decision.answer,
        "version": manifest["exegete"],
        "criteria": str(found.criteria_version),
        "date": datetime.fromtimestamp((run / "manifest.json").stat().st_mtime, UTC).date().isoformat(),
        "seconds": str(round(manifest["seconds"])),
        "answer": for_reader(found).answer,
    }
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in said.items()]
    write_text(KEPT / f"{name}.toml", "".join(lines))


def main(folder: Path, names: Sequence[str]) -> None:
    """All outcomes, or those that are named."""
    prepare(folder)
    KEPT.mkdir(parents=True, exist_ok=True)
    for name in names or OUTCOMES:
        ask(name, folder)
        print(name, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
