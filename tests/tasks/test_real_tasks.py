"""The real data sets at EXEGETE_DATA: sizes against what their publishers and Jain & Wallace (2019) report."""

import os

import pytest

from exegete.tasks.catalogue import load_task
from exegete.tasks.vectors import load_vectors
from exegete.tasks.vocabulary import fit_vocabulary
from exegete.tasks.word_labels import NOTE

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not os.environ.get("EXEGETE_DATA"), reason="EXEGETE_DATA is not set"),
]


@pytest.mark.parametrize(
    ("name", "sizes", "classes"),
    [
        ("sst", (6920, 872, 1821), 2),
        ("sst_jw", (6920, 872, 1821), 2),
        ("sst5", (8544, 1101, 2210), 5),
        ("imdb", (20696, 4304, 25000), 2),
        ("imdb:subset=jw", (17212, 4304, 4362), 2),
        ("20news_sports", (956, 238, 794), 2),
        ("agnews", (10480, 1849, 3800), 2),
        ("agnews4", (21134, 3729, 7600), 4),
        ("eraser_movies", (1600, 200, 199), 2),
    ],
)
def test_sizes(name: str, sizes: tuple[int, int, int], classes: int) -> None:
    task = load_task(name)
    assert tuple(len(task.split(split)) for split in ("train", "dev", "test")) == sizes
    assert len(task.labels) == classes
    assert task.notes == ((NOTE,) if name == "sst" else ())


def test_jain_and_wallace_on_sst() -> None:
    """Their vocabulary has 13,826 words, their filter leaves 6,355 training and 1,725 test sentences."""
    whole, filtered = load_task("sst_jw"), load_task("sst_jw:min_length=5,legacy_length=true")
    assert len(fit_vocabulary(whole.split("train"))) == 13826
    assert [len(filtered.split(split)) for split in ("train", "test")] == [6355, 1725]


def test_rationales_of_eraser_movies() -> None:
    """The published mean share of marked words: 9 % of train, 31 % of the test set, which was marked again in full."""
    task = load_task("eraser_movies")
    for split, share in (("train", 0.09), ("test", 0.31)):
        found = [len(e.rationale) / len(e) for e in task.split(split)]
        assert sum(found) / len(found) == pytest.approx(share, abs=0.01)


def test_glove_covers_sst() -> None:
    vectors = load_vectors("glove", fit_vocabulary(load_task("sst").split("train")).words)
    assert vectors.size == 100
    assert vectors.coverage > 0.9
