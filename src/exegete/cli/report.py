"""Report: a run as one page."""

from pathlib import Path
from typing import Annotated

import typer

from exegete.cli.app import Json, app, print_json


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    out: Annotated[Path | None, typer.Option(help="The HTML file; RUN/report.html unless given.")] = None,
    results: Annotated[Path | None, typer.Option(help="Also copy tables, figures and manifest here.")] = None,
    as_json: Json = False,
) -> None:
    """Write a run's report: one HTML file that works offline."""
    from exegete.report.build import keep_results, write_report

    page = write_report(folder, out)
    if results is not None:
        keep_results(folder, results)
    if as_json:
        print_json({"report": str(page)})
    else:
        print(f"report: {page}")
