"""The front door: `exegete ls | train | explain | run | report | audit | annotate`.

Nothing heavy is imported before a command needs it, so that help and listings answer at once.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console

from exegete import __version__
from exegete.base.errors import ExegeteError, UsageError, unknown
from exegete.base.names import Catalogue, parse

if TYPE_CHECKING:
    from exegete.studies.audit import Audit

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="May I read this model's attention as an explanation of its predictions, and if not, what should I read?",
)

annotate = typer.Typer(
    no_args_is_help=True,
    help="Ask people whether the words that attention ranks first are relevant to the prediction.",
)
app.add_typer(annotate, name="annotate")

STOPPED = 130  # what a shell expects after Ctrl-C

Json = Annotated[bool, typer.Option("--json", help="For machines: standard output holds only JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Worker processes; one per core unless given.")]


def main() -> None:
    """Run a command; what goes wrong is one sentence and an exit code."""
    try:
        code = app(standalone_mode=False)  # typer returns the code of an Exit, and 130 after Ctrl-C
    except ExegeteError as error:
        _stop(str(error), error.exit_code)
    except KeyboardInterrupt:
        code = STOPPED
    except MemoryError:
        _stop("not enough memory: use a smaller batch, fewer workers (--workers 1) or a length limit (max_length=…)", 1)
    except Exception as error:
        said = getattr(error, "format_message", None)
        if said is None:
            raise  # a defect of ours: its traceback is what we need to see
        _stop(f"{said().rstrip('.')} (see exegete COMMAND --help)", 2)  # typer's own: wrong option or argument
    if code == STOPPED:
        _stop("stopped; the same command goes on where it was", STOPPED)
    sys.exit(code if isinstance(code, int) else 0)


def _stop(sentence: str, code: int) -> NoReturn:
    Console(stderr=True, soft_wrap=True, highlight=False).print(f"[bold red]error:[/] {_escaped(sentence)}")
    sys.exit(code)


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False))


def _version(asked: bool) -> None:
    if asked:
        print(f"exegete {__version__}")
        raise typer.Exit


@app.callback()
def _front(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def _catalogues() -> dict[str, dict[str, str]]:
    """What there is of every kind, by name, with a summary."""
    from exegete.experiments.catalogue import EXPERIMENTS
    from exegete.importance.catalogue import IMPORTANCES
    from exegete.interventions.catalogue import INTERVENTIONS
    from exegete.measures.catalogue import MEASURES
    from exegete.models.settings import MODELS
    from exegete.studies.papers import PAPERS
    from exegete.tasks.catalogue import TASKS

    kinds: dict[str, Catalogue] = {
        "tasks": TASKS,
        "models": MODELS,
        "importances": IMPORTANCES,
        "interventions": INTERVENTIONS,
        "measures": MEASURES,
        "experiments": EXPERIMENTS,
        "papers": PAPERS,
    }
    return {kind: {name: catalogue[name].summary for name in catalogue} for kind, catalogue in kinds.items()}


@app.command("ls")
def ls(
    kind: Annotated[
        str | None, typer.Argument(help="tasks, models, importances, interventions, measures, experiments or papers")
    ] = None,
    as_json: Json = False,
) -> None:
    """List what there is."""
    found = _catalogues()
    if kind is not None and kind not in found:
        raise unknown("kind", kind, found)
    if as_json:
        entries = {
            k: [{"name": n, "summary": s} for n, s in things.items()]
            for k, things in found.items()
            if kind in (None, k)
        }
        _print_json(entries[kind] if kind else entries)
        return
    console = Console(highlight=False)
    for title, things in found.items():
        if kind in (None, title):
            console.print(f"[bold]{title}[/]")
            width = max(map(len, things), default=0)
            for name, summary in things.items():
                console.print(f"  [cyan]{name:{width}}[/]  {_escaped(summary)}", soft_wrap=True)


@app.command()
def train(
    task: Annotated[
        str, typer.Option(help="rotten_tomatoes, file:reviews.csv, hf:owner/name, with settings: imdb:subset=jw")
    ],
    model: Annotated[
        str, typer.Option(help="bilstm, pair, translator, … (see ls models), with settings: bilstm:attention=dot")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the checkpoint.")],
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    training: Annotated[str, typer.Option(help="Training settings: epochs=8,lr=1e-3,metric=auc,…")] = "",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a model and keep it as a checkpoint folder."""
    from exegete.report.terminal import ProgressBars
    from exegete.studies.training import train_model

    with ProgressBars(quiet or as_json) as bars:
        checkpoint, notes = train_model(task, model, seed, training, out, bars)
    test = checkpoint.metrics["test"]
    if as_json:
        said = {
            "test_accuracy": test["accuracy"],
            "checkpoint": str(out),
            "metrics": checkpoint.metrics,
            "notes": notes,
        }
        _print_json(said)
        return
    console = Console(highlight=False, soft_wrap=True)
    for note in notes:
        console.print(f"[yellow]note:[/] {_escaped(note)}")
    best = checkpoint.metrics["best_epoch"]
    console.print(f"test accuracy {test['accuracy']:.3f} (best epoch {best}); checkpoint in {out}")


@app.command()
def run(
    study: Annotated[str, typer.Argument(help="A TOML file, or the name of a built-in study.")],
    out: Annotated[Path | None, typer.Option(help="Run folder; runs/NAME unless given.")] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only these tasks (patterns).")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only these models (patterns, as '*sparsemax*').")] = None,
    seed: Annotated[list[int] | None, typer.Option(help="Only these seeds.")] = None,
    workers: Workers = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a study, or go on with it: models, scores, experiments, tables, figures, report."""
    from exegete.report.build import write_report
    from exegete.report.terminal import ProgressBars
    from exegete.studies.engine import LocalEngine
    from exegete.studies.run import run_study
    from exegete.studies.study import load_study, narrowed

    loaded = load_study(study)
    cells = narrowed(loaded, task or [], model or [], seed or [])
    folder = out or Path("runs") / loaded.name
    with ProgressBars(quiet or as_json) as bars:
        run_study(loaded, folder, cells, LocalEngine(workers) if workers else None, bars)
    page = write_report(folder)
    if as_json:
        _print_json({"run": str(folder), "report": str(page), "cells": len(cells)})
    else:
        _show_summary(folder)
        print(f"report: {page}")


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    out: Annotated[Path | None, typer.Option(help="The HTML file; RUN/report.html unless given.")] = None,
    results: Annotated[Path | None, typer.Option(help="Also copy tables, figures and manifest here.")] = None,
    as_json: Json = False,
) -> None:
    """Write a run's report: one HTML file that works offline."""
    from exegete.report.build import keep_results, write_report

    page = write_report(folder, out)
    if results is not None:
        keep_results(folder, results)
    if as_json:
        _print_json({"report": str(page)})
    else:
        print(f"report: {page}")


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
        _print_json(found.to_json() | beside)
        return
    console = Console(highlight=False)
    _show_summary(found.run)
    console.print()
    console.print(rich_table(scorecard(found)))
    console.print("[dim]The intervals of the scorecard hold jointly at 95 %.[/]\n")
    for line in questions(found):
        console.print(f"[dim]{_escaped(line)}[/]")
    console.print(f"\n{_escaped(found.answer)}\n")
    print(f"report: {page}")


@app.command()
def explain(
    text: Annotated[str | None, typer.Argument(help="The text, in quotes.")] = None,
    file: Annotated[Path | None, typer.Option(help="A file with one text per line, instead of TEXT.")] = None,
    question: Annotated[str | None, typer.Option(help="What is asked of the text, for a model of pairs.")] = None,
    model: Annotated[str | None, typer.Option(help="A checkpoint folder; else the default audit's.")] = None,
    run: Annotated[Path | None, typer.Option(help="A run whose model and leaderboard are taken.")] = None,
    methods: Annotated[
        list[str] | None, typer.Option("--with", help="Only these methods: gradient:norm=l2,lrp; may be repeated.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="The class to explain; the predicted one unless given.")] = None,
    of: Annotated[str, typer.Option(help="What is explained: logit or probability.")] = "logit",
    by: Annotated[str, typer.Option(help="What is shaded: word or sentence.")] = "word",
    html: Annotated[Path | None, typer.Option(help="Also write the heat maps to this HTML file.")] = None,
    no_color: Annotated[bool, typer.Option("--no-color", help="Marks instead of colours.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Heat maps of all methods for one prediction, and whether attention may be read here."""
    from exegete.report.explanations import show, write_page
    from exegete.report.terminal import ProgressBars
    from exegete.studies.explaining import explain_all
    from exegete.studies.questions import methods_in, quantity, texts_of, unit

    if (text is None) == (file is None):
        raise UsageError("give either a text in quotes or --file with one text per line")
    wanted = [method for written in methods for method in methods_in(written)] if methods else None
    shaded, explained = unit(by), quantity(of)
    texts = [text] if text is not None else texts_of(file or Path())
    asked = [each if question is None else (each, question) for each in texts]
    with ProgressBars(quiet or as_json) as bars:
        found = explain_all(model, asked, wanted, target, explained, run, bars)
    if as_json:
        said = [each.to_json(shaded) for each in found]
        _print_json(said if text is None else said[0])
    else:
        show(found, shaded, Console(highlight=False, no_color=no_color or None))
    if html is not None:  # last: a place that can't be written must not cost the answer
        write_page(html, found, shaded)
        if not as_json:
            print(f"heat maps: {html}")


@annotate.command("draw")
def annotate_draw(
    model: Annotated[Path, typer.Option(help="A checkpoint folder.")],
    task: Annotated[str, typer.Option(help="The task whose test texts are shown.")],
    out: Annotated[Path, typer.Option(help="Folder for the sheets and their key.")],
    count: Annotated[
        int, typer.Option(min=1, help="Texts with original weights, and others with permuted ones.")
    ] = 100,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    top: Annotated[int, typer.Option(min=1, help="Words to highlight.")] = 3,
    form: Annotated[str, typer.Option("--format", help="html (one offline page), csv or both.")] = "html",
    prediction: Annotated[
        str, typer.Option(help="What permuted items show: the prediction under permuted or original weights.")
    ] = "permuted",
    labels: Annotated[str, typer.Option(help="What annotators call the classes: 0=negative,1=positive")] = "",
    as_json: Json = False,
) -> None:
    """Draw items for annotators, blind and shuffled, with the key that they must not see."""
    from exegete.report.annotation import checked_format, write_sheets
    from exegete.studies.annotating import Draw, draw

    asked = Draw(count, top, seed, prediction, parse(f"labels:{labels}").settings)  # type: ignore[arg-type]
    wanted = checked_format(form)
    drawn = draw(model, task, asked)
    written = write_sheets(out, drawn, wanted)
    key = out / "key.json"
    if as_json:
        sheets = [str(path) for path in written]
        _print_json({"key": str(key), "id": drawn.key.id, "sheets": sheets, "notes": drawn.notes})
        return
    console = Console(highlight=False, soft_wrap=True)
    for note in drawn.notes:
        console.print(f"[yellow]note:[/] {_escaped(note)}")
    console.print(f"{len(drawn.items)} items, for annotators: {_escaped(', '.join(map(str, written)))}")
    console.print(f"which of them have permuted weights is in {_escaped(str(key))}: the annotators must not see it")


@annotate.command("read")
def annotate_read(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder with the key.")],
    sheets: Annotated[list[Path], typer.Argument(metavar="SHEET…", help="Filled-in CSV sheets or saved answers.")],
    out: Annotated[Path | None, typer.Option(help="Also write every answer beside its key (CSV).")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="An unfinished sheet is an error.")] = False,
    as_json: Json = False,
) -> None:
    """Read the answers back: 2 × 2 tables against correctness, shares with intervals, Cohen's κ."""
    from exegete.base.files import write_text
    from exegete.report.annotated import tables
    from exegete.report.tables import rich_table
    from exegete.studies.annotated import read_answers

    found = read_answers(folder, sheets, strict)
    if as_json:
        _print_json(found.to_json())
    else:
        console = Console(highlight=False)
        for note in found.notes:
            console.print(f"[yellow]note:[/] {_escaped(note)}", soft_wrap=True)
        for table in tables(found):
            console.print()
            console.print(rich_table(table))
    if out is not None:
        write_text(out, found.frame.write_csv())
        if not as_json:
            print(f"answers: {out}")


def _show_summary(folder: Path) -> None:
    """What must be known first (the data, how well the models predict), then what each experiment found."""
    from exegete.report.build import headlines, notes, predictions
    from exegete.report.tables import rich_table

    console = Console(highlight=False)
    for note in notes(folder):
        console.print(f"[yellow]note:[/] {_escaped(note)}")
    for line in predictions(folder):
        console.print(_escaped(line))
    for table in headlines(folder):
        console.print()
        console.print(rich_table(table))
