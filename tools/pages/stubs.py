"""Stubs: names of a module, their signatures as the source writes them, and the first paragraph of what they say."""

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path

from exegete import plugins
from tools.pages.place import ROOT

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
INDENT = "    "


def stub(module: str, *members: str) -> str:
    """A module's section: what it says of itself, and its public names, or those asked for."""
    path = _path(module)
    source = path.read_text(encoding="utf8")
    tree = ast.parse(source)
    found = {name: node for node in tree.body if (name := _name(node)) and not name.startswith("_")}
    shown = [found[name] for name in members or found]
    blocks = [_written(node, source.splitlines()) for node in shown]
    code = "\n\n".join(blocks)
    said = _first(tree)
    return f"### {module}\n\n{said}\n" + (f"\n```python\n{code}\n```\n" if code else "")


def names_that_stay() -> str:
    """Everything that `exegete.plugins` offers, from the module where each name lives today."""
    homes: dict[str, list[str]] = {}
    for name in plugins.STAYING:
        module, _ = plugins._HOME[name]
        homes.setdefault(_home(module, name), []).append(name)
    return "\n".join(stub(module, *names) for module, names in homes.items())


def _home(module: str, name: str) -> str:
    """Where a name is defined, that a module may only hand on."""
    for node in ast.parse(_path(module).read_text(encoding="utf8")).body:
        if isinstance(node, ast.ImportFrom) and node.module and name in [alias.asname for alias in node.names]:
            return _home(node.module, name)
    return module


def _path(module: str) -> Path:
    place = ROOT.joinpath("src", *module.split("."))
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def _name(node: ast.stmt) -> str:
    """What a statement of a module or a class defines."""
    if isinstance(node, Definition):
        return node.name
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return ""


def _written(node: ast.stmt, lines: list[str]) -> str:
    if not isinstance(node, Definition):
        return _line(node, lines)
    head = [f"@{ast.unparse(d)}" for d in node.decorator_list] + [_head(node, lines)]
    said = _first(node)
    body = [_quoted(said)] if said else []
    if isinstance(node, ast.ClassDef):
        body += list(_members(node, lines))
    return "\n".join([*head, textwrap.indent("\n".join(body or ["..."]), INDENT)])


def _members(node: ast.ClassDef, lines: list[str]) -> Iterator[str]:
    """The public fields of a class, then its public methods."""
    public = [part for part in node.body if (name := _name(part)) and not name.startswith(("_", "model_config"))]
    fields = [_line(part, lines) for part in public if not isinstance(part, Definition)]
    if fields:
        yield "\n" + "\n".join(fields)
    for part in public:
        if isinstance(part, Definition):
            yield "\n" + _written(part, lines)
    call = [part for part in node.body if _name(part) == "__call__"]
    yield from ("\n" + _written(part, lines) for part in call)


def _head(node: Definition, lines: list[str]) -> str:
    """From `def` or `class` to its colon."""
    return textwrap.dedent("\n".join(lines[node.lineno - 1 : node.body[0].lineno - 1])).rstrip()


def _line(node: ast.stmt, lines: list[str]) -> str:
    """A field with its comment; of a long one the beginning."""
    first = lines[node.lineno - 1].strip()
    if node.end_lineno == node.lineno:
        return first
    if isinstance(node, ast.AnnAssign):
        return f"{ast.unparse(node.target)}: {ast.unparse(node.annotation)}" + (" = ..." if node.value else "")
    return f"{_name(node)} = ..."


def _quoted(said: str) -> str:
    """A docstring of one paragraph."""
    return f'"""{said}"""' if "\n" not in said else f'"""{said}\n"""'


def _first(node: ast.AsyncFunctionDef | ast.FunctionDef | ast.ClassDef | ast.Module) -> str:
    return (ast.get_docstring(node) or "").partition("\n\n")[0]
