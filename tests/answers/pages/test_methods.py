"""Notes on methods and citations: every experiment has one, and what they point at is there."""

import re
from pathlib import Path

import pytest

from exegete import __version__
from exegete.answers.pages.citations import SOFTWARE, bibtex, citation_key, entries, papers_of
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.tests import built_in_tests, note_of
from exegete.report.section import Note

ROOT = Path(__file__).parents[3]


def notes() -> dict[str, Note]:
    return {name: note for name in EXPERIMENTS if (note := note_of(name))}


def test_every_experiment_has_a_note() -> None:
    assert set(EXPERIMENTS) - set(notes()) == {"multiverse"}  # it is told by its own choices
    assert {name for test in built_in_tests().values() for name in test.experiments} <= set(notes())
    assert all(note.formula and note.misleads for note in notes().values())


@pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="installed without the docs")
def test_notes_name_pages_that_are_there() -> None:
    for note in notes().values():
        first = (ROOT / "docs" / note.page).read_text(encoding="utf8").splitlines()[0]
        assert first == f"# {note.title}"


@pytest.mark.skipif(not (ROOT / "CITATION.cff").is_file(), reason="installed without the citation file")
def test_we_are_cited_as_the_citation_file_says() -> None:
    facts = dict(re.findall(r'^(\w+): "?(.*?)"?$', (ROOT / "CITATION.cff").read_text(encoding="utf8"), re.MULTILINE))
    assert (SOFTWARE["title"], SOFTWARE["license"]) == (facts["title"], facts["license"])
    assert __version__.startswith(facts["version"])
    assert SOFTWARE["author"].strip("{}") in (ROOT / "CITATION.cff").read_text(encoding="utf8")


def test_papers_are_cited_once_and_whole() -> None:
    written = bibtex(["Jain & Wallace 2019", "DeYoung et al. 2020", "Jain & Wallace 2019", "Somebody 1999", ""])
    assert written.count("@") == 3
    assert written.startswith("@software{exegete,")
    assert "Attention is not Explanation" in written
    assert "% Somebody 1999" in written
    assert written.count("{") == written.count("}")


def test_every_criterion_and_experiment_has_an_entry() -> None:
    asked = {test.source for test in built_in_tests().values()}
    ours = {paper for name in notes() for paper in papers_of(name)}
    assert ours
    assert {citation_key(paper) for paper in asked | ours} <= set(entries())


def test_entries_are_whole() -> None:
    for key, entry in entries().items():
        assert entry.startswith("@")
        assert {"title", "author", "year"} <= set(re.findall(r"^  (\w+)", entry, re.MULTILINE))
        assert key.endswith(re.findall(r"year\s+= \{(\d{4})\}", entry)[0])
