"""The scorecard: every number against its margin, as a drawing, in words, as a file; and tests that don't decide."""

import io
import re
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from exegete.answers.pages.card import EDGE, WIDTH, card, gauge, strip
from exegete.answers.pages.verdicts import (
    by_group,
    for_reader,
    informing,
    name_of_test,
    questions_of_tests,
    scorecards,
    title_of,
    unasked_tests,
    verdicts,
)
from exegete.report.labels import shorten_paths
from exegete.report.section import Verdict, scorecard
from tests.answers.pages.runs import asked, audit
from tests.answers.pages.test_report_html import HOSTILE, Reader


def line(**changes: Any) -> Verdict:
    given: dict[str, Any] = {
        "name": "hard_to_fake", "verdict": "fails", "statistic": 0.2, "interval": (0.1, 0.3), "chance": 0.0, "n": 1200,
        "criterion": "it is above 0.5", "paper": "W&P", "threshold": 0.5, "level": 0.99, "about": "this recipe",
    }  # fmt: skip
    return Verdict(**(given | changes))


def xs(drawn: str, kind: str) -> list[float]:
    found = re.search(rf'<(?:line x1="([^"]+)" x2="([^"]+)"|circle cx="([^"]+)")[^>]*class="{kind}"', drawn)
    assert found is not None
    return [float(x) for x in found.groups() if x is not None]


def test_a_gauge_puts_numbers_in_proportion() -> None:
    drawn = gauge(line(), "g")
    scale = (WIDTH - 2 * EDGE) / 0.5  # from chance to the margin
    assert xs(drawn, "chance") == pytest.approx([EDGE, EDGE])
    assert xs(drawn, "margin") == pytest.approx([WIDTH - EDGE] * 2)
    assert xs(drawn, "bar") == pytest.approx([EDGE + 0.1 * scale, EDGE + 0.3 * scale], abs=0.06)
    assert xs(drawn, "dot") == pytest.approx([EDGE + 0.2 * scale], abs=0.06)
    assert "0.200, interval 0.100 to 0.300; margin 0.500; chance 0.000: fails" in drawn


@pytest.mark.parametrize(
    "changes",
    [{"statistic": None}, {"interval": (None, None)}, {"interval": (0.1, float("inf"))}],
)
def test_without_an_interval_there_is_no_gauge(changes: dict[str, Any]) -> None:
    assert gauge(line(**changes), "g") == ""


def test_a_gauge_of_one_number_is_drawn_in_the_middle() -> None:
    drawn = gauge(line(statistic=1.0, interval=(1.0, 1.0), chance=None, threshold=None), "g")
    assert xs(drawn, "dot") == [WIDTH / 2]
    assert "margin" not in drawn


def test_a_card_says_everything_and_its_file_too() -> None:
    lines = [
        line(section="adversary_training", settle="5 seeds", doubt="few", question="Can it?"),
        line(name="plausible", verdict="cannot tell", settled_by="texts", votes=False),
        line(name="needed", verdict="not testable", statistic=None, interval=(None, None), n=0, doubt="a checkpoint"),
    ]
    drawn = card(lines, "Table 1")
    for said in (
        "✗ fails", "? inconclusive (texts)", "○ not testable", "0.200 [0.100, 0.300]", "1,200", "interval at 99 %",
        "it is above 0.5", "To settle it: </strong>5 seeds", "In doubt: </strong>few", "a checkpoint",
        "One more test informs", "<strong>People</strong>: 1 is inconclusive", "this recipe", "W&amp;P", "Can it?",
        'href="#adversary-training"', "hard to fake",
    ):  # fmt: skip
        assert said in drawn, said
    assert drawn.count('class="quiet"') == 1
    assert drawn.index("hard to fake") < drawn.index("needed") < drawn.index("<details")  # what decides comes first
    assert "<details" not in card(lines[:1], "Table 1")
    assert '<details class="informs" open>' in card(lines[1:2], "Table 1")  # where nothing decides, nothing is hidden
    frame = scorecard(lines).frame
    assert frame["settle"].to_list() == ["5 seeds", "", ""]
    assert frame["votes"].to_list() == [True, False, True]
    assert frame["threshold"].to_list() == [0.5] * 3


def test_models_have_a_heading_each_and_ids_stay_unique() -> None:
    lines = [line(of="b"), line(of="a"), line(of="b")]
    read = Reader(card(lines, "Table 1"))
    groups = [th for th in read.all("th") if th.get("scope") == "rowgroup"]
    assert len(groups) == 2
    ids = [attributes["id"] for _, attributes in read.elements if "id" in attributes]
    assert len(ids) == len(set(ids)) == 3
    drawn = card(lines, "Table 1")
    assert drawn.index(">b</th>") < drawn.index(">a</th>")  # in the order of the study


def test_hostile_words_are_text_on_a_card() -> None:
    words = dict.fromkeys(("name", "criterion", "paper", "of", "question", "about", "settle", "doubt"), HOSTILE)
    lines = [line(**words)]
    assert "<script" not in card(lines, HOSTILE) + strip(lines)


def test_planted_words_make_no_other_model() -> None:
    tests = [asked("faithful"), asked("known_answer", task="sst:planted=token")]
    lines = verdicts(audit(*tests), ["faithfulness"])
    assert [v.of for v in lines] == ["", ""]
    assert [v.section for v in lines] == ["faithfulness", ""]
    several = [asked("known_answer", task=f"sst:planted={kind}") for kind in ("token", "pair")]
    assert [name_of_test(each, several) for each in several] == ["known_answer (token)", "known_answer (pair)"]
    assert [title_of(each, several) for each in several] == [
        "finds planted words (token)",
        "finds planted words (pair)",
    ]


def test_several_models_are_told_apart() -> None:
    lines = verdicts(audit(asked(model="bilstm"), asked(model="average")))
    assert [v.of for v in lines] == ["bilstm: tanh, softmax", "average: tanh, softmax"]
    (table,) = scorecards(audit(asked(model="bilstm"), asked(model="average")))
    assert table.cells()[0][0] == "matches the best method · bilstm: tanh, softmax"
    assert table.frame["test"][0] == "faithful · bilstm: tanh, softmax"  # its key, for machines
    assert [column.title for column in table.shown] == ["test", "verdict", "found", "needs", "n"]


def test_a_test_without_a_number_is_a_line_too() -> None:
    lines = verdicts(audit(asked(verdict="not testable", statistic=None, interval=(None, None), chance=None, n=0)))
    assert scorecard(lines).frame.select("low", "high", "n").row(0) == (None, None, None)
    back = pl.read_csv(io.StringIO(scorecard(lines).frame.write_csv()))
    assert back["verdict"].to_list() == ["not testable"]


def test_questions_are_asked_once() -> None:
    said = questions_of_tests(audit(asked(), asked(model="average")))
    assert said == [
        "matches the best method (faithful): Is it? Holds if it is at most 0.05 below the best (Jain & Wallace 2019)."
    ]


def test_a_terminal_shows_what_decides_and_counts_the_rest() -> None:
    told = audit(asked("reads"), asked("agrees", votes=False), asked("plausible", votes=False, verdict="not testable"))
    assert [table.title for table in scorecards(told)] == ["What decides"]
    assert scorecards(told)[0].cells() == [
        ["acts through its weight (M)", "✗ fails", "−0.20 [−0.25, −0.15]", "> −0.05", "120"]
    ]
    titles = [table.title for table in scorecards(told, everything=True)]
    assert titles == ["What decides", "Words that matter", "People"]
    assert informing(told) == 1
    assert "marks what people mark" in unasked_tests(told)
    assert not {"agrees with saliency", "acts through its weight (M)"} & set(unasked_tests(told))


def test_where_nothing_decides_a_terminal_shows_all() -> None:
    told = audit(asked("agrees", votes=False))
    assert [table.title for table in scorecards(told)] == ["Words that matter"]
    assert informing(told) == 0


def test_a_test_of_a_plugin_that_is_gone_is_told_by_its_name() -> None:
    _, (group,) = by_group([line(name="of_mine", votes=False)])
    assert group[1][0].label == "of mine"


def test_a_reader_sees_names_of_files_without_their_folders() -> None:
    task, model = "file:/data/of/this/year/reviews.csv:label=stars", "/models/of/mine/best"
    doubt = f"task '{task}' has no rationales"
    told = audit(asked("plausible", task=task, model=model, doubt=doubt))
    told = for_reader(replace(told, answer=f"This is about {model} on {task}.", untested=(doubt,)))
    short = "task 'file:…/reviews.csv:label=stars' has no rationales"
    assert told.answer == "This is about …/best on file:…/reviews.csv:label=stars."
    assert (told.untested, told.tests[0].doubt) == ((short,), short)
    assert told.tests[0].task == task  # what machines read stays


def test_files_of_one_name_keep_their_folders() -> None:
    tasks = ["file:/a/of/it/r.csv", "file:/b/of/it/r.csv"]
    assert shorten_paths(" ".join(tasks), tasks) == " ".join(tasks)
    assert shorten_paths("hf:owner/name of hf:owner/name", ["hf:owner/name"]) == "hf:owner/name of hf:owner/name"
