"""Own files: a Python file of the user's, imported by its path, and the fingerprint of its source.

Modules that lie beside the file can be imported by it, and are part of the fingerprint. So a checkpoint or a stage that
was made with other code is never taken for one that was made with this.
"""

import ast
import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from exegete.base.errors import ExegeteError, UsageError

_loaded: dict[Path, str] = {}  # modules beside a file that were imported for it, with the hash of their source


def source_hash(file: str) -> str:
    """A fingerprint of a file and of the modules beside it that it imports, in the end."""
    digest, home = hashlib.sha256(), _path(file).parent
    for path in _sources(_path(file)):
        digest.update(_name(path, home).encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return digest.hexdigest()[:12]


def load_function(file: str, name: str) -> Callable[..., Any]:
    """A function of a file; the file is imported once, and again when its source has changed."""
    path = _path(file)
    module = _imported(path, f"exegete_own_{path.stem}_{source_hash(file)}")
    found = getattr(module, name, None)
    if not callable(found):
        raise UsageError(
            f"{file} has no function '{name}': write `def {name}(words, labels)` that returns your adapter, or name "
            "another with make="
        )
    return found  # type: ignore[no-any-return]


def _path(file: str) -> Path:
    path = Path(file).expanduser().resolve()
    if not path.is_file():
        raise ExegeteError(f"there is no file {file}: give the path of the Python file with your adapter")
    return path


def _imported(path: Path, name: str) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path.name} can't be imported: give a Python file, whose name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with _beside(path), plain_code_errors(path):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


@contextmanager
def _beside(path: Path) -> Iterator[None]:
    """Inside, modules that lie beside the file can be imported; those that have changed since are imported anew.

    Nothing compiled is left there: Python takes it for the source if that changes within the second at equal size.
    """
    for source in _sources(path)[1:]:
        now, name = hashlib.sha256(source.read_bytes()).hexdigest(), _name(source, path.parent)
        there = getattr(sys.modules.get(name), "__file__", None)
        if there is not None and (Path(there).resolve() != source or _loaded.get(source, now) != now):
            del sys.modules[name]
        _loaded[source] = now
    importlib.invalidate_caches()
    sys.path.insert(0, str(path.parent))
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = writes
        sys.path.remove(str(path.parent))


def _name(source: Path, home: Path) -> str:
    """What a module in a folder is called by those who import it."""
    parts = source.relative_to(home).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _sources(path: Path) -> list[Path]:
    """The file, then the modules and packages beside it that it imports, directly or not, in alphabetical order."""
    found, waiting = {path}, [path]
    while waiting:
        new = _neighbours(waiting.pop(), path.parent) - found
        found |= new
        waiting += new
    return [path, *sorted(found - {path})]


def _neighbours(path: Path, home: Path) -> set[Path]:
    """Files in a folder, or in packages of it, that a file imports by name."""
    names: set[str] = set()
    for node in ast.walk(_parsed(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    alone = {near for name in names if (near := home / f"{name}.py").is_file()}
    packages = [home / name for name in names if (home / name / "__init__.py").is_file()]
    return alone.union(*(package.rglob("*.py") for package in packages))


def _parsed(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise ExegeteError(f"{path.name}, line {line}: this is not Python ({error}): correct it") from None


@contextmanager
def plain_code_errors(path: Path) -> Iterator[None]:
    """Turn what goes wrong in the user's own code into one sentence with its line; the cause stays attached."""
    try:
        yield
    except ExegeteError:
        raise
    except NotImplementedError as error:  # what our base classes say of a method that is missing
        raise UsageError(f"{path.name}: {error}") from error
    except (Exception, SystemExit) as error:  # a file that exits must not end the command without a word
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path]
        where = f"{path.name}, line {frames[-1].lineno}" if frames else path.name
        first = (str(error).splitlines() or [""])[0]
        raise ExegeteError(f"{where}: {type(error).__name__}: {first}") from error
