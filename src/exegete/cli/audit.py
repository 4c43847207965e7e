"""Audit: the scorecard and the answer."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from exegete.cli.app import (
    Device,
    EngineName,
    Json,
    Out,
    Quiet,
    Workers,
    app,
    escaped,
    print_json,
    say_failures,
    show_summary,
)

if TYPE_CHECKING:
    from exegete.audits.scorecard import Audit


@app.command()
def audit(
    study: Annotated[
        str | None,
        typer.Argument(
            metavar="[STUDY|MODEL]", help="A TOML file or a built-in study; or a trained model, with TEXTS."
        ),
    ] = None,
    texts: Annotated[
        str | None, typer.Argument(help="A file of texts (.txt, .csv, .jsonl, …) for MODEL, with labels or without.")
    ] = None,
    task: Annotated[str | None, typer.Option(help="A task, with a model.")] = None,
    model: Annotated[str | None, typer.Option(help="A model's name with settings, or a checkpoint folder.")] = None,
    out: Out = None,
    criteria: Annotated[Path | None, typer.Option(help="Criteria of your own (TOML), over the built-in ones.")] = None,
    goal: Annotated[
        str, typer.Option(help="What for: faithful (which words it rests on), plausible (to a person) or sanity.")
    ] = "faithful",
    quick: Annotated[bool, typer.Option("--quick", help="One seed, at most 200 texts, no second training.")] = False,
    retrain: Annotated[
        bool, typer.Option("--retrain", help="Of a model of Hugging Face: also what needs further fine-tunings.")
    ] = False,
    scores: Annotated[
        list[str] | None,
        typer.Option(help="Scores of another tool (example, token, score), judged as one more method."),
    ] = None,
    fail_on: Annotated[
        str | None, typer.Option(help="Exit with 3 if one of these tests fails, or hangs on something: reads,ranks")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="With --fail-on: exit with 3 unless all hold.")] = False,
    definitions: Annotated[
        bool, typer.Option("--definitions", help="After the answer, say what every test asks and when it holds.")
    ] = False,
    workers: Workers = None,
    engine: EngineName = None,
    device: Device = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The scorecard: may attention be read as an explanation?"""
    _get_ahead(out, workers, engine)
    from exegete.audits import goals
    from exegete.audits.audit import Wanted, audit_study
    from exegete.audits.criteria import load_criteria
    from exegete.audits.gate import check, named_tests, refuse_unanswerable
    from exegete.base.errors import UsageError
    from exegete.report.terminal import ProgressBars
    from exegete.runs.estimate import Estimating
    from exegete.runs.objects import engine_for, model_named, task_of_texts
    from exegete.runs.remote import shown, worked_on
    from exegete.runs.store import is_address
    from exegete.runs.study import on

    aim = goals.goal(goal)
    named = None if study is None else model_named(study)
    if study is not None and (texts is not None or named is not None):
        if model is not None or task is not None:
            raise UsageError("name the model and its texts once: exegete audit MODEL TEXTS, or --model and --task")
        if named is None:
            raise UsageError(f"'{study}' is no trained model: give hf:NAME, own:file=… or a folder that holds one")
        model, task, study = named, task_of_texts(study, texts), None
    wanted = Wanted(model, task, study, quick, tuple(scores or ()), retrain=retrain)
    if strict and fail_on is None:
        raise UsageError("--strict says how --fail-on decides: name tests, as in --fail-on reads,ranks --strict")
    load_criteria(criteria)  # a file that isn't there is told before anything is read
    with worked_on(out if is_address(out) else wanted.folder(out)) as folder:
        asked = on(wanted.named(folder), device)
        needed = named_tests(fail_on, asked) if fail_on is not None else ()  # a study's plugins may have their own
        refuse_unanswerable(needed, asked)
        with ProgressBars(quiet) as bars:
            running = engine_for(asked, engine, workers)
            heard = bars if bars.quiet else Estimating(asked, folder, bars, running)
            found = audit_study(asked, folder, criteria, aim, running, heard)
        failures = _show_audit(found, as_json, definitions)
    told = Console(stderr=True, highlight=False, soft_wrap=True)
    for failure in failures if needed else ():  # before the gate, which may leave with a code of its own
        told.print(f"[yellow]note:[/] {escaped(failure)}")
    for doubt in check(found, needed, strict):
        told.print(f"[yellow]note:[/] {escaped(doubt)}")
    say_failures(failures, shown(folder))


def _get_ahead(out: str | None, workers: int | None, engine: str | None) -> None:
    """Let workers of this machine import while we do; not where the run is there already."""
    from exegete.base.processes import get_ahead

    is_there = out is not None and (Path(out) / "manifest.json").is_file()
    if not is_there and workers != 1 and engine in (None, "local"):
        get_ahead()


def _show_audit(found: "Audit", as_json: bool, definitions: bool) -> list[str]:
    """Print the scorecard and the answer, for machines or for people; these read them while the report is written.

    Returns what could not be shown, drawn or written, a sentence each: the answer is printed all the same.
    """
    from exegete.base.failures import noted
    from exegete.report.build import for_reader, notes, predictions, questions, write_report
    from exegete.runs.remote import shown
    from exegete.runs.run import read_manifest

    assert found.run is not None
    failures = list(read_manifest(found.run).get("failures", ()))
    page = None
    if as_json:
        with noted(failures, "the report can't be written"):
            page = shown(write_report(found.run, audit=found))
        beside = {"report": page, "notes": notes(found.run), "models": predictions(found.run)}
        print_json(found.to_json() | beside)
        return failures
    with noted(failures, "the summary can't be shown"):
        show_summary(found.run)
    console = Console(highlight=False)
    with noted(failures, "the scorecard can't be shown"):
        _show_scorecard(for_reader(found), console)
    console.print(f"\n[bold]For {escaped(found.user)}:[/]")
    console.print(f"{escaped(for_reader(found).answer)}\n")
    for line in questions(found) if definitions else ():
        console.print(f"[dim]{escaped(line)}[/]")
    sys.stdout.flush()
    with noted(failures, "the report can't be written"):
        page = shown(write_report(found.run, audit=found))
        print(f"report: {page}")
    return failures


def _show_scorecard(found: "Audit", console: Console) -> None:
    """What is open, then the scorecard, and the readings that were judged; the answer comes right below."""
    from exegete.report.build import scorecard
    from exegete.report.tables import rich_table
    from exegete.report.verdicts import DECIDES

    console.print()
    for line in (f"{test.name}: {test.settle or test.doubt}" for test in found.tests if test.verdict == "cannot tell"):
        console.print(f"[dim]{escaped(line)}[/]")
    for line in found.untested:
        console.print(f"[dim]{escaped(line)}[/]")
    console.print()
    console.print(rich_table(scorecard(found)))
    console.print(
        f"[dim]{DECIDES} decides: it holds, or fails, in every specification, at 5 %; failures are corrected for the "
        "number of tests, and so is all that informs (Holm). What every test asks: --definitions.[/]"
    )
    for told in found.reading_tables():
        console.print(rich_table(told.narrow))
