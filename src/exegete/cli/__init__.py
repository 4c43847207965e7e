"""The front door: `exegete COMMAND`, a file per command.

Nothing heavy is imported before a command needs it, so that help and listings answer at once.
"""

import sys
from typing import Any, NoReturn

from rich.console import Console

from exegete.base.errors import ExegeteError
from exegete.base.garbage import leave_at_the_end, look_rarely
from exegete.base.memory import keep_freed

# In the order of the help page: importing a command registers it.
from exegete.cli import listing, train, run, report, reproduce, audit, calibrate, explain, words, serve  # isort: skip
from exegete.cli import annotate, tokens  # isort: skip
from exegete.cli.app import app, escaped
from exegete.cli.stopping import STOPPED, end, heard_at_once

__all__ = ["app", "main"]
COMMANDS = (listing, train, run, report, reproduce, audit, calibrate, explain, words, serve, annotate, tokens)


def main() -> None:
    """Run a command; what goes wrong is one sentence and an exit code."""
    look_rarely()
    leave_at_the_end()
    keep_freed()
    try:
        with heard_at_once():
            code = app(standalone_mode=False)  # typer returns the code of an Exit, and 130 after Ctrl-C
    except ExegeteError as error:
        _stop(str(error), error.exit_code)
    except KeyboardInterrupt:
        code = STOPPED
    except MemoryError:
        _stop("not enough memory: use a smaller batch, fewer workers (--workers 1) or a length limit (max_length=…)", 1)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise  # a defect of ours: its traceback is what we need to see
        _stop(_wrong_usage(error), 2)
    if code == STOPPED:
        _stop("stopped; the same command goes on where it was", STOPPED)
    sys.exit(code if isinstance(code, int) else 0)


def _wrong_usage(error: Any) -> str:
    """What typer says of a wrong option or argument, and where to look; of a missing command it says nothing."""
    context = getattr(error, "ctx", None)
    commands = ", ".join(getattr(getattr(context, "command", None), "commands", ()))
    sentence = error.format_message().rstrip(".") or f"a command is missing: choose from {commands}"
    command = context.command_path.removeprefix(context.find_root().command_path) if context else ""
    return f"{sentence} (see exegete{command} --help)"


def _stop(sentence: str, code: int) -> NoReturn:
    Console(stderr=True, soft_wrap=True, highlight=False).print(f"[bold red]error:[/] {escaped(sentence)}")
    end(code)
