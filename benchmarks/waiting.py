"""Waiting: how long a person waits for an audit, for the same one again, and for Ctrl-C. On an idle machine.

    python benchmarks/waiting.py            the default and the quick audit of film reviews
    python benchmarks/waiting.py --small    a small file, in about a minute: that nothing here has rotted

Seconds on the clock, CPU-seconds of all processes, and the bar; estimates beside what was taken.
"""

import ctypes
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

COMMAND = [sys.executable, "-c", "from exegete.cli import main; main()"]
QUICK, DEFAULT, TRAINED, AGAIN, STOPPED = 30, 140, 10, 3, 2  # seconds on two idle cores
UNITS = {"seconds": 1, "minutes": 60, "hours": 3600}
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: whose parent is gone becomes our child


class Waited(NamedTuple):
    """What a command took, and what it said that it would."""

    seconds: float
    cpu: float
    said: float | None


def waited(words: list[str]) -> Waited:
    """Run a command to its end, and that of all of its processes."""
    if sys.platform == "linux":  # workers are forked by another process than the command
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=True)
    seconds = time.monotonic() - began
    with suppress(ChildProcessError):  # nobody is left
        while True:
            os.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = re.search(r"about ([\d.]+) (seconds|minutes|hours)", done.stderr)
    return Waited(seconds, cpu, float(found[1]) * UNITS[found[2]] if found else None)


def shown(what: str, found: Waited, bar: float | None) -> None:
    """One line."""
    said = "" if found.said is None else f"  announced {found.said:.0f} s ({found.said / found.seconds:.2f}×)"
    limit = "" if bar is None else f"  (bar {bar:.0f} s)"
    print(f"{what:34} {found.seconds:7.1f} s  {found.cpu:7.1f} CPU-s{limit}{said}", flush=True)


def audited(what: str, words: list[str], run: Path, bar: float | None, trained: float | None) -> None:
    """An audit, the same one again, and, where there is a bar for it, with nothing but its trainings left."""
    command = ["audit", *words, "--out", str(run)]
    shown(what, waited(command), bar)
    shown(f"{what}, again", waited(command), AGAIN)
    if trained is not None:
        for part in run.iterdir():
            if part.name != "stages":
                shutil.rmtree(part) if part.is_dir() else part.unlink()
        for stage in (run / "stages").iterdir():
            if not stage.name.startswith("train-"):
                shutil.rmtree(stage)
        kept = run.with_name(f"{run.name}-stages")
        (run / "stages").rename(kept)
        run.rmdir()
        shown(f"{what}, with its model trained", _with_stages(command, run, kept), trained)


def _with_stages(command: list[str], run: Path, kept: Path) -> Waited:
    """A run whose trainings are there: begun, stopped, given them, and gone on with."""
    stopped_after(command, run / "study.json")
    shutil.rmtree(run / "stages", ignore_errors=True)
    kept.rename(run / "stages")
    return waited(command)


def stopped_after(command: list[str], there: Path) -> float:
    """Seconds from Ctrl-C, once a file is there, to the end."""
    process = subprocess.Popen(
        [*COMMAND, *command], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not there.exists() and process.poll() is None:
        time.sleep(0.01)
    began = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    process.wait()
    return time.monotonic() - began


def small(folder: Path) -> list[str]:
    """A file of made-up reviews, and a small model."""
    lines = [
        f"{'fine' if i % 2 else 'poor'} word{i % 7} word{i % 5} w{i},{'good' if i % 2 else 'bad'}" for i in range(200)
    ]
    (folder / "reviews.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    return ["--task", f"file:{folder / 'reviews.csv'}", "--model", "bilstm:size=8,hidden=8"]


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs, and their children, ignore it
    with TemporaryDirectory() as name:
        folder, is_small = Path(name), sys.argv[1:] == ["--small"]
        words = small(folder) if is_small else []
        audited("quick", ["--quick", *words], folder / "quick", QUICK, TRAINED)
        if not is_small:
            audited("default", [], folder / "default", DEFAULT, None)
        command = ["audit", "--quick", *words, "--out", str(folder / "stopped")]
        print(f"{'Ctrl-C':34} {stopped_after(command, folder / 'stopped' / 'stages'):7.1f} s  (bar {STOPPED} s)")


if __name__ == "__main__":
    main()
