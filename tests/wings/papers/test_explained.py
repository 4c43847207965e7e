"""Tested reasons: every row that deviates has one, its number is in the file it names, and a rule says its worth."""

import csv
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from statistics import mean

import pytest

from exegete.base.errors import ExegeteError, UsageError
from exegete.report.columns import significant
from exegete.runs.study import load_study
from exegete.wings.papers.catalogue import PAPERS
from exegete.wings.papers.paper import Paper, Reason, load_paper, read_paper
from exegete.wings.papers.published import KEYS, PAPERS_FOLDER
from exegete.wings.papers.reasons import CONTROL, ELSEWHERE, EXPLAINS, NOT_IT, OPEN, PART, reasons_for, worth_sentence
from exegete.wings.papers.reproduce import Line, compare, find_tables
from exegete.wings.papers.rule import Ours, Yardstick

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "results"
ENDS = (EXPLAINS, PART, NOT_IT, *CONTROL.values())
TO_RUN: set[str] = set()  # studies that would test a reason and have no results yet


@lru_cache
def deviating(name: str) -> list[Line]:
    return [line for line in compare(*find_tables(name), RESULTS).lines if line.verdict == "deviates"]


def words(line: Line) -> dict[str, str]:
    return {key: line.class_ if key == "class" else getattr(line, key) for key in KEYS}


def written(paper: Paper, reason: Reason, line: Line) -> set[str]:
    """Every number of the column that a reason names, and its mean over trainings, as a row would tell it."""
    quantity = paper.quantities[line.quantity]
    column, scale = reason.value or quantity.value, reason.scale or quantity.scale
    with (RESULTS / reason.study / f"{reason.table or quantity.table}.csv").open(encoding="utf8") as file:
        rows = [row for row in csv.DictReader(file) if row[column]]
    cells: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        key = tuple(value for name, value in row.items() if name in ("task", "model", "class", "first", "second"))
        cells.setdefault(key, []).append(scale * float(row[column]))
    numbers = [value for found in cells.values() for value in (*found, mean(found))]
    return {significant(value) for value in numbers}


@pytest.mark.parametrize("name", [*PAPERS])
def test_every_row_that_deviates_has_a_tested_reason(name: str) -> None:
    for line in deviating(name):
        reasons = reasons_for(load_paper(name), words(line))
        assert reasons, words(line)
        for reason in reasons:
            said = line.reason.partition(f"{reason.because}: ")[2].partition(";")[0].removesuffix(ELSEWHERE)
            assert said.endswith(ENDS) or said.startswith("cannot tell") or reason.study in TO_RUN, (reason, said)


@pytest.mark.parametrize("name", [*PAPERS])
def test_the_number_that_tests_a_reason_is_in_its_file(name: str) -> None:
    paper = load_paper(name)
    for line in deviating(name):
        for reason in reasons_for(paper, words(line)):
            said = line.reason.partition(f"{reason.because}: ")[2]
            if not said.startswith(("cannot tell", "to be tested")):
                assert said.split()[0].rstrip(",") in written(paper, reason, line), (words(line), reason.because)


@pytest.mark.parametrize("name", [*PAPERS])
def test_every_reason_is_of_a_row_that_deviates_and_of_a_study_of_ours(name: str) -> None:
    rows = [words(line) for line in deviating(name)]
    for reason in load_paper(name).explained:
        assert any(all(fnmatchcase(row[key], value) for key, value in reason.rows.items()) for row in rows), reason
        assert load_study(reason.study).name == reason.study


def test_what_is_still_to_be_run_has_no_results() -> None:
    assert not [name for name in TO_RUN if (RESULTS / name).is_dir()]


def test_what_a_number_elsewhere_explains() -> None:
    """By hand: printed 0.7, ours 0.3, a margin of 0.05."""
    printed, by = {"mean": 0.7, "sign": ""}, Yardstick(0.05, 0.2)
    for there, says in [
        (Ours(0.60, 0.55, 0.66), EXPLAINS),  # 0.66 + 0.05 reaches 0.7
        (Ours(0.60, 0.56, 0.64), PART),  # nearer, and 0.3 lies outside
        (Ours(0.35, 0.29, 0.41), NOT_IT),  # nearer, but 0.3 lies inside
        (Ours(0.20, 0.15, 0.25), NOT_IT),  # further
        (Ours(1.20, 1.15, 1.25), NOT_IT),  # beyond, and further than ours
        (Ours(0.46, 0.29, 0.66), NOT_IT),  # reaches 0.7, but 0.3 lies inside
        (Ours(0.60, 0.30, 0.90), NOT_IT),  # holds everything: wider than the resolution, and 0.3 lies inside
    ]:
        assert worth_sentence(printed, 0.3, there, by) == says, there
    words_only, claim = {"mean": None, "sign": "at"}, Yardstick(0.03, None, 0.0)
    assert worth_sentence(words_only, -0.15, Ours(0.0, -0.02, 0.02), claim) == EXPLAINS
    assert worth_sentence(words_only, -0.15, Ours(-0.05, -0.09, -0.01), claim) == PART  # not contradicted any more
    assert worth_sentence(words_only, -0.15, Ours(-0.07, -0.09, -0.04), claim) == NOT_IT


def test_a_row_that_nothing_explains_is_open() -> None:
    for name in PAPERS:
        for line in deviating(name):
            explained = EXPLAINS in line.reason or PART in line.reason
            assert line.reason.endswith(OPEN) != explained, line.reason


def test_a_reason_without_results_names_its_study(tmp_path: Path) -> None:
    """Only the results that deviate are there: the row says what would test it."""
    (tmp_path / "meister_2021_transformer").symlink_to(RESULTS / "meister_2021_transformer")
    found = compare(*find_tables("meister_2021:T1"), tmp_path)
    sst = next(line for line in found.lines if line.dataset == "SST" and line.model == "Transformer")
    assert sst.verdict == "deviates"
    assert sst.reason == "embeddings not scaled by √size: to be tested by meister_2021_scaling; open"


def test_a_reason_that_leads_nowhere_is_an_error() -> None:
    paper = load_paper("meister_2021")
    lost = Reason(rows={"table": "T1", "dataset": "SST"}, because="b", study="meister_2021", settings={"hidden": "7"})
    with pytest.raises(ExegeteError, match="has no number for the reason 'b'"):
        compare(paper.model_copy(update={"explained": (lost,)}), ("T1",), RESULTS)


def test_rows_are_named_by_printed_words() -> None:
    text = (PAPERS_FOLDER / "meister_2021.toml").read_text(encoding="utf8")
    with pytest.raises(UsageError, match=r"rows are named by table, dataset.*, not by colour"):
        read_paper("p", text + '[[explained]]\nrows = { colour = "red" }\nbecause = "b"\nstudy = "s"\n')
