"""Audit: the scorecard and the answer."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from exegete.base.errors import UsageError
from exegete.cli.app import Json, Quiet, Workers, app, escaped, print_json, show_summary

if TYPE_CHECKING:
    from exegete.studies.audit import Audit


@app.command()
def audit(
    study: Annotated[str | None, typer.Argument(help="A TOML file, or the name of a built-in study.")] = None,
    task: Annotated[str | None, typer.Option(help="A task, with a model.")] = None,
    model: Annotated[str | None, typer.Option(help="A model's name with settings, or a checkpoint folder.")] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; runs/NAME unless given.")] = None,
    criteria: Annotated[Path | None, typer.Option(help="Criteria of your own (TOML).")] = None,
    workers: Workers = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The scorecard: may attention be read as an explanation?"""
    from exegete.report.terminal import ProgressBars
    from exegete.studies.auditing import audit_study, study_for
    from exegete.studies.engine import LocalEngine

    if study is not None and (task is not None or model is not None):
        raise UsageError("give a study, or --task and --model, not both")
    asked = study_for(study, task, model)
    with ProgressBars(quiet or as_json) as bars:
        found = audit_study(
            asked, out or Path("runs") / asked.name, criteria, LocalEngine(workers) if workers else None, bars
        )
    _show_audit(found, as_json)


def _show_audit(found: "Audit", as_json: bool) -> None:
    """Write the report, then print the scorecard and the answer, for machines or for people."""
    from exegete.report.build import notes, predictions, questions, scorecard, write_report
    from exegete.report.tables import rich_table

    assert found.run is not None
    page = write_report(found.run, audit=found)
    if as_json:
        beside = {"report": str(page), "notes": notes(found.run), "models": predictions(found.run)}
        print_json(found.to_json() | beside)
        return
    console = Console(highlight=False)
    show_summary(found.run)
    console.print()
    console.print(rich_table(scorecard(found)))
    console.print("[dim]The intervals of the scorecard hold jointly at 95 %.[/]\n")
    for line in questions(found):
        console.print(f"[dim]{escaped(line)}[/]")
    console.print(f"\n{escaped(found.answer)}\n")
    print(f"report: {page}")
