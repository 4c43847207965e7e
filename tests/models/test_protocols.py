"""Outside models/, a model is known by protocols alone: what it can do, never which class it is."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

from torch import nn

import exegete
from exegete.models.own.adapter import OwnModel

SOURCE = Path(exegete.__file__).parent
FILES = sorted(path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] != "models")
ADAPTERS = (OwnModel,)  # what users write is no model of ours: `exegete.wrap` takes it by its class


def model_classes(tree: ast.Module) -> dict[str, type]:
    """Classes of models/, no protocols, that a file imports, by the name that it gives them."""
    found: dict[str, type] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("exegete.models"):
            for alias in node.names:
                thing = getattr(importlib.import_module(str(node.module)), alias.name)
                if (
                    isinstance(thing, type)
                    and issubclass(thing, nn.Module)
                    and not getattr(thing, "_is_protocol", False)
                ):
                    found[alias.asname or alias.name] = thing
    return found


def asked(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """What `isinstance` and `issubclass` are asked about, with the line."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            for name in ast.walk(node.args[1]):
                if isinstance(name, ast.Name):
                    yield node.lineno, name.id


def wrong(text: str) -> list[str]:
    """Every question for a class of models, as "line: class"."""
    tree = ast.parse(text)
    classes = {name for name, thing in model_classes(tree).items() if thing not in ADAPTERS}
    return [f"{line}: {name}" for line, name in asked(tree) if name in classes]


def test_no_room_asks_for_the_class_of_a_model() -> None:
    found = {str(path): asks for path in FILES if (asks := wrong(path.read_text(encoding="utf8")))}
    assert not found


def test_a_question_for_a_class_is_found() -> None:
    text = "from exegete.models.ours.pair import Pair as P\nisinstance(x, int | P)\nisinstance(x, (str, int))"
    assert wrong(text) == ["2: P"]
    assert not wrong("from exegete.models.capabilities import Writing\nisinstance(x, Writing)")
