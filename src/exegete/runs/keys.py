"""Keys: a stage is named by the content that determines it, its code included, so that no stale result can answer."""

import ast
import hashlib
import importlib.util
import inspect
import json
import re
from functools import cache
from pathlib import Path
from typing import Any


def key_of(**content: Any) -> str:
    """A fingerprint of settings and hashes."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:16]


# How a result is shown, or judged, doesn't determine it.
DRAWING = re.compile(r"exegete\.page\.|exegete\.experiments\..*(figure|section|tests)$")
BY_NAME = "exegete.interventions.catalogue"  # its things are used without an import that shows them


@cache
def code_hash(module: str) -> str:
    """A fingerprint of a module's source and of all that it imports from its own package, in the end, but drawing."""
    sources = {name: _path(name).read_bytes() for name in sorted(_reached(module)) if not DRAWING.match(name)}
    digest = hashlib.sha256()
    for name, source in sources.items():
        digest.update(name.encode() + b"\0" + source)
    return digest.hexdigest()[:16]


def _reached(module: str) -> set[str]:
    root = module.partition(".")[0]
    reached: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += [found for found in _imports(name) if found.partition(".")[0] == root]
    return reached


@cache
def _path(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ImportError(f"{module} has no source")
    return Path(spec.origin)


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # the parent is a module, not a package: the name is something inside it
        return False


@cache
def _imports(module: str) -> frozenset[str]:
    """Modules of its own package that a module's source imports, also inside functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(_path(module).read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    if module == BY_NAME:  # who can name an intervention depends on all of them
        found |= {
            node.value.partition(":")[0]
            for node in ast.walk(ast.parse(_path(module).read_bytes()))
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and ":" in node.value
        }
    # The package's root is left out: it is the front door, which opens to every room, and determines nothing.
    inside = f"{module.partition('.')[0]}."
    return frozenset(name for name in found if name.startswith(inside) and _is_module(name))


def code_of(built: object) -> str:
    """The code of a thing: its module and what that imports; a plugin file's own source.

    What a thing reads from a file of its own (it says so in `content`) determines it as its code does.
    """
    module = type(built).__module__
    if module.startswith("exegete."):
        content = getattr(built, "content", None)
        return code_hash(module) if content is None else key_of(code=code_hash(module), content=content)
    return key_of(source=inspect.getsource(inspect.getmodule(type(built)) or type(built)))
