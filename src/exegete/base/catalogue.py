"""Catalogue: all things of one kind by name, ours and those of every package that registers with Exegete.

A catalogue maps names to the place where a thing is defined, so that listing imports nothing heavy; asking for a thing
imports its module, checks the settings against its fields, and says the nearest right name where one is wrong.

A package adds things by one table, which its `pyproject.toml` names:

    [project.entry-points."exegete"]
    mine = "my_package:PLUGIN"

    PLUGIN = Plugin(importances={"my_importance": Entry("my_package.scores:MyImportance", "what it is, in a line")})

Our own wings (papers, annotation, cluster, explorer, calibration) register in this way, too.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from exegete.base.errors import ExegeteError, UsageError, unknown
from exegete.base.names import parse, validate


class PluginWarning(UserWarning):
    """A package registers with Exegete, and can't be loaded."""


@dataclass(frozen=True)
class Entry:
    """Where a named thing is defined (`module:attribute`, or the thing itself), and what it is in one line."""

    place: str | Callable[..., Any]
    summary: str
    label: str = ""  # how people write its name, where that is no matter of underscores

    def load(self) -> Any:
        """The thing, importing its module only now."""
        return import_from(self.place)


def import_from(place: Any) -> Any:
    """What stands at `module:attribute`, importing its module only now; anything but a string is the thing itself."""
    if not isinstance(place, str):
        return place
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


Entries = Mapping[str, Entry]


@dataclass(frozen=True)
class Plugin:
    """What a package adds, by kind and name.

    Things of the core's kinds are found under their names as ours are. `commands` are functions with typer's
    annotations. `catalogues` are further kinds of things, which `exegete ls` shows. `sections` are functions of a study
    and the summary of its agreement that give a table for the end of a report, or None.
    """

    tasks: Entries = field(default_factory=dict)
    models: Entries = field(default_factory=dict)
    importances: Entries = field(default_factory=dict)
    interventions: Entries = field(default_factory=dict)
    measures: Entries = field(default_factory=dict)
    experiments: Entries = field(default_factory=dict)
    engines: Entries = field(default_factory=dict)
    commands: Entries = field(default_factory=dict)
    catalogues: Entries = field(default_factory=dict)
    sections: Entries = field(default_factory=dict)
    ours: bool = False  # whether it is a part of Exegete, whose code is known


@cache
def plugins() -> Mapping[str, Plugin]:
    """The tables of all installed packages that register with Exegete, ours first."""
    tables = {point.name: _load(point) for point in entry_points(group="exegete")}
    known = {name: table for name, table in tables.items() if table is not None}
    return dict(sorted(known.items(), key=lambda item: (not item[1].ours, item[0])))


def _load(point: EntryPoint) -> Plugin | None:
    """The table that a package names; one that can't be had is left out with a warning, as others must go on."""
    try:
        table = point.load()
        if not isinstance(table, Plugin):
            raise TypeError(f"{point.value} is a {type(table).__name__}, no exegete.plugins.Plugin")  # noqa: TRY301
    except Exception as error:  # noqa: BLE001 (whatever somebody's package does when it is imported)
        warnings.warn(f"plugin '{point.name}' is left out ({error}): mend it, or uninstall it", PluginWarning, 2)
        return None
    return table


def added_entries(kind: str) -> dict[str, Entry]:
    """Everything of one kind that packages add; the plural names the kind."""
    return {name: entry for plugin in plugins().values() for name, entry in getattr(plugin, kind, {}).items()}


class Catalogue(Mapping[str, Entry]):
    """All things of one kind, by name; `hf:NAME` is one of those that the entry `hf` stands for."""

    def __init__(self, kind: str, entries: Mapping[str, Entry], else_: str = "") -> None:
        self.kind = kind
        self._else = f"; {else_}" if else_ else ""  # what to do with a name from elsewhere
        self._built_in = dict(entries)
        self._own: dict[str, Entry] = {}  # added by a script or a file of a user's own

    def __getitem__(self, name: str) -> Entry:
        stem = _stem(name)
        entry = self._built_in.get(stem) or self._own.get(stem) or self._added().get(stem)
        if entry is None:
            raise UsageError(f"{unknown(self.kind, name, list(self))}{self._else}")
        return entry

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and any(_stem(name) in each for each in (self._built_in, self._own, self._added()))

    def __iter__(self) -> Iterator[str]:
        return iter({**self._built_in, **self._added(), **self._own})

    def __len__(self) -> int:
        return len(list(iter(self)))

    def add(self, name: str, thing: Callable[..., Any], summary: str) -> None:
        """Give a thing of your own a name, so that studies and the command line know it; the last definition counts."""
        if name in self._built_in or name in self._added():
            raise UsageError(f"there is already {self.kind} '{name}': choose another name")
        self._own[name] = Entry(thing, summary)

    @property
    def has_own(self) -> bool:
        """Whether it has things of a user's own or of another package, whose code we don't know."""
        others = [plugin for plugin in plugins().values() if not plugin.ours]
        return bool(self._own) or any(getattr(plugin, f"{self.kind}s", {}) for plugin in others)

    def make(self, text: str) -> Any:
        """Build what `name:key=value,…` asks for."""
        spec = parse(text)
        return validate(self[spec.name].load(), spec.settings, f"{self.kind} '{spec.name}'")

    def _added(self) -> dict[str, Entry]:
        """What packages add; a name that is ours already is refused, as nobody would know which is meant."""
        entries = added_entries(f"{self.kind}s")
        if taken := entries.keys() & self._built_in.keys():
            raise ExegeteError(f"a plugin adds {self.kind} '{min(taken)}', which is there already: uninstall it")
        return entries


def _stem(name: str) -> str:
    """What a name is one of: hf of hf:NAME."""
    return name.partition(":")[0]
