"""Word alignments in files: a line per pair of sentences, links between their white-space words, as Pharaoh wrote them.

`0-0 1-2` are sure links from source word 0 to target word 0 and from 1 to 2; `1?2` and `1p2` are possible ones. Words
are counted from 0.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from exegete.base.errors import ExegeteError
from exegete.base.files import write_text
from exegete.tasks.example import Link, Links
from exegete.tasks.text_files import open_text

_LINK = re.compile(r"(\d+)([-?p])(\d+)")


def parse_links(line: str, where: str = "alignment") -> Links:
    """The links of one line, in order; a link that is written twice is sure if it is so once.

    >>> [tuple(link) for link in parse_links("0-0 2?1")]
    [(0, 0, True), (2, 1, False)]
    """
    found: dict[tuple[int, int], bool] = {}
    for written in line.split():
        match = _LINK.fullmatch(written)
        if match is None:
            raise ExegeteError(f"{where}: '{written:.40}' is no link: write 0-1 for a sure one, 0?1 for a possible one")
        pair = (int(match[1]), int(match[3]))
        found[pair] = found.get(pair, False) or match[2] == "-"
    return tuple(Link(source, target, sure) for (source, target), sure in sorted(found.items()))


def write_links(links: Iterable[Link]) -> str:
    """The line for some links.

    >>> write_links([Link(0, 0), Link(2, 1, sure=False)])
    '0-0 2?1'
    """
    return " ".join(f"{link.source}{'-' if link.sure else '?'}{link.target}" for link in links)


def read_alignments(path: Path) -> list[Links]:
    """The links of every line; an empty line is a pair without any."""
    return list(_lines(path))


def _lines(path: Path) -> Iterator[Links]:
    with open_text(path, newline="\n") as file:
        for number, line in enumerate(file, start=1):
            yield parse_links(line, f"{path}, line {number}")


def write_alignments(path: Path, alignments: Iterable[Iterable[Link]]) -> None:
    """A file that `read_alignments` reads back."""
    write_text(path, "".join(f"{write_links(links)}\n" for links in alignments))


def check_links(links: Links, texts: tuple[str, str], where: str) -> None:
    """Refuse a link to a word that isn't there."""
    source, target = (len(text.split()) for text in texts)
    for link in links:
        if link.source >= source or link.target >= target:
            raise ExegeteError(
                f"{where}: the link {write_links([link])} is outside a source of {source} and a target of {target} "
                "words: count white-space words from 0, the source first"
            )


def reverse_links(links: Sequence[Link]) -> Links:
    """Links seen from the other language."""
    return tuple(sorted(Link(link.target, link.source, link.sure) for link in links))
