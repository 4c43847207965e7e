"""Names: what people call tasks and models whose names hold folders of a machine; paths stay in the manifest."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from exegete.base.errors import UsageError
from exegete.base.files import read_json
from exegete.base.names import parse

MANIFEST, NAMES = "manifest.json", "names"
_FOLDERS = re.compile(r"(?<![\w.…/\\-])(?:[A-Za-z]:[\\/]|/)(?:[^\s/\\\"'<>|,;()]+[\\/])+")  # of absolute paths


def short_names(specs: Iterable[str]) -> dict[str, str]:
    """A name without absolute paths for every specification that has one; folders only tell namesakes apart.

    >>> short_names(["file:/data/of/2026/reviews.csv:text=it", "bilstm"])
    {'file:/data/of/2026/reviews.csv:text=it': 'file:…/reviews.csv:text=it'}
    >>> short_names(["/a/ckpt", "/b/ckpt"])
    {'/a/ckpt': '…/a/ckpt', '/b/ckpt': '…/b/ckpt'}
    """
    every = list(dict.fromkeys(specs))
    return {spec: name for spec in every if (name := shorten_names(spec, every)) != spec}


def shorten_names(text: str, specs: Iterable[str]) -> str:
    """A text in which what specifications name by absolute paths is called by its own name."""
    paths = {path for spec in specs for path in paths_in(spec)}
    for path in sorted(paths, key=len, reverse=True):
        text = text.replace(path, _short(PurePath(path), [PurePath(other) for other in paths if other != path]))
    return text


def paths_in(spec: str) -> list[str]:
    """The absolute paths that a specification names."""
    try:
        name, settings = parse(spec)
    except UsageError:  # a folder whose name has our own signs in it
        return [spec] if PurePath(spec).is_absolute() else []
    places = (name, name.partition(":")[2], *settings.values())
    return [place for place in places if PurePath(place).is_absolute()]


def _short(path: PurePath, others: Sequence[PurePath]) -> str:
    """The last parts of a path that no other path ends in; our own signs, which no name can hold, are dashes."""
    parts = [part for part in path.parts if part != path.anchor]
    shared = [len([*_alike(reversed(parts), reversed(other.parts))]) for other in others]
    kept = parts[-(max(shared, default=0) + 1) :]
    return "…/" + re.sub(r"[:,=]", "-", "/".join(kept))


def _alike(ours: Iterable[str], theirs: Iterable[str]) -> Iterable[str]:
    for one, other in zip(ours, theirs, strict=False):
        if one != other:
            return
        yield one


def rename_cells(cells: Iterable[Mapping[str, Any]], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Cells, with their tasks and models as people call them, also in sentences about them."""

    def said(text: str) -> str:
        return without_folders(shorten_names(text, names))

    found = []
    for cell in cells:
        data = cell["data"] | {"origin": said(cell["data"]["origin"]), "notes": [*map(said, cell["data"]["notes"])]}
        told = {"data": data, "notes": [*map(said, cell["notes"])]}
        told |= {"unasked": {name: said(why) for name, why in cell["unasked"].items()}} if "unasked" in cell else {}
        found.append(dict(cell) | told | {of: names.get(cell[of], cell[of]) for of in ("task", "model")})
    return found


def names_in(run: Path) -> dict[str, str]:
    """What the tables of a complete run call its tasks and models; older ones call them as they are written."""
    facts = read_json(run / MANIFEST, "run") if (run / MANIFEST).is_file() else {}
    return {spec: name for name, spec in facts.get(NAMES, {}).items()}


def without_folders(text: str) -> str:
    """A sentence without the folders of absolute paths.

    >>> without_folders("read from /home/me/data/reviews.csv (and/or https://a.org/b/c)")
    'read from …/reviews.csv (and/or https://a.org/b/c)'
    """
    return _FOLDERS.sub("…/", text)
