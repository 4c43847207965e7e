"""Failures: what goes wrong after all was computed must not cost it; it is kept as a sentence, and said at the end."""

from collections.abc import Iterator
from contextlib import contextmanager

from exegete.base.errors import ExegeteError


def described(error: Exception) -> str:
    """What an error says, on one line, with its kind.

    >>> described(ValueError("no such\\nthing"))
    'ValueError: no such thing'
    """
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]


@contextmanager
def noted(failures: list[str], what: str) -> Iterator[None]:
    """Go on after an error, which is added to the failures; the output itself is another's to handle."""
    try:
        yield
    except OSError:
        raise
    except ExegeteError as error:
        failures.append(str(error))
    except Exception as error:  # noqa: BLE001 - a defect of ours, said where the command was given
        failures.append(f"{what} ({described(error)})")
