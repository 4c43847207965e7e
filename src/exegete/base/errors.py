"""Errors for people: one sentence that says what is wrong and what to do next."""

from collections.abc import Iterable
from difflib import get_close_matches


class ExegeteError(Exception):
    """Something failed: the command line prints the sentence and leaves with exit code 1."""

    exit_code = 1


class UsageError(ExegeteError):
    """Something was asked for in the wrong words: exit code 2."""

    exit_code = 2


class DiskError(ExegeteError):
    """A disk took no more, or not here: what was to be written is not there."""


class DataWarning(UserWarning):
    """Something about a user's texts that makes scores look better than they are, or a class hard to learn."""


def unknown(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """An error for a name that isn't there, with the nearest that is.

    >>> str(unknown("task", "sts", ["sst", "imdb"]))
    "unknown task 'sts': did you mean 'sst'?"

    A name that breaks lines is shown on one.
    """
    names = sorted(known)
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'?" if near else f"choose from {', '.join(names) or '(none)'}"
    return UsageError(f"unknown {kind} '{' '.join(name.splitlines())}': {hint}")
