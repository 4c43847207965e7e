"""What is in the box: everything that has a name, from the catalogues."""

import tomllib
from collections.abc import Iterable
from pathlib import Path

import typer

from exegete.cli import app
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.tests import built_in_tests
from exegete.importance.catalogue import IMPORTANCES
from exegete.interventions.catalogue import INTERVENTIONS
from exegete.measures.catalogue import MEASURES
from exegete.models.projections import PROJECTIONS
from exegete.models.settings import MODELS
from exegete.tasks.catalogue import TASKS
from exegete.wings.papers.catalogue import PAPERS
from tools.pages.place import ROOT, to
from tools.pages.table import markdown_table

LIBRARY = "src/exegete/runs/library"
READERS = ("file:PATH", "hf:OWNER/NAME", "parallel:PATH")  # of any data


def box(page: Path) -> str:
    """Kinds of things, their names, and where to read on."""
    commands: Iterable[str] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    rows: list[tuple[str, Iterable[str], str, str]] = [
        ("commands", commands, "all options", "reference/command-line.md"),
        ("tasks", (*TASKS, *READERS), "your own texts", "how-to/own-data.md"),
        ("models", MODELS, "your own module", "own-model.md"),
        ("projections", PROJECTIONS, "settings", "reference/settings.md"),
        ("interventions", INTERVENTIONS, "your own", "how-to/add-an-intervention.md"),
        ("importances", IMPORTANCES, "your own", "how-to/add-an-importance.md"),
        ("measures", MEASURES, "your own", "how-to/add-a-measure.md"),
        ("experiments", EXPERIMENTS, "your own", "how-to/add-an-experiment.md"),
        ("tests of the audit", built_in_tests(), "your own", "how-to/add-a-test.md"),
        ("papers", PAPERS, "printed beside ours", "how-to/reproduce.md"),
    ]
    lines = [
        (kind, ", ".join(f"`{name}`" for name in names), f"[{said}]({to(f'docs/{where}', page)})")
        for kind, names, said, where in rows
    ]
    return markdown_table(("kind", "names", "more"), lines)


def studies() -> str:
    """The studies that come with Exegete, by name and title."""
    lines = [
        (f"`{path.stem}`", tomllib.loads(path.read_text(encoding="utf8"))["title"])
        for path in sorted((ROOT / LIBRARY).glob("*.toml"))
    ]
    return markdown_table(("name", "what it asks"), lines)
