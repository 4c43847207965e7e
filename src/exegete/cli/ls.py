"""Ls: what there is."""

from importlib import resources
from typing import Annotated

import typer
from rich.console import Console

from exegete.base.catalogue import Catalogue, added_entries
from exegete.base.errors import unknown
from exegete.cli.app import Json, app, escape, print_json

SCHEMA = "schema"


def _catalogues() -> dict[str, dict[str, str]]:
    """What there is of every kind, by name, with a summary."""
    from exegete.experiments.catalogue import EXPERIMENTS
    from exegete.experiments.tests import all_tests
    from exegete.importance.catalogue import IMPORTANCES
    from exegete.interventions.catalogue import INTERVENTIONS
    from exegete.measures.catalogue import MEASURES
    from exegete.models.huggingface.architectures import listing
    from exegete.models.settings import MODELS
    from exegete.tasks.catalogue import TASKS

    kinds: dict[str, Catalogue] = {
        "tasks": TASKS,
        "models": MODELS,
        "importances": IMPORTANCES,
        "interventions": INTERVENTIONS,
        "measures": MEASURES,
        "experiments": EXPERIMENTS,
    }
    kinds |= {kind: entry.load() for kind, entry in added_entries("catalogues").items()}
    listed = {kind: {name: catalogue[name].summary for name in catalogue} for kind, catalogue in kinds.items()}
    return listed | {
        "architectures": listing(),
        "tests": {name: f"{test.label}: {test.question} ({test.source})" for name, test in all_tests().items()},
    }


@app.command("ls")
def ls(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="tasks, models, architectures, importances, interventions, measures, experiments, tests or papers; "
            "schema: of an audit's --json"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List what there is."""
    if kind == SCHEMA:
        print((resources.files("exegete.answers") / "answer.schema.json").read_text(encoding="utf8"), end="")
        return
    found = _catalogues()
    if kind is not None and kind not in found:
        raise unknown("kind", kind, [*found, SCHEMA])
    if as_json:
        entries = {
            k: [{"name": n, "summary": s} for n, s in things.items()]
            for k, things in found.items()
            if kind in (None, k)
        }
        print_json(entries[kind] if kind else entries)
        return
    console = Console(highlight=False)
    for title, things in found.items():
        if kind in (None, title):
            console.print(f"[bold]{title}[/]")
            width = max(map(len, things), default=0)
            for name, summary in things.items():
                console.print(f"  [cyan]{name:{width}}[/]  {escape(summary)}", soft_wrap=True)
