"""The engine: one worker or many give the same, errors come through, and Ctrl-C doesn't wait."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from exegete.base.errors import ExegeteError
from exegete.base.processes import cores
from exegete.base.progress import Progress
from exegete.runs.engine.contract import SetAsideError
from exegete.runs.engine.local import LocalEngine


def square(x: int, progress: Progress) -> tuple[int, int]:
    progress("squares · one", 1, 1)
    return x * x, torch.get_num_threads()


def fail(x: int, progress: Progress) -> int:
    raise ExegeteError(f"{x} is wrong")


def dawdle(x: int, progress: Progress) -> int:
    time.sleep(60 if x else 0)
    return x


def die(x: int, progress: Progress) -> int:
    os._exit(1)


def test_one_worker_works_here_in_one_thread() -> None:
    before = torch.get_num_threads()
    assert dict(LocalEngine(1).map(square, [1, 2, 3])) == {1: (1, 1), 2: (4, 1), 3: (9, 1)}
    assert torch.get_num_threads() == before
    with pytest.raises(ExegeteError, match="2 is wrong"):
        list(LocalEngine(1).map(fail, [2]))
    assert cores() >= 1


def heard(told: list[str], label: str) -> bool:
    """Whether it is told; what workers say comes through a thread of its own, perhaps after the work."""
    until = time.monotonic() + 10
    while label not in told and time.monotonic() < until:
        time.sleep(0.01)
    return label in told


@pytest.mark.slow
def test_many_workers_stay_warm_and_pass_on_what_they_say() -> None:
    told: list[str] = []
    with LocalEngine(2) as engine:
        assert dict(engine.map(square, [1, 2, 3], lambda label, done, total: told.append(label))) == {
            1: (1, 1), 2: (4, 1), 3: (9, 1),
        }  # fmt: skip
        assert heard(told, "squares · one")
        start = time.monotonic()
        list(engine.map(square, list(range(8))))
        assert time.monotonic() - start < 2  # no second start
        with pytest.raises(ExegeteError, match="is wrong"):
            list(engine.map(fail, [1, 2]))


def squares_of_two_workers(last: int) -> dict[int, tuple[int, int]]:
    """What a worker of somebody else's pool gets from an engine of ours."""
    with LocalEngine(2) as engine:
        return dict(engine.map(square, range(1, last + 1)))


def workers_unless_given(_: int) -> int:
    return LocalEngine().workers


@pytest.mark.slow
def test_in_a_worker_of_another_pool_the_work_is_done_there() -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:  # its workers are daemonic: they may have no children
        assert pool.map(squares_of_two_workers, [3]) == [{1: (1, 1), 2: (4, 1), 3: (9, 1)}]
    with ProcessPoolExecutor(1, context) as executor:  # as joblib's, too
        assert list(executor.map(workers_unless_given, [0])) == [1]


def test_a_worker_that_could_not_start_is_not_stopped() -> None:
    engine = LocalEngine(2)
    engine._context.Process(target=square)
    with engine:
        pass


def ready(folder: Path, progress: Progress) -> None:
    time.sleep(1)
    (folder / f"ready-{time.monotonic_ns()}").touch()


def got_ready(folder: Path, wanted: int) -> int:
    """How many workers did, as soon as it is so many, or after a minute."""
    until = time.monotonic() + 60
    while (found := len(list(folder.iterdir()))) < wanted and time.monotonic() < until:
        time.sleep(0.1)
    return found


@pytest.mark.slow
def test_nobody_gets_ready_once_there_is_work(tmp_path: Path) -> None:
    """Else a worker that was busy when it should get ready does so after all of its work, and everybody waits."""
    with LocalEngine(2) as engine:
        engine.warm(ready, tmp_path)
        list(engine.map(square, [1, 2, 3, 4]))
        assert got_ready(tmp_path, 1) == 1
        time.sleep(3)
        assert got_ready(tmp_path, 1) == 1
    with LocalEngine(2) as engine:
        engine.warm(ready, tmp_path)
        assert got_ready(tmp_path, 3) == 3  # nothing to do: both do
        list(engine.map(square, [1, 2]))
        engine.warm(ready, tmp_path)
        assert got_ready(tmp_path, 5) == 5  # and again, for what comes after work


@pytest.mark.slow
def test_an_interrupt_does_not_wait_for_running_work() -> None:
    def interrupted() -> None:
        with LocalEngine(2) as engine:
            for _ in engine.map(dawdle, [0, 1, 1]):
                raise KeyboardInterrupt

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert time.monotonic() - start < 30


@dataclass(frozen=True)
class Large:
    """A piece that kills its worker unless it is done in halves, or kills it always."""

    name: str
    deadly: bool = False
    whole: bool = True

    def halved(self) -> "Large | None":
        return replace(self, whole=False) if self.whole else None

    def __str__(self) -> str:
        return self.name


def swallow(piece: Large, progress: Progress) -> str:
    if piece.deadly or (piece.whole and piece.name == "large"):
        os.kill(os.getpid(), signal.SIGKILL)
    return piece.name


@pytest.mark.slow
def test_a_piece_that_kills_is_cut_in_two_and_then_set_aside() -> None:
    pieces = [Large("large"), Large("deadly", deadly=True), *(Large(f"small {i}") for i in range(4))]
    done: list[Large] = []

    def mapped() -> None:
        with LocalEngine(2) as engine:
            for piece, _ in engine.map(swallow, pieces):
                done.append(piece)

    with pytest.raises(SetAsideError, match=r"at 1 of 6 pieces, which are missing: deadly; all else is kept"):
        mapped()
    assert {piece.name: piece.whole for piece in done} == {"large": False} | {f"small {i}": True for i in range(4)}


@pytest.mark.slow
def test_a_worker_that_dies_is_one_sentence() -> None:
    with LocalEngine(2) as engine, pytest.raises(ExegeteError, match="a worker process died"):
        list(engine.map(die, [1, 2]))


def seen(name: str, progress: Progress) -> str | None:
    return os.environ.get(name)


def is_deaf(_: int, progress: Progress) -> bool:
    """Whether Ctrl-C is blocked in a worker."""
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


FORKING = """
import os, sys, time
from exegete.base.processes import Forked, get_ahead
assert "torch" not in sys.modules  # that it begins before we do is the point of it
get_ahead()
from tests.runs.test_engine import LocalEngine, dawdle, is_deaf, seen, square
os.environ["LATER"] = "seen"
with LocalEngine(2) as engine:
    found = dict(engine.map(square, [1, 2, 3]))
    assert found == {1: (1, 1), 2: (4, 1), 3: (9, 1)}, found
    assert all(isinstance(worker, Forked) for worker in engine._context.started)
    assert set(dict(engine.map(seen, ["LATER", "LATER"])).values()) == {"seen"}
    assert set(dict(engine.map(is_deaf, [1, 2])).values()) == {True}
    print(*(worker.pid for worker in engine._context.started), flush=True)
    list(engine.map(dawdle, [1, 1]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or cores() < 2, reason="workers are not forked here")
def test_forked_workers_work_and_die_with_their_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", FORKING], stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        workers = [int(pid) for pid in command.stdout.readline().split()]
        command.kill()
    assert workers
    until = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < until:
        time.sleep(0.1)
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
