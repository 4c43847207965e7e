"""Calibrate: the audit on models whose truth is known."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from exegete.plugins import EngineName, Json, Quiet, WorkersOption, escape, print_json

if TYPE_CHECKING:
    from exegete.wings.calibration.calibrate import Calibration


def calibrate_command(
    draws: Annotated[int, typer.Option(min=1, help="Models of every family.")] = 60,
    family: Annotated[list[str] | None, typer.Option(help="Only this family of truths; repeat for several.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Only at the settings of the quick audit.")] = False,
    hub: Annotated[bool, typer.Option("--hf", help="Only at the settings of audits of Hugging Face models.")] = False,
    out: Annotated[Path, typer.Option(help="For the tables, the figure and the votes.")] = Path("runs/calibration"),
    criteria: Annotated[Path | None, typer.Option(help="Criteria of your own (TOML).")] = None,
    workers: WorkersOption = None,
    engine: EngineName = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """What does the audit answer of models whose truth is known? Goes on where it was stopped."""
    from exegete.plugins import ProgressBars, engine_of
    from exegete.wings.calibration.calibrate import CalibrationPlan, write_calibration
    from exegete.wings.calibration.calibrate import calibrate as calibrated
    from exegete.wings.calibration.draws import AUDITS
    from exegete.wings.calibration.families import check_family

    families = tuple(check_family(name) for name in family) if family else CalibrationPlan().families
    of_hub = [name for name in AUDITS if name.startswith("hf")]
    audits = of_hub if hub else list(AUDITS)
    wanted = CalibrationPlan(families, draws, tuple(audits[:1] if quick else audits), criteria)
    with ProgressBars(quiet) as bars:
        found = calibrated(wanted, out, engine_of(engine or "local", workers), bars)
    figure = write_calibration(found, wanted, out)
    if as_json:
        print_json(found.to_json() | {"figure": str(figure), "votes_file": str(out / "votes.toml")})
    else:
        _show(found, figure)


def _show(found: "Calibration", figure: Path) -> None:
    """Truth × answer by family, and the thresholds that the others would choose."""
    from exegete.plugins import Table, count, number, rich_table, text
    from exegete.wings.calibration.count import ANSWERS
    from exegete.wings.calibration.votes import vote_reason

    console, table = Console(highlight=False), found.table
    given = [count(answer) for answer in ANSWERS if table[answer].sum()]
    columns = (text("family"), count("n"), *given, count("open"), count("wrong"))
    for (audit,), part in table.partition_by(["audit"], as_dict=True, maintain_order=True).items():
        console.print(rich_table(Table(f"What the {audit} audit answers, by family", part, columns=columns)))
    columns = (text("family"), number("reads"), number("ranks"), count("n"), count("right"), count("wrong"))
    console.print(rich_table(Table("Thresholds that the other families choose", found.thresholds, columns=columns)))
    console.print(f"[dim]{escape(vote_reason(table))}[/]")
    print(f"figure: {figure}")
