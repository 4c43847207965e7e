"""Report: a run as one page."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from exegete.cli.app import Json, app, print_json


@app.command()
def report(
    folder: Annotated[str, typer.Argument(metavar="RUN", help="A run folder, or an address (s3://bucket/run).")],
    out: Annotated[Path | None, typer.Option(help="The HTML file; RUN/report.html unless given.")] = None,
    results: Annotated[Path | None, typer.Option(help="Also copy tables, figures and manifest here.")] = None,
    as_json: Json = False,
) -> None:
    """Write a run's report: one HTML file that works offline."""
    from exegete.answers.pages.build import keep_results, write_report
    from exegete.runs.integrity import refuse_damaged
    from exegete.runs.remote import read_from, shown, worked_on

    with worked_on(folder) if out is None else nullcontext(read_from(folder)) as run:
        refuse_damaged(run)
        page = write_report(run, out)
    if results is not None:
        keep_results(run, results)
    if as_json:
        print_json({"report": shown(page)})
    else:
        print(f"report: {shown(page)}")
