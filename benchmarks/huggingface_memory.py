"""Memory of a transformer's audit: does it grow with the texts that are asked about, and how far beyond one pass?

    python benchmarks/huggingface_memory.py results/memory     50, 200 and 550 film reviews, minutes of a core
    python benchmarks/huggingface_memory.py --small            a few texts: that nothing here has rotted

MiniLM (its last layer trained on 64 texts, enough to be asked about) is asked about faithfulness and mediation, the two
questions that take most of an audit, in a process of its own, as by a worker; tables and figures are drawn there, too.
Megabytes are the largest that the process ever held. Beside them: what a process holds that loads the model and runs
one pass that keeps the attention of all sites, of as many pieces as a pass of the questions has. The bars: all sizes
are within 1.3 of the smallest, and within 1.5 of the one pass. What grows with the texts is tables and figures: passes
hold no more for more texts, only for longer ones.
"""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from common import SMALL
from exegete.runs.tables import write_csv

SIZES = (8, 16) if SMALL else (50, 200, 550)
FLAT, PASS = 1.3, 1.5
TASK = "rotten_tomatoes:tokenizer=whitespace,lower=false,train_limit=64,dev_limit=32,max_length=25"
MODEL = "hf:minilm:head=cls,frozen=5"
CONTROLS = ["attention", "random"]
ONE_PASS, PIECES = "one pass", 32


def peak() -> float:
    """The most that this process ever held, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def asked(texts: int, model: Path) -> None:
    """Both questions about a model, of so many test texts."""
    from exegete.runs.engine.local import LocalEngine
    from exegete.runs.run import run_study
    from exegete.runs.study import Study, check_study

    study = check_study(
        Study(
            name="memory",
            tasks=[TASK],
            models=[str(model)],
            experiments=[
                {"name": "faithfulness", "methods": CONTROLS, "removals": ["delete"], "texts": texts},
                {"name": "mediation", "methods": CONTROLS, "texts": texts, "words": 4, "draws": 1},
            ],
        )
    )
    with TemporaryDirectory() as folder:
        run_study(study, Path(folder), engine=LocalEngine(1))


def one_pass(model: Path) -> None:
    """The attention of all sites, kept, of the texts of at most 32 pieces that fill a pass of the questions."""
    import torch

    from exegete.importance.erasure import TOKENS
    from exegete.models.huggingface.model import HuggingFace
    from exegete.tasks.catalogue import load_task
    from exegete.training.checkpoint import load_checkpoint

    torch.set_num_threads(1)
    found = load_checkpoint(model).model.eval()
    assert isinstance(found, HuggingFace)
    short = [e for e in load_task(TASK).split("test") if found.lengths([e])[0] <= PIECES]
    short.sort(key=lambda e: -found.lengths([e])[0])
    with torch.no_grad():
        found.trace(found.collate(short[: TOKENS // PIECES]))


def trained(folder: Path) -> Path:
    """A checkpoint, by a process of its own: training holds more than asking does."""
    training = ["train", "--task", TASK, "--model", MODEL, "--training", "epochs=1", "--quiet"]
    subprocess.run([sys.executable, "-m", "exegete", *training, "--out", str(folder)], check=True, capture_output=True)
    return folder


def apart(what: str, model: Path) -> float:
    """The peak of a process of its own."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, what, str(model)]
    said = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    found = float(json.loads(said.splitlines()[-1]))
    print(f"{what:>10}  {found:7.0f} MB", flush=True)
    return found


def main() -> None:
    with TemporaryDirectory() as folder:
        model = trained(Path(folder) / "model")
        alone = apart(ONE_PASS, model)
        peaks = [apart(str(texts), model) for texts in SIZES]
    growth, share = max(peaks) / peaks[0], max(peaks) / alone
    print(f"the largest: {growth:.2f} of the smallest (bar {FLAT}), {share:.2f} of one pass (bar {PASS})")
    if len(sys.argv) > 1:
        table = pl.DataFrame({"texts": [1, *SIZES], "asked": [ONE_PASS, *["questions"] * len(SIZES)]})
        write_csv(Path(sys.argv[1]) / "huggingface.csv", table.with_columns(megabytes=pl.Series([alone, *peaks])))
    if not SMALL and (growth > FLAT or share > PASS):
        sys.exit("huggingface_memory: above its bar")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        what, place = sys.argv[1], Path(sys.argv[2])
        one_pass(place) if what == ONE_PASS else asked(int(what), place)
        print(json.dumps(peak()))
    else:
        main()
