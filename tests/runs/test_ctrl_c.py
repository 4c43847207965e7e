"""Ctrl-C in a real process, with workers at work: it is answered at once, it ends, and nobody is left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.studied import reviews

pytestmark = pytest.mark.slow

LONG = """
from exegete.base.progress import silent
from exegete.runs.engine import engine_of
from tests.runs.test_ctrl_c import sleep

def work(**_):
    with engine_of(workers=2) as engine:
        list(engine.map(sleep, [60, 60], silent))

import exegete.cli
exegete.cli.app = work
exegete.cli.main()
"""
DEAF = """
import hashlib
import exegete.cli

def work(**_):
    print("at work", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"a", b"b", 300_000_000)  # a call in which Python doesn't hear of Ctrl-C

exegete.cli.app = work
exegete.cli.main()
"""


def sleep(seconds: int, progress: object) -> None:
    print("at work", flush=True)
    time.sleep(seconds)


def stopped(code: str) -> tuple[float, float, int, str]:
    """Seconds until it said something, and until it ended; its exit code; what it said."""
    command, home, pipe = [sys.executable, "-c", code], Path(__file__).parents[2], subprocess.PIPE
    with subprocess.Popen(command, start_new_session=True, cwd=home, stdout=pipe, stderr=pipe) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"at work\n"
        time.sleep(0.5)  # it says so just before it begins
        began = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)  # a terminal tells the whole group
        said = os.read(process.stderr.fileno(), 4096)
        first = time.monotonic() - began
        left = process.wait(30)
        ended = time.monotonic() - began
        return first, ended, left, (said + process.stderr.read()).decode()


def test_workers_are_stopped_at_once() -> None:
    first, ended, code, said = stopped(LONG)
    assert first < 1
    assert ended < 3  # two seconds, and one for a busy machine
    assert code == 130
    assert "stopping" in said
    assert "Traceback" not in said


def test_a_call_that_does_not_come_back_is_ended() -> None:
    first, ended, code, said = stopped(DEAF)
    assert first < 1
    assert 1 < ended < 3
    assert code == 130
    assert said.startswith("\nstopping")
    assert "goes on where it was" in said


def test_an_audit_that_was_stopped_goes_on(tmp_path: Path) -> None:
    file = reviews(tmp_path / "reviews.csv", 400)
    task = f"file:{file}:text=review,label=sentiment"
    words = ["audit", "--quick", "--task", task, "--model", "bilstm:size=8,hidden=8", "--out", str(tmp_path / "run")]
    main = "from exegete.cli import main; main()"
    process = subprocess.Popen([sys.executable, "-c", main, *words], start_new_session=True)
    until = time.monotonic() + 120
    while not list((tmp_path / "run").glob("stages/score-*")):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(10) == 130
    assert not (tmp_path / "run" / "manifest.json").exists()
    assert subprocess.run([sys.executable, "-c", main, *words], check=False).returncode == 0
    assert (tmp_path / "run" / "manifest.json").is_file()
