"""What the pages say is true: commands parse, studies are valid, code imports, links lead somewhere."""

import ast
import re
import shlex
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

import pytest
import typer

import exegete
from exegete.cli import app
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.importance.catalogue import IMPORTANCES
from exegete.models.settings import MODELS
from exegete.runs.study import Study, load_study
from exegete.tasks.catalogue import ImdbTask, NewsgroupsTask, check_task
from exegete.tasks.files import FileTask
from exegete.tasks.hub import HubTask
from exegete.training.settings import TrainingSettings
from tests.docs.pages import PAGES, ROOT, Block, blocks

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def _named(block: Block) -> str:
    return block.where


def _quoted() -> list[tuple[str, str]]:
    """Every line of a block that calls exegete, there or in .venv, and every inline `exegete COMMAND …`."""
    told = [(b.where, line.removeprefix(".venv/bin/")) for b in blocks("") for line in b.text.splitlines()]
    lines = [(where, line) for where, line in told if line.startswith("exegete ")]
    for page in PAGES:
        prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf8"), flags=re.MULTILINE | re.DOTALL)
        lines += [(page.name, command) for command in re.findall(r"`(exegete [a-z]+[^`]*)`", prose)]
    return lines


def test_there_are_commands_on_the_pages() -> None:
    assert len(_quoted()) > 20


@pytest.mark.parametrize(("where", "line"), _quoted())
def test_a_quoted_command_parses(where: str, line: str) -> None:
    name, *arguments = shlex.split(line.partition("  #")[0])[1:]
    assert name in COMMANDS, f"{where}: {line}"
    if arguments:  # alone it is only a name
        parameters = COMMANDS[name].make_context(name, arguments).params
        _check_names(parameters.get("task"), parameters.get("model"), where)


def _check_names(task: object, model: object, where: str) -> None:
    """A task and a model with settings, not the patterns of `run`."""
    if isinstance(task, str):
        check_task(task)
    if isinstance(model, str) and "checkpoints/" not in model:
        MODELS.make(model)


@pytest.mark.parametrize("block", blocks("toml"), ids=_named)
def test_a_study_on_a_page_is_valid(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "examples")  # where its plugin is
    path = tmp_path / "study.toml"
    path.write_text(block.text, encoding="utf8")
    assert load_study(str(path)).cells


@pytest.mark.parametrize("block", blocks("python"), ids=_named)
def test_code_on_a_page_compiles_and_its_imports_exist(block: Block) -> None:
    for node in ast.walk(ast.parse(block.text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            module = import_module(node.module)
            assert all(hasattr(module, alias.name) for alias in node.names), block.where
        elif isinstance(node, ast.Import):
            for alias in node.names:
                import_module(alias.name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"


HISTORY = {"LOG.md", "CHANGELOG.md", "whats-changed-0.2.md"}  # these may name what is no more
PROSE = [page for page in PAGES if page.name not in HISTORY]


def _spoken(page: Path, pattern: str) -> set[str]:
    """What a page puts between backticks in its text."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf8"), flags=re.MULTILINE | re.DOTALL)
    return set(re.findall(rf"`({pattern})`", text))


@pytest.mark.parametrize("page", PROSE, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_file_that_a_page_names_is_there(page: Path) -> None:
    rooms = "src|docs|tests|tools|results|examples|benchmarks"
    for path in _spoken(page, rf"(?:{rooms})/[\w./-]+"):
        if not re.search(r"my_|NAME|PAPER", path):  # yours, or one of many
            assert (ROOT / path).exists(), path


@pytest.mark.parametrize("page", PROSE, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_name_of_ours_that_a_page_speaks_of_is_there(page: Path) -> None:
    for name in _spoken(page, r"exegete(?:\.\w+)+"):
        assert resolve_name(name) is not None


def test_the_reference_has_every_option() -> None:
    page = (ROOT / "docs/reference/command-line.md").read_text(encoding="utf8")
    for name, command in COMMANDS.items():
        section = page.partition(f"## exegete {name}\n")[2].partition("\n## ")[0]
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("-"):
                    assert f"`{option}" in section, f"{name} {option}"


@pytest.mark.parametrize("settings", [FileTask, HubTask, ImdbTask, NewsgroupsTask, TrainingSettings, Study])
def test_the_reference_has_every_setting(settings: type) -> None:
    page = (ROOT / "docs/reference/settings.md").read_text(encoding="utf8")
    for field in settings.model_fields:  # type: ignore[attr-defined]
        assert f"`{field}`" in page or f"[{field}]" in page, field


@pytest.mark.parametrize("name", [*MODELS])
def test_the_reference_has_every_setting_of_a_model(name: str) -> None:
    page = (ROOT / "docs/reference/settings.md").read_text(encoding="utf8").partition("## Models")[2]
    for field, facts in MODELS[name].load().model_fields.items():
        row = re.search(rf"^\| `{field}` \| (.*?) \|", page, re.MULTILINE)
        assert row, field
        default = "required" if facts.is_required() else facts.default
        told = re.findall(r"[\w.-]+", row[1])  # whole words: "" would be in any sentence
        assert default is None or str(default).lower() in told or (default == "" and told[0] in ("none", "required")), (
            field
        )


@pytest.mark.parametrize("name", [*EXPERIMENTS])
def test_the_reference_has_every_setting_of_an_experiment(name: str) -> None:
    page = (ROOT / "docs/reference/settings.md").read_text(encoding="utf8")
    for field in EXPERIMENTS[name].load().__dataclass_fields__:
        assert f"| `{field}` |" in page, field


@pytest.mark.parametrize("name", [*IMPORTANCES])
def test_the_reference_has_every_setting_of_an_importance(name: str) -> None:
    page = (ROOT / "docs/reference/settings.md").read_text(encoding="utf8")
    assert f"`{name}" in page
    for field in fields(IMPORTANCES[name].load()):  # class variables are no settings
        assert f"`{field.name}`" in page or f"`{field.name}=" in page, field.name


def test_the_citation_is_of_this_version() -> None:
    assert f"\nversion: {exegete.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf8")
