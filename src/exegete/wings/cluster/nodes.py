"""Reaching a Ray cluster: find it, or begin one on this machine, and refuse what could not give the same numbers."""

import os
import platform
import re
import socket
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

from exegete.plugins import (
    VARIABLE,
    ExegeteError,
    UsageError,
    __version__,
    cores,
    install,
    package_hash,
    plain_disk_errors,
)
from exegete.wings.cluster.worker import NodeContents, look, size_of

PATIENCE = 5.0  # seconds until an address that doesn't answer counts as wrong; Ray itself waits for minutes
LOOKING = 120.0  # seconds for all nodes to start a process and look round
MEMORY = 200_000_000  # bytes of a cluster that is begun here: only keys and sentences are sent through it
# What a hand needs to know of the place where the command was given.
PASSED_ON = re.compile(r"PYTHONPATH|EXEGETE_.*|HF_.*|TRANSFORMERS_.*")
ONE = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TOKENIZERS_PARALLELISM")


def library() -> Any:
    """Ray itself; what it has to say of its nodes would go to standard output, which may be for machines."""
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")  # read when Ray is imported
    try:
        return import_module("ray")
    except ImportError:
        raise ExegeteError(
            f"the ray engine needs Ray, which is not installed: {install('ray')}; or choose --engine local"
        ) from None


def connect(address: str, workers: int | None) -> bool:
    """Connect to a cluster, the one of this process if it has one already; whether it must be left at the end."""
    ray = library()
    if ray.is_initialized():
        return False
    where = address or os.environ.get("RAY_ADDRESS", "")
    if where and where != "auto":
        _check_address(where)
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if where:
            ray.init(address=where, **quiet)
        else:
            ray.init("local", num_cpus=workers or cores(), object_store_memory=MEMORY, include_dashboard=False, **quiet)
    except (ConnectionError, TimeoutError, ValueError):
        raise _nobody(where) from None
    except RuntimeError as error:  # Ray's own check of versions
        if "ersion" not in str(error):
            raise
        theirs = " ".join(str(error).split())
        raise ExegeteError(
            f"the cluster at {where} has another Ray or Python: install the same here ({theirs})"
        ) from None
    return True


def _check_address(address: str) -> None:
    host, _, port = address.rpartition(":")
    if not re.fullmatch(r"[^/:]+:\d{1,5}", address):
        raise UsageError(
            f"'{address}' is no address of a cluster: write ray:HOST:PORT, as `ray start` prints it, or ray:auto on "
            "one of its nodes"
        )
    try:
        socket.create_connection((host, int(port)), PATIENCE).close()
    except (OSError, OverflowError):
        raise _nobody(address) from None


def _nobody(address: str) -> ExegeteError:
    return ExegeteError(
        f"no Ray cluster answers at {address}: start one there (`ray start --head`), or leave the address out to use "
        "this machine"
    )


def environment() -> dict[str, Any]:
    """How a hand's process starts: one thread in every library, and the variables that name data and models."""
    passed = {name: value for name, value in os.environ.items() if PASSED_ON.fullmatch(name)}
    if VARIABLE in passed:  # Ray shows a hand its own GPU alone, as the first
        passed[VARIABLE] = passed[VARIABLE].partition(":")[0]
    return {"env_vars": passed | dict.fromkeys(ONE[:3], "1") | {ONE[3]: "false"}}


def look_round(folder: Path | None, files: Sequence[Path]) -> None:
    """Refuse nodes with other versions, and those that can't see a run folder or some files."""
    here = Path.cwd()
    if folder is None:
        refuse(_looked(here, []))
        return
    with plain_disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        token = folder / f".lock.{uuid4().hex}"  # that a folder of this name is there says nothing: is it this one?
        token.write_text("seen")
    try:
        sized = [(str(path.absolute()), size_of(path)) for path in (token, *files)]
        refuse(_looked(here, sized), token, folder)
    finally:
        token.unlink(missing_ok=True)


def _looked(here: Path, files: Sequence[tuple[str, int | None]]) -> list[NodeContents]:
    """What every node sees."""
    ray = library()
    at = import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
    task = ray.remote(num_cpus=0, max_retries=1)(look)
    alive = [node for node in ray.nodes() if node["Alive"]]
    asked = [
        task.options(scheduling_strategy=at(node["NodeID"], soft=False), runtime_env=environment()).remote(
            str(here), files
        )
        for node in alive
    ]
    found: list[NodeContents] = []
    ray.wait(asked, num_returns=len(asked), timeout=LOOKING)
    try:
        for answer in asked:
            with suppress(ray.exceptions.TaskUnschedulableError):  # the node died a moment ago, and is still listed
                found.append(ray.get(answer, timeout=1))
    except ray.exceptions.RayTaskError as error:
        said = str(error).strip().splitlines()[-1]
        raise ExegeteError(f"exegete can't be used on the cluster's nodes ({said}): install it there") from None
    except ray.exceptions.RayError as error:
        raise ExegeteError(f"the cluster's nodes don't answer ({type(error).__name__}): look at `ray status`") from None
    if not found:
        raise ExegeteError("no node of the cluster is left: look at `ray status`")
    return found


def refuse(found: Sequence[NodeContents], token: Path | None = None, folder: Path | None = None) -> None:
    """One sentence for the first node that differs."""
    for node in found:
        where = f"node {node.host} of the cluster"
        if _minor(node.python) != _minor(platform.python_version()):
            raise ExegeteError(
                f"{where} has Python {node.python}, here is {platform.python_version()}: install the same there"
            )
        if (node.exegete, node.code) != (__version__, package_hash()):
            what = f"exegete {node.exegete}" if node.exegete != __version__ else "other code under the same version"
            raise ExegeteError(f"{where} has {what}, here is exegete {__version__}: install the same there")
        if token is not None and str(token.absolute()) in node.unseen:
            raise ExegeteError(
                f"{where} can't see the run folder {folder}: choose one with --out that lies where all nodes see it"
            )
        if node.unseen:
            raise ExegeteError(
                f"{where} can't see {node.unseen[0]} as it is here: put it where all nodes see it, under the same path"
            )


def _minor(version: str) -> str:
    return version.rpartition(".")[0]
