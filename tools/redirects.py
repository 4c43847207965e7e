"""Redirects: an address of before leads to the page that took its place: a hook of mkdocs, its map in mkdocs.yml."""

import posixpath
from pathlib import Path
from typing import Any

STUB = """<!doctype html>
<html lang="en">
<title>Moved</title>
<link rel="canonical" href="{to}">
<meta http-equiv="refresh" content="0; url={to}">
<p>This page is now <a href="{to}">here</a>.</p>
</html>
"""


def on_post_build(config: Any) -> None:
    """Write a small page at every old address."""
    for old, new in config["extra"]["redirects"].items():
        folder = Path(config["site_dir"], old)
        folder.mkdir(parents=True)  # a page that still is there is no address of before
        (folder / "index.html").write_text(STUB.format(to=address(old, new)), encoding="utf8")


def address(old: str, new: str) -> str:
    """A page as a browser at an old address finds it.

    >>> address("tests/reads", "tests/index.md#reads"), address("how-to/own-model", "reference/own-model.md")
    ('../#reads', '../../reference/own-model/')
    """
    page, mark, anchor = new.partition("#")
    folder = page.removesuffix("index.md") if page.endswith("index.md") else page.removesuffix(".md")
    return posixpath.relpath(folder, old) + "/" + mark + anchor
