"""Errors for people: one sentence that says what is wrong and what to do next."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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


def describe_error(error: Exception) -> str:
    """What an error says, on one line, with its kind.

    >>> describe_error(ValueError("no such\\nthing"))
    'ValueError: no such thing'
    """
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]


@contextmanager
def note_failures(failures: list[str], what: str) -> Iterator[None]:
    """Go on after an error, which is added to the failures; the output itself is another's to handle."""
    try:
        yield
    except OSError:
        raise
    except ExegeteError as error:
        failures.append(str(error))
    except Exception as error:  # noqa: BLE001 - a defect of ours, said where the command was given
        failures.append(f"{what} ({describe_error(error)})")
