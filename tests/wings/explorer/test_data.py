"""The texts of a run: every number is that of its parquet, sorted and searched as a loop would."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
import torch
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exegete.answers.audit import judge_run
from exegete.base.errors import ExegeteError, UsageError
from exegete.base.ties import levels
from exegete.runs.results import Run
from exegete.wings.explorer.data import Data, frequent_words, page_of_texts, run_of
from exegete.wings.explorer.messages import RunTexts, RunWords
from exegete.wings.explorer.queue import Busy, Room
from exegete.wings.explorer.replies import ServedCell
from exegete.wings.explorer.run_texts import JudgedRun, mean_shares, prepare_run
from exegete.wings.explorer.server import REPORT_POLICY, make_app
from tests.answers.pages.test_texts import tau_b

pytestmark = pytest.mark.slow  # a server, a model and a run of their own

CELL = ServedCell(cell=0, label="x", texts=0, scored=0, searched=0, method="lrp", method_label="LRP")
MANY = 100_000


@pytest.fixture(scope="module")
def opened(run: Path, tmp_path_factory: pytest.TempPathFactory) -> JudgedRun:
    return JudgedRun(run, tmp_path_factory.mktemp("tables"))


@pytest.fixture(scope="module")
def client(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A run, a model that is none, and a run that is being written."""
    half = tmp_path_factory.mktemp("half")
    (half / "study.json").write_text("{}")
    served: list[Any] = [SimpleNamespace(data=data) for data in (Data(run), None, Data(half))]
    with TestClient(make_app(served)) as found:
        yield found
    for each in served:
        if each.data is not None:
            each.data.close()


def ask(client: TestClient, question: str, **asked: Any) -> Any:
    answer = client.post(f"/api/{question}", json={"run": 0} | asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def scores(run: Path, method: str, seed: int) -> dict[int, list[float]]:
    """Of one method, by text, from the stage that the agreement experiment names."""
    cell = json.loads((run / "manifest.json").read_text())["cells"][seed]
    stage = json.loads((run / "stages" / cell["experiments"]["agreement"]["test"] / "stage.json").read_text())
    rows = pl.read_parquet(run / "stages" / stage["scores"][method] / "*.parquet")
    return dict(zip(rows["example"], rows["scores"].to_list(), strict=True))


def test_every_number_of_a_text_is_that_of_the_run(opened: JudgedRun, run: Path) -> None:
    for seed in (0, 1):
        found = opened.texts(seed)
        rows = pl.read_parquet(found["texts"]).rows(named=True)
        cell = json.loads((run / "manifest.json").read_text())["cells"][seed]
        predicted = pl.read_parquet(run / "stages" / cell["predict"] / "*.parquet").rows(named=True)
        own, other = (scores(run, name, seed) for name in ("attention", found["cell"]["method"]))
        searched = Run.read(run)["adversary_search"].rows.filter(pl.col("seed") == seed, pl.col("epsilon") == 0.01)
        jsd = dict(searched.select("example", "jsd").iter_rows())
        assert [row["example"] for row in rows] == [row["example"] for row in predicted]
        assert found["cell"]["searched"] == sum(value == value for value in jsd.values()) > 0
        for row, before in zip(rows, predicted, strict=True):
            at, words = row["example"], before["words"]
            place = ["bad", "good"].index(before["gold"])
            assert row["text"].split(" ") == words
            assert row["error"] == pytest.approx(1 - before["probabilities"][place], abs=1e-15)
            assert row["confidence"] == max(before["probabilities"])
            assert row["wrong"] == (before["gold"] != before["predicted"])
            assert row["jsd"] == pytest.approx(jsd.get(at), nan_ok=False) or jsd.get(at) != jsd.get(at)
            sizes = [abs(value) for value in other[at]]
            ranks = [levels(torch.tensor(each)).tolist() for each in (own[at], sizes)]  # rounding makes no order
            if min(len(set(each)) for each in ranks) == 1:
                assert row["tau"] is None
            else:
                assert row["tau"] == pytest.approx(tau_b(*ranks), abs=1e-12)
                assert row["top_attention"] == words[own[at].index(max(own[at]))]
                assert row["top_other"] == words[sizes.index(max(sizes))]


def test_the_importance_of_a_word_is_its_mean_over_the_texts() -> None:
    frame = pl.DataFrame(
        {
            "example": [0, 1, 2],
            "words": [["a", "b", "a"], ["b", "c"], ["a", "c"]],
            "attention": [[0.5, 0.25, 0.25], [0.1, 0.9], [0.5, 0.5]],
            "other": [[-2.0, 1.0, 1.0], [3.0, -1.0], [0.0, 0.0]],
        }
    )
    found = {row[0]: row[1:] for row in mean_shares(frame).iter_rows()}
    assert found["a"] == (2, pytest.approx((1.5 + 0.75) / 2), pytest.approx((1.5 + 0.75) / 2))
    assert found["b"] == (2, pytest.approx((0.75 + 0.2) / 2), pytest.approx((0.75 + 1.5) / 2))
    assert found["c"] == (1, pytest.approx(1.8), pytest.approx(0.5))  # the text of zeros says nothing
    assert sum(n * a for n, a, _ in found.values()) == pytest.approx(5)  # an even share is 1


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A hundred thousand texts."""
    draw = random.Random(0)
    vocabulary = [f"w{i}" for i in range(300)]
    rows = [
        {
            "example": i, "gold": "a", "predicted": "a" if i % 3 else "b", "n": 1 + i % 40, "wrong": i % 3 == 0,
            "text": " ".join(draw.choices(vocabulary, k=1 + i % 40)), "confidence": draw.random(),
            "error": draw.random(), "tau": draw.random() if i % 5 else None, "top_attention": None, "top_other": None,
            "jsd": None,
        }
        for i in range(MANY)
    ]  # fmt: skip
    path = tmp_path_factory.mktemp("many") / "texts.parquet"
    pl.DataFrame(rows, infer_schema_length=None, schema_overrides={"jsd": pl.Float64}).write_parquet(path)
    return path, rows


@pytest.mark.parametrize("sort", ["tau", "jsd", "confidence", "error", "n"])
@pytest.mark.parametrize("turned", [False, True])
def test_a_page_of_many_is_that_of_a_loop(many: tuple[Path, list[Any]], sort: Any, turned: bool) -> None:
    path, rows = many
    found = page_of_texts(path, RunTexts(run=0, sort=sort, turned=turned, first=70, count=30, search="W7 w3"), CELL)
    match = [row for row in rows if {"w7", "w3"} <= set(row["text"].split())]
    down = (sort in ("jsd", "error", "n")) != turned
    known = [row for row in match if row[sort] is not None]
    known.sort(key=lambda row: (-row[sort] if down else row[sort], row["example"]))
    ordered = known + [row for row in match if row[sort] is None]
    assert found["total"] == len(match) > 100
    assert [row["example"] for row in found["rows"]] == [row["example"] for row in ordered[70:100]]


def test_only_errors_and_beyond_the_end(many: tuple[Path, list[Any]]) -> None:
    path, rows = many
    wrong = page_of_texts(path, RunTexts(run=0, only="wrong", count=200), CELL)
    assert wrong["total"] == sum(row["wrong"] for row in rows)
    assert all(row["wrong"] for row in wrong["rows"])
    assert page_of_texts(path, RunTexts(run=0, only="right", count=1), CELL)["total"] == MANY - wrong["total"]
    assert page_of_texts(path, RunTexts(run=0, first=MANY), CELL)["rows"] == []
    assert page_of_texts(path, RunTexts(run=0, search="w.*"), CELL)["total"] == 0  # a word, and no pattern


def test_words_by_what_each_likes(tmp_path: Path) -> None:
    frame = pl.DataFrame({"word": ["a", "b", "c"], "count": [9, 8, 2], "attention": [1, 3, 9], "other": [2, 1, 0]})
    frame.write_parquet(tmp_path / "w.parquet")

    def order(**asked: Any) -> list[str]:
        return [row["word"] for row in frequent_words(tmp_path / "w.parquet", RunWords(run=0, **asked), CELL)["rows"]]

    assert order(least=1) == ["a", "b", "c"]
    assert order(least=1, order="loved") == ["c", "b", "a"]
    assert order(least=3, order="needed") == ["a", "b"]
    assert order(least=1, count=1) == ["a"]


def test_the_server_answers_page_by_page(client: TestClient, run: Path) -> None:
    about = ask(client, "run")
    assert about["report"]
    assert [label.rpartition(", ")[2] for label in about["cells"]] == ["seed 0", "seed 1"]
    first, second = (ask(client, "texts", cell=1, count=3, first=at) for at in (0, 3))
    seen = [row["example"] for row in first["rows"] + second["rows"]]
    assert len(set(seen)) == 6
    taus = [row["tau"] for row in first["rows"] + second["rows"]]
    assert taus == sorted(taus)
    assert first["cell"]["texts"] == first["total"] == Run.read(run)["agreement"].rows["example"].n_unique()
    words = ask(client, "words", least=2)
    assert words["rows"][0]["count"] == max(row["count"] for row in words["rows"])
    assert words["cell"]["method_label"]


def test_the_scorecard_is_that_of_the_audit(client: TestClient, run: Path) -> None:
    found = ask(client, "scorecard")
    audit = judge_run(Run.read(run).study, run)
    assert [test["verdict"] for test in found["tests"]] == [test.verdict for test in audit.tests]
    for test, ours in zip(found["tests"], audit.tests, strict=True):
        assert (test["statistic"], test["n"], test["votes"]) == (ours.statistic, ours.n, ours.votes)
        assert test["interval"] == list(ours.interval)
        assert test["chapter"] in ("agreement", "adversary-search")
        assert f'href="#{test["chapter"]}"' in found["html"]
    assert found["html"].count('class="judged"') == len(audit.tests)


def test_the_report_has_no_rights(client: TestClient, run: Path) -> None:
    answer = client.get("/runs/0/report")
    assert answer.text == (run / "report.html").read_text()
    assert answer.headers["content-security-policy"] == REPORT_POLICY
    assert "sandbox" in REPORT_POLICY
    assert "script" not in REPORT_POLICY
    for wrong in ("/runs/1/report", "/runs/7/report", "/runs/2/report"):
        assert client.get(wrong).status_code == 404
    for wrong in ("/runs/-1/report", "/runs/..%2F0/report", "/runs/x/report"):
        assert client.get(wrong).status_code in (404, 422)


def test_a_report_that_somebody_changed_is_not_shown(run: Path) -> None:
    page = run / "report.html"
    kept = page.read_bytes()
    try:
        page.write_bytes(kept + b"<script>alert(1)</script>")
        assert Data(run).page is None
    finally:
        page.write_bytes(kept)
    assert Data(run).page == page


def test_one_more_than_may_wait_is_told_so() -> None:
    room = Room(2)
    with room.place(), room.place():
        with pytest.raises(Busy, match="2 questions are waiting"), room.place():
            raise AssertionError
        assert room.taken == 2
    with room.place():
        assert room.taken == 1


@pytest.mark.parametrize(
    ("question", "asked", "status", "said"),
    [
        ("texts", {"run": 1}, 404, "there is no run 1: give its folder to `exegete serve`"),
        ("words", {"run": 5}, 404, "there is no run 5"),
        ("texts", {"cell": 2}, 400, "this run has 2 models, counted from 0: there is no 2"),
        ("run", {"run": 2}, 400, "is not complete (no manifest.json)"),
        ("texts", {"count": 201}, 422, "count: input should be less than or equal to 200"),
        ("texts", {"sort": "../../etc"}, 422, "sort: input should be"),
        ("texts", {"run": "/etc"}, 422, "run: input should be a valid integer"),
        ("texts", {"path": "x"}, 422, "path: extra inputs are not permitted"),
        ("words", {"count": 301}, 422, "count: input should be less"),
    ],
)
def test_what_can_not_be_asked_is_one_sentence(
    client: TestClient, question: str, asked: dict[str, Any], status: int, said: str
) -> None:
    answer = client.post(f"/api/{question}", json={"run": 0} | asked)
    assert answer.status_code == status
    assert said in answer.json()["error"]
    assert "/" not in answer.json()["error"].replace("../../etc", "")


NAMES = ["run", "cell", "sort", "turned", "search", "only", "first", "count", "order", "least", "../x"]
ANY = st.none() | st.booleans() | st.integers(-2, 300) | st.integers() | st.floats() | st.text(max_size=20)
LIKELY = st.sampled_from(["tau", "jsd", "n", "wrong", "all", "loved", "count", "fine", "0"])


@given(st.sampled_from(["run", "texts", "words", "scorecard"]), st.dictionaries(st.sampled_from(NAMES), ANY | LIKELY))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_sent_is_answered_or_refused(client: TestClient, question: str, asked: dict[str, Any]) -> None:
    body = json.dumps({"run": 0} | asked).encode("utf8", "surrogatepass")
    answer = client.post(f"/api/{question}", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (200, 400, 404, 422)
    if answer.status_code != 200:
        assert len(answer.json()["error"].splitlines()) == 1


def test_which_words_of_the_command_line_are_runs(
    run: Path, folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_of(str(run)) == run
    assert run_of(str(folders[0])) is None
    assert run_of("hf:some/name") is None
    monkeypatch.chdir(tmp_path)
    assert run_of(None) is None
    (tmp_path / "runs" / "audit").mkdir(parents=True)
    (tmp_path / "runs" / "audit" / "manifest.json").write_text("{}")
    assert run_of(None) == Path("runs/audit")


def test_a_run_without_scores_has_texts_and_a_sentence(run: Path, tmp_path: Path) -> None:
    answer = prepare_run(lambda _: None, str(run), str(tmp_path))
    opened = JudgedRun(run, tmp_path)
    opened.cells = [cell | {"experiments": {}} for cell in opened.cells]
    found = opened.texts(0)
    assert found["cell"]["method"] is None
    assert "no scores of attention" in found["cell"]["said"]
    assert not Path(found["words"]).exists()
    assert page_of_texts(Path(found["texts"]), RunTexts(run=0), ServedCell(**found["cell"]))["rows"][0]["tau"] is None
    with pytest.raises(UsageError, match="2 models"):
        answer("texts", {"cell": 9}, lambda _: None)
    with pytest.raises(ExegeteError, match="is not complete"):
        prepare_run(lambda _: None, str(tmp_path), str(tmp_path))
