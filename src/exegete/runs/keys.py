"""Keys: a stage is named by the content that determines it, its code included, so that no stale result can answer."""

import hashlib
import importlib.util
import inspect
import re
from functools import cache
from pathlib import Path

from exegete.base.memo import key_of

# How a result is shown, or judged, doesn't determine it.
DRAWING = re.compile(r"exegete\.report\.|exegete\.experiments\..*(figure|section|tests)$")
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


IMPORTED = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]+)|import[ \t]+([^\n]+))", re.MULTILINE
)
LISTED = re.compile(r'"(exegete[\w.]*):\w+"')  # in a catalogue: a module, and what it has there


@cache
def _imports(module: str) -> frozenset[str]:
    """Modules of its own package that a module's source imports, also inside functions.

    Found in the text: to parse every file took a second in every process.
    """
    source = _path(module).read_text("utf-8")
    found: set[str] = set()
    for origin, names, plain in IMPORTED.findall(source):
        listed = [name.split()[0] for name in re.sub(r"#.*|[()]", "", names or plain).split(",") if name.strip()]
        found |= {origin, *(f"{origin}.{name}" for name in listed)} if origin else set(listed)
    if module == BY_NAME:  # who can name an intervention depends on all of them
        found |= set(LISTED.findall(source))
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
