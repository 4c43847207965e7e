"""Names with settings: one form everywhere, `name:key=value,key=value`, on the command line and in TOML alike.

A catalogue maps names to the place where a thing is defined, so that listing imports nothing heavy; asking for a thing
imports its module, checks the settings against its fields, and says the nearest right name where one is wrong.
"""

import dataclasses
import importlib
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from exegete.base.errors import UsageError, unknown

_SPEC = re.compile(r"^(?P<name>(?:(?:file|hf|parallel):)?[^:]+)(?::(?P<settings>.*))?$", re.DOTALL)


class Spec(NamedTuple):
    """A name and its settings, as written."""

    name: str
    settings: dict[str, str]

    def __str__(self) -> str:
        written = ",".join(f"{key}={value}" for key, value in self.settings.items())
        return f"{self.name}:{written}" if written else self.name


def parse(text: str) -> Spec:
    """Read `name:key=value,key=value`.

    >>> parse("bilstm:attention=dot,projection=sparsegen").settings
    {'attention': 'dot', 'projection': 'sparsegen'}
    >>> parse("file:reviews.csv:text=review").name
    'file:reviews.csv'
    """
    match = _SPEC.match(text.strip())
    if match is None:
        raise UsageError(f"'{text}' is not a name: write name or name:key=value,key=value")
    settings: dict[str, str] = {}
    for pair in filter(None, (match["settings"] or "").split(",")):
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not (key and equals and value):
            raise UsageError(f"'{pair}' in '{text}' is not a setting: write key=value")
        if key in settings:
            raise UsageError(f"'{key}' is set twice in '{text}'")
        settings[key] = value
    return Spec(match["name"].strip(), settings)


def varied(text: str, **settings: str) -> str:
    """The same name with other settings.

    >>> varied("bilstm:attention=dot,hidden=64", attention="tanh")
    'bilstm:attention=tanh,hidden=64'
    """
    spec = parse(text)
    return str(Spec(spec.name, spec.settings | settings))


def validate(cls: type[Any], settings: Mapping[str, Any], owner: str) -> Any:
    """Build `cls` (a dataclass or pydantic model) from settings; a wrong key or value is one sentence."""
    fields = _settings(cls)
    for key in settings:
        if key not in fields:
            raise unknown(f"setting of {owner}", key, fields)
    try:
        made = _adapter(cls).validate_python(dict(settings))
    except ValidationError as error:
        raise UsageError(f"{owner}: {_sentence(error.errors()[0], cls)}") from None
    for key, given in settings.items():
        value = getattr(made, key, None)
        if isinstance(given, bool) and type(value) in (int, float):
            raise UsageError(f"{owner}: {key} is a number, not {given}")
        if _endless(value):
            raise UsageError(f"{owner}: {key}: Input should be a finite number (got {given!r})")
    return made


def _endless(value: Any) -> bool:
    """Whether a number, or one of several, is infinite or none."""
    several = isinstance(value, tuple | list)
    return any(map(_endless, value)) if several else isinstance(value, float) and not math.isfinite(value)


_adapters: dict[type[Any], TypeAdapter[Any]] = {}


def _adapter(cls: type[Any]) -> TypeAdapter[Any]:
    """Made once: a millisecond each, and an audit asks for hundreds."""
    if cls not in _adapters:
        _adapters[cls] = TypeAdapter(cls)
    return _adapters[cls]


def _settings(cls: type[Any]) -> set[str]:
    """What can be set; a field of a pydantic model may have another name for people (its alias)."""
    if models := getattr(cls, "model_fields", None):
        return {field.alias or name for name, field in models.items()}
    return {f.name for f in dataclasses.fields(cls) if f.init}


def _sentence(error: Any, cls: type[Any]) -> str:
    """What pydantic found wrong, for a person."""
    where = ".".join(str(part) for part in error["loc"])
    if error["type"] == "missing":
        return f"'{where}' is missing"
    if error["type"] == "extra_forbidden":
        *outer, key = error["loc"]
        return str(unknown(f"key of [{'.'.join(map(str, outer))}]", key, _fields(cls, outer)))
    said = error["msg"].removeprefix("Value error, ")
    return f"{where + ': ' if where else ''}{said} (got {error['input']!r})"


def _fields(cls: Any, path: list[str]) -> list[str]:
    """The fields of a model, or of the model in one of its fields."""
    for part in path:
        cls = cls.model_fields[part].annotation
    return list(cls.model_fields)


def loaded(place: Any) -> Any:
    """What stands at `module:attribute`, importing its module only now; anything but a string is the thing itself."""
    if not isinstance(place, str):
        return place
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)


@dataclasses.dataclass(frozen=True)
class Entry:
    """Where a named thing is defined (`module:attribute`, or the thing itself), and what it is in one line."""

    place: str | Callable[..., Any]
    summary: str
    label: str = ""  # how people write its name, where that is no matter of underscores

    def load(self) -> Any:
        """The thing, importing its module only now."""
        return loaded(self.place)


def _stem(name: str) -> str:
    """What a name is one of: hf of hf:NAME."""
    return name.partition(":")[0]


class Catalogue(Mapping[str, Entry]):
    """All things of one kind, by name; `hf:NAME` is one of those that the entry `hf` stands for."""

    def __init__(self, kind: str, entries: Mapping[str, Entry], else_: str = "") -> None:
        self.kind = kind
        self._else = f"; {else_}" if else_ else ""  # what to do with a name from elsewhere
        self._entries = dict(entries)
        self._built_in = frozenset(entries)

    def __getitem__(self, name: str) -> Entry:
        if name not in self:
            raise UsageError(f"{unknown(self.kind, name, self._entries)}{self._else}")
        return self._entries[_stem(name)]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and _stem(name) in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, name: str, thing: Callable[..., Any], summary: str) -> None:
        """Give a thing of your own a name, so that studies and the command line know it; the last definition counts."""
        if name in self._built_in:
            raise UsageError(f"there is already {self.kind} '{name}': choose another name")
        self._entries[name] = Entry(thing, summary)

    @property
    def has_own(self) -> bool:
        """Whether it has things of a user's own, whose code we don't know."""
        return len(self._entries) > len(self._built_in)

    def make(self, text: str) -> Any:
        """Build what `name:key=value,…` asks for."""
        spec = parse(text)
        return validate(self[spec.name].load(), spec.settings, f"{self.kind} '{spec.name}'")
