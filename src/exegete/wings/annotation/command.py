"""Annotate: sheets for people, and their answers."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from exegete.plugins import Json, escape, parse, print_json

annotate = typer.Typer(
    no_args_is_help=True,
    help="Ask people whether the words that attention ranks first are relevant to the prediction.",
)


@annotate.command("draw")
def annotate_draw(
    model: Annotated[Path, typer.Option(help="A checkpoint folder, or a run folder: its first model.")],
    out: Annotated[Path, typer.Option(help="Folder for the sheets and their key.")],
    task: Annotated[
        str | None, typer.Option(help="The task whose test texts are shown; the one it was trained on unless given.")
    ] = None,
    count: Annotated[
        int, typer.Option(min=1, help="Texts with original weights, and others with permuted ones.")
    ] = 100,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    top: Annotated[int, typer.Option(min=1, help="Words to highlight.")] = 3,
    form: Annotated[str, typer.Option("--format", help="html (one offline page), csv or both.")] = "html",
    prediction: Annotated[
        str, typer.Option(help="What permuted items show: the prediction under permuted or original weights.")
    ] = "permuted",
    labels: Annotated[str, typer.Option(help="What annotators call numbered classes: 0=baseball,1=hockey")] = "",
    as_json: Json = False,
) -> None:
    """Draw items for annotators, blind and shuffled, with the key that they must not see."""
    from exegete.wings.annotation.page import checked_format, write_sheets
    from exegete.wings.annotation.sample import Draw, draw_sample

    asked = Draw(count, top, seed, prediction, parse(f"labels:{labels}").settings)  # type: ignore[arg-type]
    wanted = checked_format(form)
    drawn = draw_sample(model, task, asked)
    written = write_sheets(out, drawn, wanted)
    key = out / "key.json"
    if as_json:
        sheets = [str(path) for path in written]
        print_json({"key": str(key), "id": drawn.key.id, "sheets": sheets, "notes": drawn.notes})
        return
    console = Console(highlight=False, soft_wrap=True)
    for note in drawn.notes:
        console.print(f"[yellow]note:[/] {escape(note)}")
    console.print(f"{len(drawn.items)} items, for annotators: {escape(', '.join(map(str, written)))}")
    console.print(f"which of them have permuted weights is in {escape(str(key))}: the annotators must not see it")


@annotate.command("read")
def annotate_read(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder with the key.")],
    sheets: Annotated[list[Path], typer.Argument(metavar="SHEET…", help="Filled-in CSV sheets or saved answers.")],
    out: Annotated[Path | None, typer.Option(help="Also write every answer beside its key (CSV).")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="An unfinished sheet is an error.")] = False,
    as_json: Json = False,
) -> None:
    """Read the answers back: 2 × 2 tables against correctness, shares with intervals, Cohen's κ."""
    from exegete.plugins import rich_table, write_text
    from exegete.wings.annotation.results import read_answers
    from exegete.wings.annotation.table import tables

    found = read_answers(folder, sheets, strict)
    if as_json:
        print_json(found.to_json())
    else:
        console = Console(highlight=False)
        for note in found.notes:
            console.print(f"[yellow]note:[/] {escape(note)}", soft_wrap=True)
        for table in tables(found):
            console.print()
            console.print(rich_table(table))
    if out is not None:
        write_text(out, found.frame.write_csv())
        if not as_json:
            print(f"answers: {out}")
