"""Names with settings: one form everywhere, `name:key=value,key=value`, on the command line and in TOML alike."""

import dataclasses
import math
import re
from collections.abc import Mapping
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


def vary(text: str, **settings: str) -> str:
    """A name with other settings.

    >>> vary("bilstm:attention=dot,hidden=64", attention="tanh")
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
