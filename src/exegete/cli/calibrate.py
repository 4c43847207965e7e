"""Calibrate: the audit on models whose truth is known."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from exegete.cli.app import Json, Quiet, Workers, app, escaped, print_json

if TYPE_CHECKING:
    from exegete.calibration.calibrate import Calibration


@app.command()
def calibrate(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN…", help="Complete runs to judge; none: the studies are run.")
    ] = None,
    out: Annotated[Path, typer.Option(help="For the tables, the figure and the votes.")] = Path("runs/calibrated"),
    criteria: Annotated[Path | None, typer.Option(help="Criteria of your own (TOML).")] = None,
    workers: Workers = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Which tests of the audit tell faithful attention from unfaithful? Run it where the truth is known."""
    from exegete.audits.criteria import load_criteria
    from exegete.calibration.calibrate import calibrate as calibrated
    from exegete.calibration.calibrate import keep, run_all
    from exegete.report.terminal import ProgressBars
    from exegete.runs.engine import engine_of

    wanted = load_criteria(criteria)
    with ProgressBars(quiet or as_json) as bars:
        judged = runs or run_all(Path("runs"), engine_of(workers=workers), bars)
    found = calibrated(judged, wanted)
    figure = keep(found, judged, wanted, out)
    if as_json:
        print_json(found.to_json() | {"figure": str(figure), "votes_file": str(out / "votes.toml")})
    else:
        _show(found, figure)


def _show(found: "Calibration", figure: Path) -> None:
    """The verdict on every test, then the shares at every rung."""
    from exegete.page.columns import count, interval, share, text
    from exegete.page.section import Table
    from exegete.report.tables import rich_table

    console = Console(highlight=False)
    columns = (
        text("test"), text("tells_apart"), share("power"), share("false_alarm"),
        interval("low", "high", "power − false alarm, 95 % interval"), count("n"), text("vote"),
    )  # fmt: skip
    frame = found.votes.with_columns(vote=found.votes["votes"].replace_strict({True: "votes", False: "no vote"}))
    console.print(rich_table(Table("Does the test tell the ends of the ladder apart?", frame, columns=columns)))
    for test, why in found.votes.select("test", "why").iter_rows():
        console.print(f"[dim]{escaped(f'{test}: {why}')}[/]")
    print(f"figure: {figure}")
