"""Serve: the explorer, a page on which attention can be taken in hand."""

from importlib.util import find_spec
from typing import Annotated

import typer
from rich.console import Console

from exegete.plugins import ExegeteError


def serve_command(
    models: Annotated[
        list[str] | None, typer.Argument(help="Checkpoint or run folders; else the default audit's.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than this machine only if you say so.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, help="Port; 0 is any that is free.")] = 8077,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
) -> None:
    """The explorer: take hold of attention and see whether the prediction follows."""
    missing = [name for name in ("fastapi", "uvicorn") if find_spec(name) is None]
    if missing:
        raise ExegeteError(f"the explorer needs {' and '.join(missing)}: pip install fastapi uvicorn")
    from exegete.wings.explorer.start import loopback
    from exegete.wings.explorer.start import serve as run

    told = Console(stderr=True, highlight=False, soft_wrap=True)
    if not loopback(host):
        told.print("[yellow]note:[/] others can reach this address: give it only to those who may use this machine; "
                   "what is typed is not encrypted on the way")  # fmt: skip
    told.print("[dim]the explorer is at this address until you press Ctrl-C:[/]")
    run(models or (), host, port, browser, lambda address: print(address, flush=True))
