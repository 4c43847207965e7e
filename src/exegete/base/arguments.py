"""Arguments: what a person gives to a function of the front door, checked by its annotations before anything starts.

An annotation in quotes names what is heavy to import: such an argument is judged where it is used.
"""

import inspect
from collections.abc import Callable, Collection, ItemsView, KeysView, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, ParamSpec, TypeVar, Union, get_args, get_origin

from exegete.base.errors import UsageError

P = ParamSpec("P")
R = TypeVar("R")
Count = Annotated[int, "1 or more"]  # how many of something
WORDS: Mapping[Any, str] = {
    str: "a name",
    int: "a whole number",
    Count: "a whole number",
    float: "a number",
    bool: "True or False",
    Path: "a path",
}


def check_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with one sentence for an argument of the wrong kind."""
    signature = inspect.signature(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            parameter = signature.parameters[name]
            if parameter.kind is not parameter.VAR_KEYWORD and not fits_kind(value, parameter.annotation):
                kind = parameter.annotation
                raise UsageError(f"{name} is {_said(kind)}, not {show_value(value)}{_why(value, kind)}")
        return function(*args, **kwargs)

    return call


def fits_kind(value: object, kind: Any) -> bool:
    """Whether a value is of an annotated kind; columns of frames and arrays are lists, too, and sets have no order.

    >>> fits_kind(["lrp"], Sequence[str] | None), fits_kind("lrp", Sequence[str]), fits_kind({"lrp"}, Sequence[str])
    (True, False, False)
    >>> fits_kind(True, int), fits_kind(-5, int), fits_kind(-5, Count), fits_kind(3, float)
    (False, True, False, True)
    """
    if kind in (Any, inspect.Parameter.empty) or isinstance(kind, str):
        return True
    if _is_union(kind):
        return any(fits_kind(value, each) for each in get_args(kind))
    if get_origin(kind) is Sequence:
        listed = isinstance(value, Collection) and not (isinstance(value, str | bytes | Mapping) or _is_set(value))
        return listed and all(fits_kind(each, get_args(kind)[0]) for each in value)  # type: ignore[attr-defined]
    if kind is Count:
        return fits_kind(value, int) and value >= 1  # type: ignore[operator]
    if kind in (int, float):
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    return isinstance(value, get_origin(kind) or kind)


def show_value(value: object) -> str:
    """The beginning of something, in one line.

    >>> show_value(["a", "b"])
    "['a', 'b']"
    """
    return " ".join(f"{value!r:.40}".split())


def _said(kind: Any) -> str:
    """An annotation for people."""
    if _is_union(kind):
        return " or ".join(dict.fromkeys(_said(each) for each in get_args(kind) if each is not NoneType))
    if get_origin(kind) is Sequence:
        return {str: "a list of names", int: "a list of whole numbers"}.get(get_args(kind)[0], "a list")
    return WORDS.get(kind, "a table of settings")


def _why(value: object, kind: Any) -> str:
    """What is wrong with a value whose kind looks right."""
    if Count in (kind, *get_args(kind)) and fits_kind(value, int):
        return ": give 1 or more"
    return ": a set has no order" if _is_set(value) else ""


def _is_union(kind: Any) -> bool:
    return isinstance(kind, UnionType) or get_origin(kind) is Union


def _is_set(value: object) -> bool:
    """Whether something has no order; the keys of a dict have one."""
    return isinstance(value, AbstractSet) and not isinstance(value, KeysView | ItemsView)
