"""App: the command line's root, and what all of its commands share."""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from exegete import __version__
from exegete.base.catalogue import added_entries
from exegete.base.errors import ExegeteError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="May I read this model's attention as an explanation of its predictions, and if not, what should I read?",
)

Json = Annotated[bool, typer.Option("--json", help="For machines: print only JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")]
WorkersOption = Annotated[int | None, typer.Option(min=1, help="Worker processes; else one per core.")]

EngineName = Annotated[str | None, typer.Option("--engine", help="What runs it: local, ray or ray:ADDRESS.")]

Out = Annotated[str | None, typer.Option("--out", help="Run folder, or s3://…; else runs/NAME.")]
Device = Annotated[str | None, typer.Option("--device", help="cpu, cuda, cuda:N, mps or auto.")]


def _version(asked: bool) -> None:
    if asked:
        print(f"exegete {__version__}")
        raise typer.Exit


@app.callback()
def _front(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def add_commands() -> None:
    """Let the command line know the commands that packages add, our wings among them."""
    known = {command.name for command in app.registered_commands} | {group.name for group in app.registered_groups}
    for name, entry in added_entries("commands").items():
        command = entry.load()
        if name in known:
            continue
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)


def escape(text: str) -> str:
    """Text as rich prints it, with its brackets."""
    from rich.markup import escape

    return escape(text)


def print_json(value: Any) -> None:
    """For machines; letters that the output has not are written as JSON's own signs for them."""
    signs = not (sys.stdout.encoding or "utf8").lower().startswith("utf")
    print(json.dumps(value, indent=1, ensure_ascii=signs, allow_nan=False))


def say_failures(failures: Sequence[str], run: str) -> None:
    """What could not be shown or drawn, after all that could: an error, though nothing that was computed is lost."""
    if failures:
        raise ExegeteError(f"{'; '.join(failures)}; all that was computed is kept in {run}")


def show_notes(notes: Iterable[str]) -> None:
    """What must be known beside a result; a long one is left to the terminal to break."""
    console = Console(highlight=False, soft_wrap=True)
    for note in notes:
        console.print(f"[yellow]note:[/] {escape(note)}")


def show_known_first(folder: Path, everything: bool = False) -> None:
    """What must be known first: of the data, and how well the models predict."""
    from exegete.answers.pages.build import predictions, run_notes, short

    show_notes(short(folder, run_notes(folder, everything)))
    for line in short(folder, predictions(folder)):
        Console(highlight=False).print(escape(line))


def show_summary(folder: Path) -> None:
    """What must be known first, then what each experiment found."""
    from exegete.answers.pages.build import headlines
    from exegete.report.tables import rich_table

    show_known_first(folder, everything=True)
    console = Console(highlight=False)
    for table in headlines(folder):
        console.print()
        console.print(rich_table(table))
