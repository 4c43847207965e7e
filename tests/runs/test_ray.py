"""The Ray engine: the tables of the local one, byte for byte, whatever dies on the way."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from exegete.base.errors import ExegeteError, UsageError
from exegete.base.progress import Progress
from exegete.runs.engine import engine_of
from exegete.runs.engine.contract import RETRIES
from exegete.runs.engine.local import LocalEngine
from exegete.runs.run import finished_cells, run_study
from exegete.runs.study import Study
from tests.runs.clustered import assert_same_tables, at_work, kill, two_nodes
from tests.studied import reviews, small_study

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed"),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning", "ignore::DeprecationWarning"),
]
KINDS = ("", ",projection=sparsemax", ",attention=dot")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with two_nodes() as nodes:
        yield nodes


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Six cheap cells."""
    file = reviews(tmp_path_factory.mktemp("data") / "reviews.csv")
    agreement = {"name": "agreement", "ks": ["1"], "topk": ["fagin"], "draws": 3}
    return small_study("six", file, [f"bilstm:size=8,hidden=8{kind}" for kind in KINDS], agreement)


@pytest.fixture(scope="module")
def local(six: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their run on the local engine, undisturbed."""
    return run_study(six, tmp_path_factory.mktemp("runs") / "local", engine=LocalEngine(1))


def at(cluster: Any) -> str:
    return f"ray:{cluster.address}"


def test_the_tables_are_those_of_the_local_engine(cluster: Any, six: Study, local: Path, tmp_path: Path) -> None:
    told: list[str] = []
    run_study(six, tmp_path / "run", None, engine_of(at(cluster)), lambda label, done, total: told.append(label))
    assert_same_tables(local, tmp_path / "run")
    assert any("epoch" in label for label in told)
    assert not list((tmp_path / "run" / "stages").glob(".*"))


@pytest.mark.parametrize("begun_on_ray", [True, False])
def test_what_one_engine_began_the_other_ends(
    cluster: Any, six: Study, local: Path, tmp_path: Path, begun_on_ray: bool
) -> None:
    names = (at(cluster), "local") if begun_on_ray else ("local", at(cluster))
    first, second = (engine_of(name, 2) for name in names)
    run_study(six, tmp_path / "run", six.cells[:3], first)
    stages = {path: path.stat().st_mtime_ns for path in (tmp_path / "run" / "stages").rglob("stage.json")}
    run_study(six, tmp_path / "run", None, second)
    assert_same_tables(local, tmp_path / "run")
    assert {path: path.stat().st_mtime_ns for path in stages} == stages  # nothing was done twice


class Killer(threading.Thread):
    """Kills some workers, one after the other, each while it does a piece."""

    def __init__(self, times: int) -> None:
        super().__init__(daemon=True)
        self.left, self.draw = times, random.Random(0)

    def run(self) -> None:
        until = time.monotonic() + 300
        while self.left and time.monotonic() < until:
            working = at_work()
            self.left -= bool(working) and kill(self.draw.choice(working))
            time.sleep(0.3)


def test_workers_that_are_killed_change_nothing(cluster: Any, six: Study, local: Path, tmp_path: Path) -> None:
    killer = Killer(4)
    killer.start()
    run_study(six, tmp_path / "run", None, engine_of(at(cluster)))
    assert killer.left == 0
    assert_same_tables(local, tmp_path / "run")


def test_a_node_that_is_lost_changes_nothing(cluster: Any, six: Study, local: Path, tmp_path: Path) -> None:
    node = cluster.add_node(num_cpus=1, object_store_memory=100_000_000)
    lost: list[bool] = []

    def lose() -> None:
        while len(at_work()) < 3:
            time.sleep(0.05)
        cluster.remove_node(node, allow_graceful=False)
        lost.append(True)

    threading.Thread(target=lose, daemon=True).start()
    run_study(six, tmp_path / "run", None, engine_of(at(cluster), 3))
    assert lost
    assert_same_tables(local, tmp_path / "run")


def test_a_driver_that_is_killed_leaves_a_run_that_goes_on(
    cluster: Any, six: Study, local: Path, tmp_path: Path
) -> None:
    run, said = tmp_path / "run", tmp_path / "six.json"
    said.write_text(six.model_dump_json())
    script = (
        "import sys; from pathlib import Path\n"
        "from exegete.runs.run import run_study; from exegete.runs.study import Study\n"
        "from exegete.runs.engine import engine_of\n"
        "study = Study.model_validate_json(Path(sys.argv[1]).read_text())\n"
        "run_study(study, Path(sys.argv[2]), None, engine_of(sys.argv[3]))\n"
    )
    command = [sys.executable, "-c", script, str(said), str(run), at(cluster)]
    told = tmp_path / "told.txt"
    with told.open("w") as error, subprocess.Popen(command, stderr=error) as driver:
        while not finished_cells(run, six):
            assert driver.poll() is None, told.read_text()
            time.sleep(0.05)
        driver.send_signal(signal.SIGKILL)
    assert len(finished_cells(run, six)) < len(six.cells)
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL, timeout=300)
    assert_same_tables(local, run)


def square(x: int, progress: Progress) -> int:
    progress("squares · one", 1, 1)
    return x * x


def threads(_: int, progress: Progress) -> tuple[int, str, str]:
    import torch

    return torch.get_num_threads(), os.environ["OMP_NUM_THREADS"], str(Path.cwd())


def fail(x: int, progress: Progress) -> int:
    raise UsageError(f"{x} is wrong") if x == 2 else ZeroDivisionError("a defect")


def die(x: int, progress: Progress) -> int:
    if x == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def dawdle(x: int, progress: Progress) -> int:
    time.sleep(60)
    return x


def test_pieces_come_back_and_errors_are_said_at_once(cluster: Any) -> None:
    with engine_of(at(cluster)) as engine:
        assert engine.workers == 2
        assert dict(engine.map(square, list(range(20)))) == {x: x * x for x in range(20)}
        assert set(engine.map(threads, [1])) == {(1, (1, "1", str(Path.cwd())))}
        with pytest.raises(UsageError, match=r"^2 is wrong$"):
            list(engine.map(fail, [2]))
        with pytest.raises(RuntimeError, match="ZeroDivisionError: a defect"):
            list(engine.map(fail, [1]))


def falter(folder: Path, progress: Progress) -> int:
    """Die three times, and then find how often."""
    deaths = len(list(folder.iterdir()))
    if deaths < RETRIES:
        (folder / str(deaths)).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return deaths


def test_a_piece_whose_worker_died_is_done_again(cluster: Any, tmp_path: Path) -> None:
    """Ray says of every death that memory may have been its cause: that alone sets nothing aside."""
    with engine_of(at(cluster)) as engine:
        assert list(engine.map(falter, [tmp_path])) == [(tmp_path, RETRIES)]


def test_a_piece_that_kills_every_worker_is_set_aside_and_named(
    cluster: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    done: list[int] = []

    def mapped() -> None:
        with engine_of(at(cluster)) as engine:
            for item, _ in engine.map(die, [1, 2, 3, 4, 5]):
                done.append(item)

    with pytest.raises(ExegeteError, match=r"died again and again .* at 1 of 5 pieces, which are missing: 2;"):
        mapped()
    assert sorted(done) == [1, 3, 4, 5]
    assert capfd.readouterr().out == ""  # it may be for machines


def test_an_interrupt_does_not_wait(cluster: Any) -> None:
    def interrupted() -> None:
        with engine_of(at(cluster)) as engine:
            list(engine.map(square, [1, 2]))
            threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            list(engine.map(dawdle, [1, 2]))

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert time.monotonic() - start < 40
    assert not at_work()


def test_a_ray_of_this_machine_is_begun_and_ended() -> None:
    import ray

    with engine_of("ray", 1) as engine:
        assert dict(engine.map(square, [1, 2])) == {1: 1, 2: 4}
    assert not ray.is_initialized()
