"""Chapters: in the scorecard's order, each with its method, its examples, and what a run does not hold said aloud."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from exegete.answers.pages import chapters as module
from exegete.answers.pages.chapters import NO_TEXTS, chapters
from exegete.answers.pages.texts import HeatMaps
from exegete.base.errors import ExegeteError
from exegete.experiments.adversary_search.experiment import AdversarySearch
from exegete.experiments.adversary_search.section import examples
from exegete.experiments.common.section import QuestionResult
from exegete.report.heatmap import HeatMap, HeatRow
from exegete.report.section import Section
from tests.answers.pages.runs import asked

MAP = HeatMap("t", ("a",), (HeatRow("m", (1.0,), False),), "1")
STUDY: Any = None


def told(name: str, **more: Any) -> tuple[Any, QuestionResult]:
    parts = [Section(f"first of {name}"), Section(f"second of {name}")]
    return SimpleNamespace(sections=lambda _: iter(parts), **more), QuestionResult(Path(), name, None)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, QuestionResult]]:
    there: list[tuple[Any, QuestionResult]] = []
    monkeypatch.setattr(module, "results_in", lambda *_: iter(there))
    return there


def test_they_follow_the_scorecard(found: list[tuple[Any, QuestionResult]]) -> None:
    found += [told("layers"), told("agreement"), told("permutation"), told("faithfulness")]
    tests = [asked("faithful"), asked("used"), asked("agrees")]
    told_ = HeatMaps("faithfulness", (MAP,), "Texts", "why")
    made = list(chapters(Path(), STUDY, tests, told_))
    assert [section.anchor for section in made] == ["faithfulness", "permutation", "agreement", "layers"]
    assert [part.title for part in made[0].parts] == ["second of faithfulness", "Texts"]
    assert made[0].parts[1].examples == (MAP,)
    assert made[0].note is not None
    assert "comprehensiveness" in made[0].note.formula


def test_an_experiment_may_have_examples_of_its_own(found: list[tuple[Any, QuestionResult]]) -> None:
    found += [
        told("adversary_search", examples=lambda _: ("twins", (MAP,))),
        told("multiverse", examples=lambda _: ("none", ())),
    ]
    with_twins, without, _ = chapters(Path(), STUDY, [], None)
    assert [part.title for part in with_twins.parts][1:] == ["The same prediction under other weights"]
    assert len(without.parts) == 1
    assert without.note is None  # somebody's own experiment


def test_a_run_without_scores_says_so(found: list[tuple[Any, QuestionResult]]) -> None:
    found.append(told("layers"))
    assert list(chapters(Path(), STUDY, [], None))[-1].paragraphs == [NO_TEXTS]


def test_tables_of_another_version_are_refused(found: list[tuple[Any, QuestionResult]]) -> None:
    def sections(_: QuestionResult) -> Iterator[Section]:
        yield Section(str(pl.DataFrame({"a": [1]})["b"]))

    found.append((SimpleNamespace(sections=sections), QuestionResult(Path(), "multiverse", None)))
    with pytest.raises(ExegeteError, match="another version of exegete"):
        list(chapters(Path("r"), STUDY, [], None))


def test_twins_have_the_same_words_and_other_weights(tmp_path: Path) -> None:
    words = ["<b>", "one", "two", "three", "four", "five"]
    own, other = [0.9, 0.02, 0.02, 0.02, 0.02, 0.02], [0.02, 0.9, 0.02, 0.02, 0.02, 0.02]
    row = {"task": "sst", "model": "bilstm", "seed": 0, "example": 1, "predicted": "1", "who": "model", "jsd": 0.5}
    lists = {"tvd": 0.004, "words": words, "attention": own, "adversary": other}
    rows = [row | lists | {"epsilon": 0.01}, row | lists | {"epsilon": 0.05, "jsd": 0.6}]
    rows.append(row | lists | {"epsilon": 0.01, "who": "faithful", "example": 2})
    (tmp_path / "tables").mkdir()
    pl.DataFrame(rows).write_parquet(tmp_path / "tables" / "adversary_search.parquet")
    sentence, maps = examples(QuestionResult(tmp_path, "adversary_search", AdversarySearch()))
    assert "not typical" in sentence
    assert len(maps) == 1
    assert maps[0].words == tuple(words)
    assert [each.values for each in maps[0].rows] == [tuple(own), tuple(other)]
    assert maps[0].title == "Predicted class 1. JSD of the weights 0.50, at most 0.69; TVD of the prediction 0.004."
