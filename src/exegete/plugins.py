"""Plugins: everything that code of your own needs to add to Exegete or to ask it, from one place that stays.

Rooms may be laid anew from one version to the next; these names stay. `plugins.pyi`, beside this file, lists them with
the room where each lives today, and then what our own wings need besides. A wing imports nothing else; a file of yours
imports them, and a study names the file in `plugins`, or a package of yours registers (`exegete.base.catalogue`).
Nothing heavy is imported before a name is asked for.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf8")
_OURS = "# What our own wings need besides"  # begins the second part of the list


def _listed(stub: str) -> dict[str, tuple[str, str]]:
    """Names, and the module and attribute that each stands for."""
    imports = [node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: (node.module or "", alias.name) for node in imports for alias in node.names}


_HOME = _listed(_STUB)
STAYING = list(_listed(_STUB.partition(_OURS)[0]))  # what plugins of other people may count on
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """A name of the list, from the room where it lives today."""
    if name not in _HOME:
        raise AttributeError(f"module 'exegete.plugins' has no attribute '{name}'")
    module, attribute = _HOME[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    """The names that stay."""
    return __all__
