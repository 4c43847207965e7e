"""Plugins: modules of the user's own that name importances, imported before a study starts, in every process."""

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path

from exegete.base.errors import ExegeteError
from exegete.base.memo import key_of


def load_plugins(plugins: Iterable[str]) -> None:
    """Import modules by name, or files by path (`my_importance.py`)."""
    for plugin in plugins:
        if plugin.endswith(".py"):
            _load_file(Path(plugin))
        else:
            try:
                importlib.import_module(plugin)
            except ModuleNotFoundError as error:
                raise ExegeteError(
                    f"plugin '{plugin}' can't be imported ({error}): install it, or give the path of its .py file"
                ) from None


def _load_file(path: Path) -> None:
    name = f"exegete_plugin_{path.stem}_{key_of(path=str(path.resolve()))}"
    if name in sys.modules:
        return
    if not path.is_file():
        raise ExegeteError(f"there is no plugin file {path}")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
