"""Nothing is lost: `python -m tools.soak --kills 200` runs a small study on Ray while workers, nodes and drivers die.

A cluster of two nodes on this machine runs six cheap cells. A few times a minute a process is killed at random, by
`kill -9`: mostly a worker at its piece, sometimes a node, sometimes the driver. A driver that was killed, or that ended
with a sentence, is started again. Every run that ends must have the tables of an undisturbed local one, byte for byte;
the log has a line for each kill and each run, and its last line says what came of all. It ends after so many kills, or
with the first run that is complete after so many minutes.
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.runs.clustered import MEMORY, assert_same_tables, at_work, kill, two_nodes
from tests.studied import reviews, small_study

from exegete.runs.engine.local import LocalEngine
from exegete.runs.run import run_study
from exegete.runs.study import Study

KINDS = ("", ",projection=sparsemax", ",attention=dot")
SHARES = {"worker": 0.84, "node": 0.08, "driver": 0.08}
PAUSE = (1.0, 5.0)  # seconds between two kills: a worker needs some to start
DRIVER = (
    "import sys; from pathlib import Path\n"
    "from exegete.runs.run import run_study; from exegete.runs.study import Study\n"
    "from exegete.runs.engine import engine_of\n"
    "study = Study.model_validate_json(Path(sys.argv[1]).read_text())\n"
    "run_study(study, Path(sys.argv[2]), None, engine_of(sys.argv[3], 2))\n"
)


class Soak:
    """A cluster, a study, what it should find, and how often something was killed."""

    def __init__(self, cluster: Any, folder: Path, log: Path) -> None:
        self.cluster, self.folder, self.log = cluster, folder, log
        self.node = next(node for node in cluster.list_all_nodes() if node is not cluster.head_node)
        self.draw, self.killed, self.runs, self.began = random.Random(0), Counter[str](), 0, time.monotonic()
        self.study = _six(folder)
        (folder / "six.json").write_text(self.study.model_dump_json())
        self.expected = run_study(self.study, folder / "local", engine=LocalEngine(1))

    @property
    def kills(self) -> int:
        """How often something was killed."""
        return self.killed.total()

    def say(self, sentence: str) -> None:
        """A line of the log, with its minute and without the folders of this machine."""
        minute = f"{(time.monotonic() - self.began) / 60:5.1f}"
        with self.log.open("a", encoding="utf8") as file:
            file.write(f"{minute}  {sentence}\n".replace(f"{self.folder}/", ""))

    def started(self, run: Path) -> "subprocess.Popen[bytes]":
        """A driver, at the same command as before."""
        said = (self.folder / "said.txt").open("wb")
        command = [sys.executable, "-c", DRIVER, str(self.folder / "six.json"), str(run), f"ray:{self.cluster.address}"]
        return subprocess.Popen(command, stderr=said)

    def disturb(self, driver: "subprocess.Popen[bytes]") -> None:
        """Kill something, if it is at work."""
        (what,) = self.draw.choices(list(SHARES), list(SHARES.values()))
        working = at_work()
        if not working:
            return
        if what == "node":
            self.cluster.remove_node(self.node, allow_graceful=False)
            self.node = self.cluster.add_node(num_cpus=1, object_store_memory=MEMORY)
        elif not kill(driver.pid if what == "driver" else self.draw.choice(working)):
            return
        self.killed[what] += 1
        self.say(f"kill {self.kills}: {what}")

    def run(self, most: int, until: float) -> None:
        """One run, to its end, however often the driver must be started."""
        run = self.folder / "run"
        shutil.rmtree(run, ignore_errors=True)
        starts, before = 1, self.kills
        driver = self.started(run)
        while (code := driver.poll()) != 0:
            if code is not None:
                words = (self.folder / "said.txt").read_text(encoding="utf8", errors="replace").strip().splitlines()
                self.say(f"driver ended with {code}: {words[-1] if words and code > 0 else 'killed'}")
                driver, starts = self.started(run), starts + 1
            time.sleep(self.draw.uniform(*PAUSE))
            if self.kills < most and time.monotonic() < until:
                self.disturb(driver)
        assert_same_tables(self.expected, run)
        self.runs += 1
        self.say(f"run {self.runs}: same tables after {self.kills - before} kills and {starts} starts")


def _six(folder: Path) -> Study:
    agreement = {"name": "agreement", "ks": ["1"], "topk": ["fagin"], "draws": 3}
    file = reviews(folder / "reviews.csv")
    return small_study("six", file, [f"bilstm:size=8,hidden=8{kind}" for kind in KINDS], agreement)


def main(kills: int, log: Path, seconds: float) -> None:
    """Kill so many times, or for so long; the log is written anew."""
    began = time.monotonic()
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(f"asked for {kills} kills, or {seconds / 60:g} minutes\n", encoding="utf8")
    with tempfile.TemporaryDirectory() as folder, two_nodes() as cluster:
        soak = Soak(cluster, Path(folder), log)
        while soak.kills < kills and time.monotonic() < began + seconds:
            soak.run(kills, began + seconds)
        of = ", ".join(f"{count} of a {what}" for what, count in sorted(soak.killed.items()))
        took = f"{(time.monotonic() - began) / 60:.0f} minutes"
        said = f"{soak.kills} kills ({of}) in {soak.runs} runs and {took}"
        soak.say(f"{said}: all tables are those of an undisturbed local run")


if __name__ == "__main__":
    asked = argparse.ArgumentParser(prog="python -m tools.soak")
    asked.add_argument("--kills", type=int, default=200)
    asked.add_argument("--minutes", type=float, default=float("inf"))
    asked.add_argument("--log", type=Path, default=Path("results/soak/soak.log"))
    wanted = asked.parse_args()
    main(wanted.kills, wanted.log, 60 * wanted.minutes)
