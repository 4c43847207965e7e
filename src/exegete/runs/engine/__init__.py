"""Engines: what runs the independent pieces of a study, chosen by name; a package may add another one."""

from exegete.base.arguments import Count, fits_kind, show_value
from exegete.base.catalogue import Catalogue, Entry
from exegete.base.errors import UsageError
from exegete.runs.engine.contract import Engine

ENGINES = Catalogue(
    "engine",
    {"local": Entry("exegete.runs.engine.local:LocalEngine", "worker processes on this machine")},
)


def engine_of(name: str | Engine = "local", workers: int | None = None) -> Engine:
    """The engine that a name stands for (`ray:ADDRESS` says where), with so many workers, one per core unless given.

    An engine is itself.
    """
    if not fits_kind(workers, Count | None):
        raise UsageError(f"workers is a number of processes, 1 or more, not {show_value(workers)}")
    if not isinstance(name, str):
        if not hasattr(name, "map"):
            raise UsageError(f"an engine is a name or an object with `map`, not {show_value(name)}")
        return name
    kind, _, address = name.partition(":")
    made: Engine = ENGINES[kind].load()(workers, address)
    return made
