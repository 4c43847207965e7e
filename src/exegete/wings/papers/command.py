"""Reproduce: a paper's printed numbers beside ours."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from exegete.plugins import Device, EngineName, ExegeteError, Json, Quiet, UsageError, WorkersOption, escape, print_json

if TYPE_CHECKING:
    from exegete.wings.papers.reproduce import Reproduction


def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER[:TABLE]", help="A paper of `exegete ls papers`, or a table.")],
    kept: Annotated[
        Path | None, typer.Option("--from", help="Compare with the results kept in this folder; nothing is run.")
    ] = None,
    runs: Annotated[Path, typer.Option(help="Where studies are run, each in a folder of its name.")] = Path("runs"),
    out: Annotated[Path | None, typer.Option(help="For the comparison; runs/reproduce/PAPER unless given.")] = None,
    results: Annotated[Path | None, typer.Option(help="Also write the comparison to a file PAPER.csv there.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Also write the numbers into this page.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One seed, and the cheapest part of each study.")] = False,
    workers: WorkersOption = None,
    engine: EngineName = None,
    device: Device = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a paper's tables, or go on with them, and judge every printed number: reproduced or not?"""
    from exegete.plugins import ProgressBars, engine_of
    from exegete.wings.papers.reproduce import compare, find_tables, run_for, write_reproduction

    wanted, tables = find_tables(paper)
    _check(kept, quick)
    if kept is None:
        with ProgressBars(quiet) as bars:
            run_for(wanted, tables, runs, quick, engine_of(engine or "local", workers), bars, device)
    folder = kept or runs
    found = compare(wanted, tables, folder)
    path = write_reproduction(found, out or Path("runs") / "reproduce" / wanted.name, folder, quick)
    _write_also(found, path, results, markdown)
    if as_json:
        print_json(found.to_json() | {"table": str(path)})
    else:
        _show(found, path)


def _check(kept: Path | None, quick: bool) -> None:
    if kept is not None and quick:
        raise UsageError("--quick says what to run and --from that nothing is run: give one of them")
    if kept is not None and not kept.is_dir():
        raise ExegeteError(f"there is no folder {kept}: give one with a folder per study, as results/ has them")


def _write_also(found: "Reproduction", path: Path, results: Path | None, page: Path | None) -> None:
    """The comparison as one file, and as part of a page."""
    from exegete.plugins import whole_file, write_text
    from exegete.wings.papers.reproduction import BEGIN, END, into_page, markdown

    if results is not None:
        with whole_file(results / f"{found.paper.name}.csv") as beside:
            beside.write_bytes(path.read_bytes())
    if page is not None:
        text = page.read_text(encoding="utf8") if page.is_file() else f"{BEGIN}\n{END}\n"
        write_text(page, into_page(text, markdown(found.paper, found.frame)))


def _show(found: "Reproduction", path: Path) -> None:
    """The claim, the numbers, what has none of ours, what differs, and the rule."""
    from exegete.plugins import rich_table
    from exegete.wings.papers.reproduction import (
        RULE,
        comparison_tables,
        count_sentence,
        differences,
        left_over_table,
        trainings,
    )

    console = Console(highlight=False)
    paper = found.paper
    console.print(f"[bold]{escape(paper.title)}[/] ({escape(paper.authors)}, {paper.year})\n{escape(paper.claim)}\n")
    for table in (*comparison_tables(paper, found.frame), left_over_table(found.frame)):
        if not table.frame.is_empty():
            console.print(rich_table(table))
            console.print()
    drawn = [(name, figure) for name in found.tables for figure in paper.tables[name].figures]
    figures = [f"{name} is a figure: {figure}.svg of its studies" for name, figure in drawn]
    for line in (*differences(paper, found.frame), *figures):
        console.print(f"[dim]{escape(line)}[/]", soft_wrap=True)
    console.print(f"\n[bold]{escape(count_sentence(found.counts))}[/] {escape(trainings(found.frame))}", soft_wrap=True)
    for line in RULE:
        console.print(f"[dim]{escape(line)}[/]", soft_wrap=True)
    print(f"table: {path}")
