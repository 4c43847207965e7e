"""Where pages lie, and links from one to another."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]


def to(target: str, page: Path) -> str:
    """The address of a file of the repository, as a page writes it."""
    path, mark, anchor = target.partition("#")
    return Path(os.path.relpath(ROOT / path, page.parent)).as_posix() + mark + anchor
