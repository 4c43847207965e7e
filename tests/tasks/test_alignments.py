"""Pharaoh files: sure and possible links, there and back, and what is wrong with a line."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exegete.base.errors import ExegeteError
from exegete.tasks.alignments import (
    check_links,
    parse_links,
    read_alignments,
    reverse_links,
    write_alignments,
    write_links,
)
from exegete.tasks.example import Link

links = st.dictionaries(st.tuples(st.integers(0, 20), st.integers(0, 20)), st.booleans(), max_size=6).map(
    lambda found: tuple(Link(i, j, sure) for (i, j), sure in sorted(found.items()))
)


@given(links)
@settings(max_examples=50, deadline=None)
def test_there_and_back(some: tuple[Link, ...]) -> None:
    assert parse_links(write_links(some)) == some
    assert reverse_links(reverse_links(some)) == some


def test_what_is_written() -> None:
    assert parse_links(" 1-2 0-0\t10?3 2p4\n") == (Link(0, 0), Link(1, 2), Link(2, 4, False), Link(10, 3, False))
    assert parse_links("0?1 0-1 0?1") == (Link(0, 1),)  # sure once is sure
    assert parse_links("") == ()
    assert write_links([Link(0, 0), Link(2, 1, False)]) == "0-0 2?1"


def test_a_file_there_and_back(tmp_path: Path) -> None:
    alignments = [(Link(0, 1), Link(1, 0, False)), (), (Link(3, 3),)]
    write_alignments(tmp_path / "test.align", alignments)
    assert (tmp_path / "test.align").read_text() == "0-1 1?0\n\n3-3\n"
    assert read_alignments(tmp_path / "test.align") == alignments


@pytest.mark.parametrize("wrong", ["0", "a-b", "0-1-2", "0:1", "-1-2", "1.0-2"])
def test_what_is_no_link(wrong: str, tmp_path: Path) -> None:
    (tmp_path / "a.align").write_text(f"0-0\n0-0 {wrong}\n")
    with pytest.raises(ExegeteError, match=rf"a\.align, line 2: '{wrong}' is no link: write 0-1"):
        read_alignments(tmp_path / "a.align")


def test_words_that_are_not_there() -> None:
    check_links((Link(1, 2),), ("a b", "c d e"), "here")
    for link in (Link(2, 0), Link(0, 3, False)):
        with pytest.raises(ExegeteError, match=r"here: the link .* is outside a source of 2 and a target of 3 words"):
            check_links((link,), ("a b", "c d e"), "here")
