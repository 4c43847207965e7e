"""Words: how important a word is on average over many texts, by attention and by other methods."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import exegete as ex
from exegete.base.errors import UsageError
from exegete.cli.app import Device, Json, Quiet, app, print_json


@app.command("words")
def words_command(
    folder: Annotated[Path | None, typer.Argument(metavar="[RUN]", help="A run folder whose scores are taken.")] = None,
    model: Annotated[str | None, typer.Option(help="Instead of a run: a checkpoint folder or hf:NAME.")] = None,
    task: Annotated[str | None, typer.Option(help="With --model: the task whose texts are scored.")] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option("--with", help="Only these methods, beside attention: gradient:norm=l2,lrp; may be repeated."),
    ] = None,
    split: Annotated[str, typer.Option(help="With --model: the texts of which split.")] = "test",
    texts: Annotated[
        int | None,
        typer.Option(min=1, help="How many texts: 500 with --model; of a run whose texts are too few, 4000 at most."),
    ] = None,
    cell: Annotated[int, typer.Option(min=0, help="Which model of a run, counted from 0.")] = 0,
    least: Annotated[int, typer.Option(min=1, help="Texts that a word must be in.")] = 5,
    rows: Annotated[int, typer.Option(min=1, help="Words that the table shows.")] = 20,
    csv: Annotated[Path | None, typer.Option(help="Also write all words_command here.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Also draw attention against the first method: .svg.")] = None,
    device: Device = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The importance of a word averaged over a data set, by attention and by other methods, with intervals."""
    from exegete.answers.pages.words import MOST, TEXTS, enough_words
    from exegete.answers.question import methods_in
    from exegete.base.device import on_device
    from exegete.base.files import write_text
    from exegete.report.terminal import ProgressBars
    from exegete.report.theme import to_svg

    if (folder is None) == (model is None) or (model is None) != (task is None):
        raise UsageError("give either a run folder, or --model and --task")
    if figure is not None and figure.suffix != ".svg":
        raise UsageError(f"'{figure.name}' is no kind of file that can be drawn: choose a name that ends in .svg")
    wanted = [method for written in methods or () for method in methods_in(written)]
    with on_device(device), ProgressBars(quiet) as bars:
        if model is not None and task is not None:
            found = ex.words(model, task, wanted, split, texts=texts or TEXTS, least=least, progress=bars)
        else:
            found = enough_words(folder or Path(), least, cell, wanted, texts or MOST, bars)
    if csv is not None:
        found.save(csv)
    if figure is not None:
        write_text(figure, to_svg(found.figure()))
    if as_json:
        print_json(found.to_json())
        return
    from exegete.report.tables import rich_table

    Console(highlight=False).print(rich_table(found.most(rows)))
    for path in filter(None, (csv, figure)):
        print(f"{'words' if path == csv else 'figure'}: {path}")
