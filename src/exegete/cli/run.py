"""Run: a study, or what is left of it."""

from typing import Annotated

import typer

from exegete.cli.app import (
    Device,
    EngineName,
    Json,
    Out,
    Quiet,
    WorkersOption,
    app,
    print_json,
    say_failures,
    show_summary,
)


@app.command("run")
def run_command(
    study: Annotated[str, typer.Argument(help="A TOML file, or the name of a built-in study.")],
    out: Out = None,
    task: Annotated[list[str] | None, typer.Option(help="Only these tasks (patterns).")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only these models (patterns, as '*sparsemax*').")] = None,
    seed: Annotated[list[int] | None, typer.Option(help="Only these seeds.")] = None,
    workers: WorkersOption = None,
    engine: EngineName = None,
    device: Device = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a study, or go on with it: models, scores, experiments, tables, figures, report."""
    from exegete.answers.pages.build import write_run_report
    from exegete.base.errors import note_failures
    from exegete.report.terminal import ProgressBars
    from exegete.runs.objects import engine_for
    from exegete.runs.remote import user_path, work_on
    from exegete.runs.run import read_manifest, run_study
    from exegete.runs.study import load_study, narrow_cells, on

    loaded = on(load_study(study), device)
    cells = narrow_cells(loaded, task or [], model or [], seed or [])
    with work_on(out or f"runs/{loaded.name}") as folder:
        with ProgressBars(quiet) as bars:
            run_study(loaded, folder, cells, engine_for(loaded, engine, workers), bars)
        failures = list(read_manifest(folder).get("failures", ()))
        page = None
        if not as_json:
            with note_failures(failures, "the summary can't be shown"):
                show_summary(folder)
        with note_failures(failures, "the report can't be written"):
            page = user_path(write_run_report(folder))
    if as_json:
        print_json({"run": user_path(folder), "report": page, "cells": len(cells)})
    elif page is not None:
        print(f"report: {page}")
    say_failures(failures, user_path(folder))
