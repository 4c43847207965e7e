"""Report: a run as one page."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from exegete.cli.app import Json, app, print_json


@app.command("report")
def report_command(
    folder: Annotated[str, typer.Argument(metavar="RUN", help="A run folder, or an address (s3://bucket/run).")],
    out: Annotated[Path | None, typer.Option(help="The HTML file; RUN/report_command.html unless given.")] = None,
    results: Annotated[Path | None, typer.Option(help="Also copy tables, figures and manifest here.")] = None,
    as_json: Json = False,
) -> None:
    """Write a run's report: one HTML file that works offline."""
    from exegete.answers.pages.build import keep_results, write_run_report
    from exegete.runs.integrity import refuse_damaged
    from exegete.runs.remote import fetch_run, user_path, work_on

    with work_on(folder) if out is None else nullcontext(fetch_run(folder)) as run:
        refuse_damaged(run)
        page = write_run_report(run, out)
    if results is not None:
        keep_results(run, results)
    if as_json:
        print_json({"report": user_path(page)})
    else:
        print(f"report: {user_path(page)}")
