"""Check: is every file of a run what was written?"""

from pathlib import Path
from typing import Annotated

import typer

from exegete.base.errors import ExegeteError
from exegete.cli.app import EngineName, Json, Quiet, WorkersOption, app, print_json


@app.command("check")
def check_command(
    folder: Annotated[str, typer.Argument(metavar="RUN", help="A run folder, or an address (s3://bucket/run).")],
    repair: Annotated[bool, typer.Option("--repair", help="Compute what is damaged again.")] = False,
    export: Annotated[
        Path | None, typer.Option(help="Write a copy of the run into this new folder, without absolute paths.")
    ] = None,
    workers: WorkersOption = None,
    engine: EngineName = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check that every file of a run is what was written, by its checksum; repair it, or copy it for others."""
    from exegete.report.terminal import ProgressBars
    from exegete.runs.export import export_run
    from exegete.runs.integrity import inspect, refuse_damaged
    from exegete.runs.objects import engine_for
    from exegete.runs.remote import fetch_run, user_path, work_on
    from exegete.runs.run import read_cells, read_manifest, run_study, study_of
    from exegete.runs.study import check_study

    run = fetch_run(folder)
    found = inspect(run)
    if not repair:
        read_manifest(run)
    if not as_json:
        for damage in found.damages:
            print(f"damaged: {user_path(run / damage.name)} ({damage.why})")
    if repair and found.damages:
        with work_on(folder) as run, ProgressBars(quiet) as bars:
            study = check_study(study_of(run))
            run_study(study, run, read_cells(run, study), engine_for(study, engine, workers), bars)
            repaired, found = [damage.name for damage in found.damages], inspect(run)
    else:
        repaired = []
    if export is not None:
        refuse_damaged(run)
        export_run(run, export)
    if as_json:
        damages = [damage._asdict() for damage in found.damages]
        said = {"checked": found.checked, "no_checksums": found.unknown, "damaged": damages, "repaired": repaired}
        print_json(said | {"export": None if export is None else str(export)})
    else:
        for name in repaired:
            print(f"repaired: {user_path(run / name)}")
        print(f"{found.checked:,} files are what was written")
        if found.unknown:
            print(f"{found.unknown:,} files have no checksums: written by an older version; they can be read")
        if export is not None:
            print(f"export: {export}")
    if found.damages:
        count = len(found.damages)
        raise ExegeteError(
            f"{count} file{'s' if count > 1 else ''} of {user_path(run)} damaged: add --repair to compute again"
        )
