"""The project's pages, and the blocks of code in them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """One fenced block: where it is, its language, and what it says."""

    where: str
    language: str
    text: str


def blocks(language: str) -> list[Block]:
    """All blocks of a language ("" for none), on all pages."""
    return [
        Block(f"{page.relative_to(ROOT)}:{_line(text, match.start())}", match[1], match[2])
        for page in PAGES
        for text in [page.read_text(encoding="utf8")]
        for match in _FENCE.finditer(text)
        if match[1] == language
    ]


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


@contextmanager
def shown_at(where: str) -> Iterator[None]:
    """A failure inside says where on the pages it is: one test loops over many."""
    try:
        yield
    except Exception as error:
        error.add_note(where)
        raise
