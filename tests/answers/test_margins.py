"""One place for a margin: what a run is judged by is what its figures, tables and report show."""

import html
import json
import re
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pytest

from exegete.answers.answer import answer
from exegete.answers.audit import audit_study
from exegete.answers.criteria import load_criteria
from exegete.answers.grades import grade
from exegete.answers.judge import Unjudged, gradings
from exegete.answers.pages.build import headlines, write_run_report
from exegete.experiments.common.margins import margin, margins_of, show_margins
from exegete.experiments.common.statistic import Varied
from exegete.experiments.tests import all_tests
from exegete.runs.engine.local import LocalEngine
from exegete.runs.results import Run
from exegete.runs.study import Study
from tests.answers.cards import WAYS, around, grading, known_of, readable, values_of, verdict
from tests.docs.pages import ROOT
from tests.studied import reviews, small_study

MODEL = "transformer:size=8,hidden=8,heads=2,inner=8"
OURS = {name: all_tests()[name].margin for name in ("reads", "ranks", "carries")}
THEIRS = {"reads": 0.4, "ranks": 0.55, "carries": 0.3}
MOVED = THEIRS | {"locates": 0.65}  # which would have the old margin of `ranks`
SAID = re.compile(r"([MΓF]) > (\d*\.\d+)")  # in a caption, or on a page
DRAWN = ("mediation", "readings")  # experiments whose figures show margins: of F, the first


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    file = reviews(tmp_path_factory.mktemp("data") / "reviews.csv", 500)
    mediation = {"name": "mediation", "methods": ["attention", "gradient"], "draws": 1}
    found = small_study("margins", file, [MODEL], mediation, {"name": "readings", "texts": 10})
    training = found.training.model_copy(update={"epochs": 4, "lr": 0.02})  # words must matter
    return found.model_copy(update={"seeds": (0,), "training": training})


class Judged(NamedTuple):
    """A run that was audited by our criteria, then by a file that moves both margins."""

    run: Path
    rules: list[set[str]]  # the dashed lines of its figures before


@pytest.fixture(scope="module")
def judged(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    run = tmp_path_factory.mktemp("margins") / "run"
    file = run.with_name("mine.toml")
    file.write_text("version = 9\n" + "".join(f"[{name}]\nmargin = {value}\n" for name, value in MOVED.items()))
    audit_study(study, run, engine=LocalEngine(1))
    assert margins_shown(run) == drawn_of(OURS)
    before = rules(run)
    with patch("exegete.runs.pieces.run_cell", side_effect=AssertionError("a cell was run again")):
        audit_study(study, run, file, engine=LocalEngine(1))
    return Judged(run, before)


def drawn_of(margins: dict[str, float]) -> list[set[float]]:
    """What the figures must carry."""
    return [set(margins.values()), {margins["reads"], margins["ranks"]}]


def margins_shown(run: Path) -> list[set[float]]:
    """What the figures in a run's folder carry."""
    kept = [json.loads((run / "figures" / f"{name}.json").read_text())["drawings"][name] for name in DRAWN]
    return [thresholds(drawing["carried"]) for drawing in kept]


def thresholds(carried: str) -> set[float]:
    return {row["threshold"] for row in json.loads(carried)} - {None}


def rules(run: Path) -> list[set[str]]:
    """The dashed lines of the figures in a run's folder."""
    drawn = [(run / "figures" / f"{name}_{name}.svg").read_text() for name in DRAWN]
    return [set(re.findall(r"<line[^>]*stroke-dasharray[^>]*>", svg)) for svg in drawn]


def said_in(text: str) -> set[tuple[str, float]]:
    return {(name, float(number)) for name, number in SAID.findall(html.unescape(text))}


OF_READINGS = {("M", THEIRS["reads"]), ("Γ", THEIRS["ranks"])}
WANTED = OF_READINGS | {("F", THEIRS["carries"])}


@pytest.mark.slow
def test_figures_in_the_folder_and_in_python_show_the_margins_of_the_run(judged: Judged) -> None:
    assert margins_shown(judged.run) == drawn_of(THEIRS)
    every = zip(DRAWN, judged.rules, rules(judged.run), drawn_of(THEIRS), strict=True)
    for name, before, after, wanted in every:
        assert before
        assert before != after
        chart = Run.read(judged.run)[name].figure(name).to_dict(validate=False)
        assert thresholds(chart["usermeta"]["numbers"]) == wanted


@pytest.mark.slow
def test_every_page_says_the_margins_of_the_run(judged: Judged) -> None:
    captions = [table.caption for table in headlines(judged.run)]
    assert [said_in(caption) for caption in captions] == [WANTED, OF_READINGS]
    page = write_run_report(judged.run).read_text(encoding="utf8")
    assert said_in(page) == WANTED
    for name, value in THEIRS.items():
        assert str(load_criteria()[name]) not in html.unescape(page)
        assert all_tests()[name].criterion.format(margin=value) in html.unescape(page)
        assert f"margin {value:.3f}" in page
    for value in OURS.values():
        assert f"margin {value:.3f}" not in page


@pytest.mark.parametrize(("gamma", "said"), [(0.6, "Read LRP"), (0.5, "Nothing that was asked orders words well")])
def test_what_is_read_instead_has_the_margin_of_attention(gamma: float, said: str) -> None:
    grades = grading(values_of(0.3), edges=(THEIRS["ranks"], 0.5))
    known = known_of(grades, instead={("t", "m"): (readable("lrp", gamma),)})
    assert said in answer([verdict("reads", "holds"), verdict("ranks", "fails")], known=known)
    assert gamma < OURS["ranks"]


@pytest.mark.parametrize(("partly", "answer"), [(0.5, "no"), (0.4, "partly")])
def test_what_is_partly_is_an_edge_of_the_criteria(tmp_path: Path, partly: float, answer: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f"version = 9\n[ranks]\npartly = {partly}\n")
    criterion = load_criteria(file)["ranks"]
    assert (criterion.margin, criterion.partly) == (OURS["ranks"], partly)
    every = [
        Unjudged(all_tests()[name], "t", "m", load_criteria(file)[name], Varied({WAYS[0]: values}, {}, 0.0))
        for name, values in (("reads", around(0.6)), ("ranks", around(0.45)), ("carries", around(0.6)))
    ]
    study = Study.model_validate({"name": "s", "tasks": ["t"], "models": ["m"], "experiments": [{"name": "mediation"}]})
    (grades,) = gradings(every, study).values()
    assert grades.ranks.edges == (criterion.margin, partly)
    assert grade(grades) == answer


def test_a_run_without_criteria_and_a_chart_of_none_have_the_declared_margins(tmp_path: Path) -> None:
    assert margins_of(tmp_path) == {name: test.margin for name, test in all_tests().items()}
    assert margin("ranks") == OURS["ranks"]
    with show_margins(THEIRS):
        assert margin("ranks") == THEIRS["ranks"]
    assert margin("ranks") == OURS["ranks"]


@pytest.mark.parametrize("page", ["concepts/how-we-decide.md", "concepts/readings.md", "tutorial.md"])
def test_pages_say_what_tests_declare(page: str) -> None:
    said = re.findall(r"(?:[MΓF] [<>]|[Aa]bove) (\d*\.\d+)", (ROOT / "docs" / page).read_text(encoding="utf8"))
    assert set(map(float, said)) <= {*OURS.values(), all_tests()["ranks"].partly}
    assert {OURS["reads"], OURS["ranks"]} <= set(map(float, said))
