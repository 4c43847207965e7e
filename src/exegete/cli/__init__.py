"""The front door: `exegete COMMAND`, a file per command.

Nothing heavy is imported before a command needs it, so that help and listings answer at once.
"""

import io
import os
import re
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console

from exegete.base.errors import DataWarning, ExegeteError, UsageError
from exegete.base.memory import keep_freed, leave_at_the_end, look_rarely

# In the order of the help page: importing a command registers it.
from exegete.cli import ls, train, run, report, check, audit, explain, words, tokens  # isort: skip
from exegete.cli.app import add_commands, app, escape
from exegete.cli.interrupts import STOPPED, end, heard_at_once

__all__ = ["app", "main"]
MEMORY = "not enough memory: use a smaller model or batch, fewer workers (--workers 1) or a length limit (max_length=…)"
NO_ROOM = r"can't allocate memory|out of memory|[Oo]verflow"  # what torch says of tensors that are too large
add_commands()
COMMANDS = (ls, train, run, report, check, audit, explain, words, tokens)


def main() -> None:
    """Run a command; what goes wrong is one sentence and an exit code."""
    look_rarely()
    leave_at_the_end()
    keep_freed()
    warnings.simplefilter("ignore", DataWarning)  # commands print them as notes
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a sign that the output has no letter for must not cost the answer
    try:
        _check_cache()
        with heard_at_once():
            code = app(standalone_mode=False)  # typer returns the code of an Exit, and 130 after Ctrl-C
        sys.stdout.flush()
    except ExegeteError as error:
        _stop(str(error), error.exit_code)
    except KeyboardInterrupt:
        code = STOPPED
    except OSError as error:
        _stop(_disk(error), 1)
    except MemoryError:
        _stop(MEMORY, 1)
    except Exception as error:
        if isinstance(error, RuntimeError | TypeError) and re.search(NO_ROOM, str(error)):
            _stop(MEMORY, 1)
        if not hasattr(error, "format_message"):
            raise  # a defect of ours: its traceback is what we need to see
        _stop(_wrong_usage(error), 2)
    if code == STOPPED:
        _stop("stopped; the same command goes on where it was", STOPPED)
    sys.exit(code if isinstance(code, int) else 0)


def _check_cache() -> None:
    """A cache that is no folder is told before anything is read."""
    place = os.environ.get("EXEGETE_CACHE")
    if place and not Path(place).is_dir() and os.path.lexists(place):
        raise UsageError(f"EXEGETE_CACHE is {place}, which is no folder: name one that can be written, or leave it out")


def _disk(error: OSError) -> str:
    """A sentence for a file or an output that the system refuses."""
    why = error.strerror or str(error)
    if error.filename is not None:
        return f"can't use {os.fsdecode(error.filename)} ({why}): choose another place"
    return f"the output can't be written ({why}): send it elsewhere; what was computed is kept"


def _wrong_usage(error: Any) -> str:
    """What typer says of a wrong option or argument, and where to look; of a missing command it says nothing."""
    context = getattr(error, "ctx", None)
    commands = ", ".join(getattr(getattr(context, "command", None), "commands", ()))
    sentence = error.format_message().rstrip(".") or f"a command is missing: choose from {commands}"
    command = context.command_path.removeprefix(context.find_root().command_path) if context else ""
    return f"{sentence} (see exegete{command} --help)"


def _stop(sentence: str, code: int) -> NoReturn:
    try:
        sys.stdout.flush()
    except OSError:  # nobody reads it, or there is no room: what is left must not fail again at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    with suppress(OSError):
        Console(stderr=True, soft_wrap=True, highlight=False).print(f"[bold red]error:[/] {escape(sentence)}")
    end(code)
