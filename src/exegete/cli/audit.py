"""Audit: the scorecard and the answer."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
    WorkersOption,
    app,
    escape,
    print_json,
    say_failures,
    show_known_first,
    show_summary,
)

if TYPE_CHECKING:
    from exegete.answers.scorecard import Audit
    from exegete.base.progress import Progress
    from exegete.runs.engine.contract import Engine
    from exegete.runs.study import Study


@app.command("audit")
def audit_command(
    study: Annotated[
        str | None,
        typer.Argument(metavar="[STUDY|MODEL]", help="A study (TOML, or built in), or a model."),
    ] = None,
    texts: Annotated[str | None, typer.Argument(help="A file of texts for MODEL, labels or not.")] = None,
    task: Annotated[str | None, typer.Option(help="A task's name.")] = None,
    model: Annotated[str | None, typer.Option(help="A model's name, or its folder.")] = None,
    prompt: Annotated[
        str | None, typer.Option(help="For a language model: a template with {text}, or its file.")
    ] = None,
    out: Out = None,
    criteria: Annotated[Path | None, typer.Option(help="Criteria of your own (TOML).")] = None,
    goal: Annotated[str, typer.Option(help="What for: faithful, plausible or sanity.")] = "faithful",
    quick: Annotated[bool, typer.Option("--quick", help="In a minute: 200 texts, one training.")] = False,
    retrain: Annotated[bool, typer.Option("--retrain", help="With hf:…: fine-tune again, and ask more.")] = False,
    scores: Annotated[
        list[str] | None,
        typer.Option(help="Another tool's scores, as one more method."),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(help="Exit with 3 if one of these fails: reads,'grade<partly'."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="With --fail-on: all must hold.")] = False,
    most: Annotated[int | None, typer.Option("--texts", help="Ask so many texts at most; more can follow.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Ask more texts for so long at most.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show all tests, not only what decides.")] = False,
    definitions: Annotated[
        bool, typer.Option("--definitions", help="Say what every test asks, and when it holds.")
    ] = False,
    workers: WorkersOption = None,
    engine: EngineName = None,
    device: Device = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The scorecard: may attention be read as an explanation?"""
    _get_ahead(out, workers, engine)
    from exegete.answers import goals
    from exegete.answers.audit import run_audit
    from exegete.answers.gate import check_gate
    from exegete.answers.request import AuditRequest
    from exegete.base.errors import UsageError
    from exegete.runs.objects import model_named, prompted, task_of_texts
    from exegete.runs.remote import user_path

    aim = goals.goal(goal)
    named = None if study is None else model_named(study)
    if study is not None and (texts is not None or named is not None):
        if model is not None or task is not None:
            raise UsageError("name the model and its texts once: exegete audit MODEL TEXTS, or --model and --task")
        if named is None:
            raise UsageError(f"'{study}' is no trained model: give hf:NAME, own:file=… or a folder that holds one")
        model, task, study = named, task_of_texts(study, texts), None
    if prompt is not None:
        model = prompted(model or "", prompt)
    if strict and fail_on is None:
        raise UsageError("--strict says how --fail-on decides: name tests, as in --fail-on reads,ranks --strict")
    request = AuditRequest(
        model, task, study, quick, tuple(scores or ()), retrain=retrain, goal=aim, criteria=criteria, fail_on=fail_on,
        texts=most, minutes=minutes, out=out, engine=engine, workers=workers, device=device,
    )  # fmt: skip
    with run_audit(request, lambda *of: _listening(quiet, *of)) as (found, run, needed):
        failures = _show_audit(found, as_json, definitions, everything)
    told = Console(stderr=True, highlight=False, soft_wrap=True)
    for failure in failures if needed else ():  # before the gate, which may leave with a code of its own
        told.print(f"[yellow]note:[/] {escape(failure)}")
    for doubt in check_gate(found, needed, strict):
        told.print(f"[yellow]note:[/] {escape(doubt)}")
    say_failures(failures, user_path(run))


@contextmanager
def _listening(quiet: bool, study: "Study", run: Path, engine: "Engine") -> Iterator["Progress"]:
    """Bars, with a sentence on how long it will take."""
    from exegete.report.terminal import ProgressBars
    from exegete.runs.estimate import Estimating

    with ProgressBars(quiet) as bars:
        yield bars if quiet else Estimating(study, run, bars, engine)


def _get_ahead(out: str | None, workers: int | None, engine: str | None) -> None:
    """Let workers of this machine import while we do; not where the run is there already."""
    from exegete.base.processes import get_ahead

    is_there = out is not None and (Path(out) / "manifest.json").is_file()
    if not is_there and workers != 1 and engine in (None, "local"):
        get_ahead()


def _show_audit(found: "Audit", as_json: bool, definitions: bool, everything: bool) -> list[str]:
    """Print the scorecard and the answer, for machines or for people; these read them while the report is written.

    Returns what could not be shown, drawn or written, a sentence each: the answer is printed all the same.
    """
    from exegete.answers.pages.build import for_reader, predictions, questions_of_tests, run_notes, write_run_report
    from exegete.base.errors import note_failures
    from exegete.runs.remote import user_path
    from exegete.runs.run import read_manifest

    assert found.run is not None
    failures = list(read_manifest(found.run).get("failures", ()))
    page = None
    if as_json:
        with note_failures(failures, "the report can't be written"):
            page = user_path(write_run_report(found.run, audit=found))
        beside = {"report": page, "notes": run_notes(found.run), "models": predictions(found.run)}
        print_json(found.to_json() | beside)
        return failures
    with note_failures(failures, "the summary can't be shown"):
        (show_summary if everything else show_known_first)(found.run)
    console, told = Console(highlight=False), for_reader(found)
    with note_failures(failures, "the scorecard can't be shown"):
        _show_scorecard(told, console, everything)
    if found.goal != "faithful":
        console.print(f"\n[bold]For {escape(found.user)}:[/]")
    console.print(f"\n{_headed(told)}")
    for paragraph in told.findings if everything else ():
        console.print(f"\n{escape(paragraph)}")
    console.print()
    for line in questions_of_tests(found) if definitions else ():
        console.print(f"[dim]{escape(line)}[/]")
    sys.stdout.flush()
    with note_failures(failures, "the report can't be written"):
        page = user_path(write_run_report(found.run, audit=found))
        print(f"report: {page}")
    return failures


def _headed(told: "Audit") -> str:
    """The answer, its grade in bold where it is of one model."""
    label = next(iter(told.decisions.values())).label if len(told.decisions) == 1 else ""
    rest = told.answer.removeprefix(label)
    return f"[bold]{escape(label)}[/]{escape(rest)}" if label and rest != told.answer else escape(told.answer)


def _show_scorecard(told: "Audit", console: Console, everything: bool) -> None:
    """What decides, or all tests; the answer comes right below."""
    from exegete.answers.pages.build import informing, scorecards, unasked_tests
    from exegete.report.tables import rich_table

    for table in scorecards(told, everything):
        console.print()
        console.print(rich_table(table))
    if everything:
        _show_open(told, console)
        return
    console.print()
    if many := informing(told):
        more = f"{many} more tests inform: show them" if many > 1 else "One more test informs: show it"
        console.print(f"[dim]{more} with --all.[/]")
    if missing := unasked_tests(told):
        console.print(f"[dim]Not asked: {escape(', '.join(missing))}.[/]")


def _show_open(told: "Audit", console: Console) -> None:
    """How verdicts are made, what would settle those that are open, what was not tested and why, and the readings."""
    from exegete.experiments.tests import label_of
    from exegete.report.tables import rich_table

    console.print(
        "[dim]What decides holds, or fails, in every specification, at 5 %, with a tolerance of 0.03 to 0.05. "
        "Intervals of what informs are corrected for the number of tests (Holm). "
        "What every test asks: --definitions.[/]\n"
    )
    open_ = [
        f"{label_of(test.name)}: {test.settle or test.doubt}" for test in told.tests if test.verdict == "cannot tell"
    ]
    for line in (*open_, *told.untested):
        console.print(f"[dim]{escape(line)}[/]")
    for table in told.reading_tables():
        console.print()
        console.print(rich_table(table.narrow))
