"""What the Ray engine refuses, in one sentence each, before any work."""

import platform
import socket
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from exegete import __version__
from exegete.base.device import VARIABLE
from exegete.base.errors import ExegeteError, UsageError
from exegete.base.progress import silent
from exegete.base.source import package_hash
from exegete.runs.engine import engine_of
from exegete.runs.objects import engine_for
from exegete.runs.own_files import own_files
from exegete.runs.study import Study
from exegete.wings.cluster.engine import MEMORY, RayEngine, _said, _Shift
from exegete.wings.cluster.nodes import connect, environment, library, refuse
from exegete.wings.cluster.worker import NodeContents, PieceOutcome, look

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
HERE = NodeContents("here", platform.python_version(), __version__, package_hash())


def test_no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ExegeteError, match=r'needs Ray, which is not installed: pip install "ray>=2.40,<3"; or'):
        engine_of("ray")


@needs_ray
def test_no_cluster_at_the_address() -> None:
    with socket.socket() as taken:  # bound and not listening: nobody answers there
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ExegeteError, match=f"no Ray cluster answers at {address}: start one there"):
            connect(address, 1)


@needs_ray
@pytest.mark.parametrize("address", ["ray://head:10001", "head", "head:port", "head:123456"])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(UsageError, match=f"'{address}' is no address of a cluster: write ray:HOST:PORT"):
        connect(address, 1)


def test_the_local_engine_has_no_address_and_unknown_ones_are_told() -> None:
    with pytest.raises(UsageError, match="the local engine has no address: leave 'head:1' out"):
        engine_of("local:head:1")
    with pytest.raises(UsageError, match="unknown engine 'rya': did you mean 'ray'"):
        engine_of("rya:head:1")


def test_nodes_with_other_versions() -> None:
    refuse([HERE, HERE])
    with pytest.raises(ExegeteError, match=r"node far of the cluster has Python 3\.9\.1, here is 3"):
        refuse([HERE, HERE._replace(host="far", python="3.9.1")])
    with pytest.raises(ExegeteError, match=r"node far of the cluster has exegete 0\.0\.1, here is exegete"):
        refuse([HERE, HERE._replace(host="far", exegete="0.0.1")])
    with pytest.raises(ExegeteError, match="node far of the cluster has other code under the same version"):
        refuse([HERE, HERE._replace(host="far", code="other")])


def test_a_run_folder_or_file_that_a_node_cannot_see(tmp_path: Path) -> None:
    file, token = tmp_path / "reviews.csv", tmp_path / "run" / ".lock.token"
    file.write_text("four")
    assert look(str(tmp_path), [(str(file), 4), (str(tmp_path), -1)]) == HERE._replace(host=socket.gethostname())
    other = look(str(tmp_path), [(str(token), 4), (str(file), 5)])
    assert other.unseen == (str(token), str(file))
    with pytest.raises(ExegeteError, match=r"can't see the run folder .*: choose one with --out"):
        refuse([other], token, token.parent)
    with pytest.raises(ExegeteError, match=rf"can't see {file} as it is here: put it where all nodes see it"):
        refuse([other._replace(unseen=(str(file),))], token, token.parent)


def test_the_files_that_a_study_reads(study: Study, tmp_path: Path) -> None:
    plugin, own = tmp_path / "plugin.py", tmp_path / "own.py"
    plugin.touch()
    own.touch()
    more = {"plugins": (str(plugin),), "models": (*study.models, f"own:file={own}")}
    found = own_files(study.model_copy(update=more))
    assert set(found) == {plugin, own, Path(study.tasks[0].split(":")[1])}


def test_what_lives_in_this_process_is_not_sent_away(study: Study) -> None:
    held = study.model_copy(update={"models": ("own:wrapped=Mine-0123,trained=true",)})
    assert engine_for(held).workers == 1
    with pytest.raises(UsageError, match="a wrapped module lives in this process and can't be sent to ray"):
        engine_for(held, "ray")


def test_what_went_wrong_there_is_raised_here() -> None:
    assert PieceOutcome("found", 3).result() == 3
    for kind, error in (("wrong", ExegeteError), ("usage", UsageError), ("defect", RuntimeError)):
        with pytest.raises(error, match="said"):
            PieceOutcome(kind, "said").result()  # type: ignore[arg-type]


class Cluster:
    """A cluster with so many GPUs, as the engine sees it."""

    def __init__(self, gpus: int) -> None:
        self.gpus = gpus

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 8.0} | ({"GPU": float(self.gpus)} if self.gpus else {})

    def is_initialized(self) -> bool:
        return True

    def put(self, thing: object) -> object:
        return thing


def test_hands_share_the_gpus_of_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    def engine(gpus: int, workers: int | None, device: str = "cuda:1") -> RayEngine:
        for place in ("engine", "nodes"):
            monkeypatch.setattr(f"exegete.wings.cluster.{place}.library", lambda: Cluster(gpus))
        monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
        monkeypatch.setenv(VARIABLE, device)
        return RayEngine(workers)

    assert (engine(0, None, "cpu").workers, engine(0, None, "cpu").gpus) == (8, 0)
    assert (engine(2, None).workers, engine(2, None).gpus) == (2, 1.0)
    assert engine(2, 8).gpus == 0.25
    assert environment()["env_vars"][VARIABLE] == "cuda"
    with pytest.raises(ExegeteError, match="the cluster has no GPU: start nodes with"):
        _ = engine(0, 2).gpus


class Texts(NamedTuple):
    """A piece that can be cut once."""

    parts: int = 1

    def halved(self) -> "Texts | None":
        return Texts(2) if self.parts == 1 else None


def test_memory_cuts_a_piece_at_once_and_other_deaths_after_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exegete.wings.cluster.engine.library", lambda: Cluster(0))
    again, halves, aside = "done again", "done again in halves", "set aside"
    shift = _Shift(RayEngine(1), lambda item, _: item, [Texts(), Texts(), 3], silent)
    assert [shift._again(0, by_memory=True) for _ in range(2)] == [halves, aside]
    assert [shift._again(1, by_memory=False) for _ in range(5)] == [again] * 3 + [halves, aside]
    assert shift._again(2, by_memory=True) == aside
    assert shift.aside == [0, 1, 2]


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
def test_only_what_memory_killed_counts_as_such() -> None:
    """Of every dead process Ray says that the OOM killer is a common cause."""
    ray = library()
    died = ray.exceptions.RayError("its worker process has died. Common causes: (1) killed by the OOM killer")
    assert _said(died) == "RayError"
    assert _said(ray.exceptions.OutOfMemoryError("the node is running low on memory")) == MEMORY
