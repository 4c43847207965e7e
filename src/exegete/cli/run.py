"""Run: a study, or what is left of it."""

from typing import Annotated

import typer

from exegete.cli.app import Device, EngineName, Json, Out, Quiet, Workers, app, print_json, say_failures, show_summary


@app.command()
def run(
    study: Annotated[str, typer.Argument(help="A TOML file, or the name of a built-in study.")],
    out: Out = None,
    task: Annotated[list[str] | None, typer.Option(help="Only these tasks (patterns).")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only these models (patterns, as '*sparsemax*').")] = None,
    seed: Annotated[list[int] | None, typer.Option(help="Only these seeds.")] = None,
    workers: Workers = None,
    engine: EngineName = None,
    device: Device = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a study, or go on with it: models, scores, experiments, tables, figures, report."""
    from exegete.answers.pages.build import write_report
    from exegete.base.errors import noted
    from exegete.report.terminal import ProgressBars
    from exegete.runs.objects import engine_for
    from exegete.runs.remote import shown, worked_on
    from exegete.runs.run import read_manifest, run_study
    from exegete.runs.study import load_study, narrowed, on

    loaded = on(load_study(study), device)
    cells = narrowed(loaded, task or [], model or [], seed or [])
    with worked_on(out or f"runs/{loaded.name}") as folder:
        with ProgressBars(quiet) as bars:
            run_study(loaded, folder, cells, engine_for(loaded, engine, workers), bars)
        failures = list(read_manifest(folder).get("failures", ()))
        page = None
        if not as_json:
            with noted(failures, "the summary can't be shown"):
                show_summary(folder)
        with noted(failures, "the report can't be written"):
            page = shown(write_report(folder))
    if as_json:
        print_json({"run": shown(folder), "report": page, "cells": len(cells)})
    elif page is not None:
        print(f"report: {page}")
    say_failures(failures, shown(folder))
