"""Explain: heat maps for one prediction."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from exegete.base.errors import UsageError
from exegete.cli.app import Device, Json, Quiet, app, print_json


@app.command("explain")
def explain_command(
    text: Annotated[str | None, typer.Argument(help="The text, in quotes.")] = None,
    file: Annotated[Path | None, typer.Option(help="A file with one text per line, instead of TEXT.")] = None,
    diff: Annotated[
        str | None, typer.Option(help="A second text: both side by side, for the class of the first.")
    ] = None,
    question: Annotated[str | None, typer.Option(help="What is asked of the text, for a model of pairs.")] = None,
    model: Annotated[str | None, typer.Option(help="A checkpoint folder or hf:NAME; else the default audit's.")] = None,
    prompt: Annotated[
        str | None, typer.Option(help="How a language model is asked for a class: a template with {text}, or a file.")
    ] = None,
    run: Annotated[str | None, typer.Option(help="A run or address whose model and leaderboard are taken.")] = None,
    methods: Annotated[
        list[str] | None, typer.Option("--with", help="Only these methods: gradient:norm=l2,lrp; may be repeated.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="The class, or the next word, to explain_command; the predicted one unless given."),
    ] = None,
    contrast: Annotated[
        str | None, typer.Option(help="The class that it is set against: why the one and not the other?")
    ] = None,
    of: Annotated[str, typer.Option(help="What is explained: logit or probability.")] = "logit",
    step: Annotated[
        int, typer.Option(help="Of a translator: which word of its output is explained, counted from 1.")
    ] = 1,
    by: Annotated[str, typer.Option(help="What is shaded: word, sentence, or a translator's pieces (piece).")] = "word",
    html: Annotated[Path | None, typer.Option(help="Also write the heat maps to this HTML file.")] = None,
    no_color: Annotated[bool, typer.Option("--no-color", help="Marks instead of colours.")] = False,
    device: Device = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Heat maps of all methods for one prediction, and whether attention may be read here."""
    from exegete.answers.explain import explain_all
    from exegete.answers.pages.explanations import show, show_difference, write_page
    from exegete.answers.question import Word, methods_in, quantity, read_texts, unit
    from exegete.base.device import on_device
    from exegete.report.terminal import ProgressBars
    from exegete.runs.objects import prompted
    from exegete.runs.remote import fetch_run
    from exegete.runs.store import is_address

    if (text is None) == (file is None):
        raise UsageError("give either a text in quotes or --file with one text per line")
    if diff is not None and text is None:
        raise UsageError("--diff compares two texts: give the first in quotes, not as --file")
    wanted = [method for written in methods for method in methods_in(written)] if methods else None
    classes = Word(step, target, contrast)
    shaded, explained = unit(by), quantity(of)
    texts = [text] if text is not None else read_texts(file or Path())
    asked = [each if question is None else (each, question) for each in texts]
    if prompt is not None:
        model = prompted(model or "", prompt)
    known = None if run is None else fetch_run(run)
    by_name = str(fetch_run(model)) if is_address(model) else model
    with on_device(device), ProgressBars(quiet) as bars:
        found = explain_all(by_name, asked, wanted, classes, explained, known, bars)
        if diff is not None:
            second = diff if question is None else (diff, question)
            classes = classes._replace(target=found[0].target)
            found += explain_all(by_name, [second], wanted, classes, explained, known, bars)
    if diff is not None:
        apart = found[0].difference(found[1], shaded)
        print_json(apart.to_json()) if as_json else show_difference(apart, Console(highlight=False))
    elif as_json:
        said = [each.to_json(shaded) for each in found]
        print_json(said if text is None else said[0])
    else:
        show(found, shaded, Console(highlight=False, no_color=no_color or None))
    if html is not None:  # last: a place that can't be written must not cost the answer
        write_page(html, found, shaded)
        if not as_json:
            print(f"heat maps: {html}")
