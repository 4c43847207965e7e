"""Remote: a run at an address (`s3://bucket/run`, `gs://…`, `file://…`): a folder here, and whole objects there.

Everything works in a folder of this machine, the run's *copy*; between the two go whole files, by name:

- before anything, and before every piece, what is there and not here is fetched: nobody does again what is done;
- while a piece is done, and after it, what is here and not there is put: parts first, a stage's `stage.json` last, the
  manifest last of all, so that each proves what it says there as it does here.

Stages are named by their content, so two writers of one name write the same, and no lease is needed there. An object
store shows an object when all of it is there; other file systems get it under another name, which is then changed.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from exegete.base.errors import ExegeteError, UsageError
from exegete.base.extras import install
from exegete.base.files import whole_file, write_text
from exegete.runs.store import DONE, is_address
from exegete.tasks.spool import cache

KEPT = ("stages", "inputs")  # named by content: what is there under a name is what is here
CELLS = "cells"
FOUND = (*KEPT, CELLS)  # what pieces find
MANIFEST = "manifest.json"
WHOLE = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oci", "oss", "r2", "memory")  # puts are whole there
EVERY = 30.0  # seconds between two puts while a piece is done
ADDRESS, COPY = "address", "run"


class Remote(NamedTuple):
    """A run at an address, and its copy here."""

    address: str
    copy: Path
    system: Any  # of fsspec
    root: str

    def there(self) -> dict[str, int]:
        """The files at the address, and their sizes."""
        self.system.invalidate_cache()
        found = self.system.find(self.root, detail=True) if self.system.exists(self.root) else {}
        start = len(self.root.rstrip("/")) + 1
        return {name[start:]: int(facts["size"]) for name, facts in found.items() if not _is_beside(name)}

    def fetch(self, only: tuple[str, ...] = ()) -> None:
        """Get what is not here, or may have changed; with `only`, what is not here of some folders."""
        with _told(self.address, "read"):
            for name in sorted(self.there(), key=_proof):
                here, top = self.copy / name, name.partition("/")[0]
                if (only and top not in only) or (top in (*KEPT, *only) and here.is_file()):
                    continue
                with whole_file(here) as beside:
                    self.system.get_file(f"{self.root}/{name}", str(beside))

    def put(self, only: tuple[str, ...] = ()) -> None:
        """Put what is not there, or may have changed, in the order of what it proves; with `only`, of some folders."""
        with _told(self.address, "write"):
            there = self.there()
            for name in self._names():
                top, size = name.partition("/")[0], (self.copy / name).stat().st_size
                if (not only or top in only) and not (top in KEPT and there.get(name) == size):
                    self._put(name)

    def put_all(self, names: Iterable[str]) -> None:
        """Put some files, whatever is there under their names."""
        with _told(self.address, "write"):
            for name in names:
                self._put(name)

    def cells(self) -> dict[str, int]:
        """The cells that are finished here, and when they were written: of others there may be newer ones there."""
        return {f"{CELLS}/{path.name}": path.stat().st_mtime_ns for path in (self.copy / CELLS).glob("*.json")}

    def withdraw(self, name: str) -> None:
        """Remove a file at the address, if it is there."""
        with _told(self.address, "write"):
            if self.system.exists(f"{self.root}/{name}"):
                self.system.rm_file(f"{self.root}/{name}")

    def check(self) -> None:
        """Refuse, before any work, an address that can't be written."""
        token = f"{self.root}/.beside-{uuid4().hex}"
        with _told(self.address, "write"):
            self.system.makedirs(self.root, exist_ok=True)
            self.system.pipe_file(token, b"may I?")
            self.system.rm_file(token)

    def _names(self) -> list[str]:
        """The files here that are whole: what proves others comes after them."""
        found = (path.relative_to(self.copy) for path in self.copy.rglob("*") if path.is_file())
        whole = [path for path in found if not any(part.startswith(".") for part in path.parts)]
        training = {path.parts[1] for path in whole if path.parts[0] == "stages" and path.parts[1].startswith("train-")}
        begun = {name for name in training if not (self.copy / "stages" / name / DONE).is_file()}
        kept = [path for path in whole if not (path.parts[0] == "stages" and path.parts[1] in begun)]
        return sorted((path.as_posix() for path in kept), key=_proof)

    def _put(self, name: str) -> None:
        source, target = str(self.copy / name), f"{self.root}/{name}"
        self.system.makedirs(target.rpartition("/")[0], exist_ok=True)
        protocols = self.system.protocol if isinstance(self.system.protocol, tuple) else (self.system.protocol,)
        if set(protocols) & set(WHOLE):
            self.system.put_file(source, target)
            return
        beside = f"{target.rpartition('/')[0]}/.beside-{uuid4().hex}"
        self.system.put_file(source, beside)
        self.system.mv(beside, target)


def remote(address: str) -> Remote:
    """The run at an address; a driver that is missing is told in a sentence."""
    try:
        core = import_module("fsspec.core")
    except ImportError:
        raise ExegeteError(f"a run at {address} needs fsspec, which is not installed: {install('store')}") from None
    try:
        system, root = core.url_to_fs(address)
    except ImportError as error:
        raise ExegeteError(f"a run at {address} needs a driver that is not installed: {error}") from None
    except ValueError as error:
        raise UsageError(f"'{address}' is no address of a run: {error}") from None
    home = cache() / "runs" / sha256(address.rstrip("/").encode()).hexdigest()[:16]
    return Remote(address.rstrip("/"), home / COPY, system, str(root).rstrip("/"))


@contextmanager
def work_on(place: str | Path) -> Iterator[Path]:
    """The folder of a run that is worked on: of an address, its copy, fetched now, and put there in the end.

    What was done before an error is put there, too.
    """
    if not is_address(place):
        yield Path(place)
        return
    at = remote(place)
    at.check()
    at.fetch()
    at.copy.mkdir(parents=True, exist_ok=True)
    write_text(at.copy.with_name(ADDRESS), at.address)
    try:
        yield at.copy
    except BaseException:
        with suppress(ExegeteError):  # the error that is on its way says more
            at.put(KEPT)
        raise
    at.put()


def fetch_run(place: str | Path) -> Path:
    """A run that is only read: its folder, or the copy of what is at an address."""
    if not is_address(place):
        return Path(place)
    at = remote(place)
    at.fetch()
    if not at.copy.is_dir():
        raise ExegeteError(f"there is no run at {place}: make one with `exegete run STUDY.toml --out {place}`")
    return at.copy


def address_of(run: Path) -> str:
    """The address that a folder is the copy of; nothing, of any other."""
    said = run.parent / ADDRESS
    return said.read_text(encoding="utf8") if run.name == COPY and said.is_file() else ""


def user_path(path: Path) -> str:
    """A file of a run as its user knows it: at its address, if the run has one."""
    for folder in path.parents:
        if address := address_of(folder):
            return f"{address}/{path.relative_to(folder).as_posix()}"
    return address_of(path) or str(path)


@contextmanager
def in_step(address: str) -> Iterator[Path]:
    """A piece of a run at an address, on any machine: fetch what others finished, put what is found, as it is found."""
    at = remote(address)
    at.fetch(KEPT)
    before, over = at.cells(), threading.Event()
    putting = threading.Thread(target=_keep_putting, args=(at, over), daemon=True)
    putting.start()
    try:
        yield at.copy
    finally:
        over.set()
        putting.join()
    at.put(KEPT)
    at.put_all(name for name, written in at.cells().items() if before.get(name) != written)


def _keep_putting(at: Remote, over: threading.Event) -> None:
    while not over.wait(EVERY):
        with suppress(ExegeteError):  # the put at the end will say it, if it lasts
            at.put(KEPT)


def _proof(name: str) -> tuple[bool, bool, str]:
    """What proves others comes after them, on either way: of a stage `stage.json`, of all the manifest."""
    last = name.rpartition("/")[2]
    return last in (DONE, MANIFEST), name == MANIFEST, name


def _is_beside(name: str) -> bool:
    return name.rpartition("/")[2].startswith(".")


@contextmanager
def _told(address: str, what: str) -> Iterator[None]:
    """One sentence for what a driver raises: each has errors of its own."""
    try:
        yield
    except ExegeteError:
        raise
    except Exception as error:  # noqa: BLE001
        said = " ".join(str(error).split()) or type(error).__name__
        raise ExegeteError(
            f"can't {what} {address} ({said[:200]}): look at the address, your rights and the connection; what "
            "was done is kept here, and the same command goes on"
        ) from None
