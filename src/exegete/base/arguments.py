"""Arguments: what a person gives to a function of the front door, checked by its annotations before anything starts.

An annotation in quotes names what is heavy to import: such an argument is judged where it is used.
"""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from numbers import Integral
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ParamSpec, TypeVar, get_args, get_origin

from exegete.base.errors import UsageError

P = ParamSpec("P")
R = TypeVar("R")
WORDS: Mapping[Any, str] = {str: "a name", int: "a whole number", bool: "True or False", Path: "a path"}


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with one sentence for an argument of the wrong kind."""
    signature = inspect.signature(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            parameter = signature.parameters[name]
            if parameter.kind is not parameter.VAR_KEYWORD and not fits(value, parameter.annotation):
                raise UsageError(f"{name} is {_said(parameter.annotation)}, not {shown(value)}")
        return function(*args, **kwargs)

    return call


def fits(value: object, kind: Any) -> bool:
    """Whether a value is of an annotated kind; columns of frames and arrays are lists, too.

    >>> fits(["lrp"], Sequence[str] | None), fits("lrp", Sequence[str]), fits(True, int)
    (True, False, False)
    """
    if kind is Any or isinstance(kind, str):
        return True
    if isinstance(kind, UnionType):
        return any(fits(value, each) for each in get_args(kind))
    if get_origin(kind) is Sequence:
        listed = isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)
        return listed and all(fits(each, get_args(kind)[0]) for each in value)  # type: ignore[attr-defined]
    if kind is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    return isinstance(value, get_origin(kind) or kind)


def shown(value: object) -> str:
    """The beginning of something, in one line.

    >>> shown(["a", "b"])
    "['a', 'b']"
    """
    return " ".join(f"{value!r:.40}".split())


def _said(kind: Any) -> str:
    """An annotation for people."""
    if isinstance(kind, UnionType):
        return " or ".join(dict.fromkeys(_said(each) for each in get_args(kind) if each is not NoneType))
    if get_origin(kind) is Sequence:
        return {str: "a list of names", int: "a list of whole numbers"}.get(get_args(kind)[0], "a list")
    return WORDS.get(kind, "a table of settings")
