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
from exegete.models.huggingface.prompts import read_prompt
from exegete.models.settings import MODELS
from exegete.runs.study import Study, load_study
from exegete.tasks.catalogue import ImdbTask, NewsgroupsTask, check_task
from exegete.tasks.files import FileTask
from exegete.tasks.hub import HubTask
from exegete.training.settings import TrainingSettings
from tests.docs.pages import PAGES, ROOT, blocks, shown_at

OWN = [*EXPERIMENTS], [*IMPORTANCES]  # before studies on pages bring their plugins
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


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


def test_quoted_commands_parse() -> None:
    for where, line in _quoted():
        name, *arguments = shlex.split(line.partition("  #")[0])[1:]
        assert name in COMMANDS, f"{where}: {line}"
        if arguments:  # alone it is only a name
            with shown_at(f"{where}: {line}"):
                parameters = COMMANDS[name].make_context(name, arguments).params
                _check_names(parameters.get("task"), parameters.get("model"))


def _check_names(task: object, model: object) -> None:
    """A task and a model with settings, not the patterns of `run`."""
    if isinstance(task, str):
        check_task(task)
    if isinstance(model, str) and "checkpoints/" not in model:
        MODELS.make(model)


PROMPTS = [block for block in blocks("toml") if block.text.startswith("template")]
STUDIES = [block for block in blocks("toml") if block not in PROMPTS]


def test_prompts_on_pages_are_valid(tmp_path: Path) -> None:
    path = tmp_path / "prompt.toml"
    for block in PROMPTS:
        path.write_text(block.text, encoding="utf8")
        with shown_at(block.where):
            assert read_prompt(str(path)).answers


def test_studies_on_pages_are_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "examples")  # where its plugin is
    path = tmp_path / "study.toml"
    for block in STUDIES:
        path.write_text(block.text, encoding="utf8")
        with shown_at(block.where):
            assert load_study(str(path)).cells


def test_code_on_pages_compiles_and_its_imports_exist() -> None:
    for block in blocks("python"):
        with shown_at(block.where):
            for node in ast.walk(ast.parse(block.text)):
                if isinstance(node, ast.ImportFrom) and node.module:
                    module = import_module(node.module)
                    assert all(hasattr(module, alias.name) for alias in node.names)
                elif isinstance(node, ast.Import):
                    for alias in node.names:
                        import_module(alias.name)


def test_relative_links_lead_somewhere() -> None:
    links = [(page, target) for page in PAGES for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", _text(page))]
    assert len(links) > 100
    assert [(p.name, target) for p, target in links if "://" not in target and not (p.parent / target).exists()] == []


HISTORY = {"LOG.md", "CHANGELOG.md", "whats-changed-0.2.md"}  # these may name what is no more
PROSE = [page for page in PAGES if page.name not in HISTORY]


def _text(page: Path) -> str:
    return page.read_text(encoding="utf8")


def _spoken(pattern: str) -> set[tuple[str, str]]:
    """What pages put between backticks in their text, each with its page."""
    prose = {p: re.sub(r"^```.*?^```$", "", _text(p), flags=re.MULTILINE | re.DOTALL) for p in PROSE}
    return {(page.name, found) for page, text in prose.items() for found in re.findall(rf"`({pattern})`", text)}


def test_files_that_pages_name_are_there() -> None:
    named = _spoken(r"(?:src|docs|tests|tools|results|examples|benchmarks)/[\w./-]+")
    assert len(named) > 20
    yours = re.compile(r"my_|NAME|PAPER")  # or one of many
    assert [(page, path) for page, path in named if not yours.search(path) and not (ROOT / path).exists()] == []


def test_names_of_ours_that_pages_speak_of_are_there() -> None:
    for page, name in _spoken(r"exegete(?:\.\w+)+"):
        with shown_at(page):
            assert resolve_name(name) is not None


def test_the_reference_has_every_option() -> None:
    page = (ROOT / "docs/reference/command-line.md").read_text(encoding="utf8")
    for name, command in COMMANDS.items():
        section = page.partition(f"## exegete {name}\n")[2].partition("\n## ")[0]
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("-"):
                    assert f"`{option}" in section, f"{name} {option}"


SETTINGS = ROOT / "docs/reference/settings.md"


def test_the_reference_has_every_setting_of_tasks_trainings_and_studies() -> None:
    page = _text(SETTINGS)
    for settings in (FileTask, HubTask, ImdbTask, NewsgroupsTask, TrainingSettings, Study):
        assert [f for f in settings.model_fields if f"`{f}`" not in page and f"[{f}]" not in page] == [], settings


def test_the_reference_has_every_setting_of_models_with_its_default() -> None:
    page = _text(SETTINGS).partition("## Models")[2]
    for name in MODELS:
        for field, facts in MODELS[name].load().model_fields.items():
            row = re.search(rf"^\| `{field}` \| (.*?) \|", page, re.MULTILINE)
            assert row, f"{name}: {field}"
            default = "required" if facts.is_required() else facts.default
            words = re.findall(r"[\w.-]+", row[1])  # whole words: "" would be in any sentence
            unset = default == "" and words[0] in ("none", "required")
            assert default is None or str(default).lower() in words or unset, f"{name}: {field}"


def test_the_reference_has_every_setting_of_experiments() -> None:
    page = _text(SETTINGS)
    for name in OWN[0]:
        assert [f for f in EXPERIMENTS[name].load().__dataclass_fields__ if f"| `{f}` |" not in page] == [], name


def test_the_reference_has_every_setting_of_importances() -> None:
    page = _text(SETTINGS)
    for name in OWN[1]:
        assert f"`{name}" in page
        names = [field.name for field in fields(IMPORTANCES[name].load())]  # class variables are no settings
        assert [field for field in names if f"`{field}`" not in page and f"`{field}=" not in page] == [], name


def test_the_citation_is_of_this_version() -> None:
    assert f"\nversion: {exegete.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf8")
