"""What a browser may not name, and what it may not take: files, settings, time, memory. Each has a sentence."""

import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter

from exegete.base.errors import UsageError
from exegete.base.pauses import call_at_pauses, pause
from exegete.runs.engine.warm import Warm
from exegete.tasks.tokenizers import penn_words
from exegete.wings.explorer import messages, worker_answers
from exegete.wings.explorer.messages import Message
from tests.answers.explained_model import TEXT
from tests.wings.explorer.serving import Running, event_of, until

SECRET = "4111-1111"
LONG = " ".join(["a b c d e f g h"] * 100)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Somebody's own table, which no browser should see."""
    path = tmp_path / "cards.csv"
    path.write_text(f"example,token,word,method,score\n0,0,{SECRET},x,1\n")
    return path


def specs(table: Path) -> list[str]:
    """Methods that no page offers: files, settings, classes, and much."""
    return [
        f"given:file={table}",
        f"given:file={table},method=x",
        f" given:file={table}",
        "given",
        "lime:samples=2000000000",
        "kernel_shap:samples=2000000000",
        "smoothgrad:samples=100000000",
        "integrated_gradients:steps=1000000,most=1000000",
        "attention:",
        "exegete.importance.lime:Lime",
        "os:system",
        "../../etc/passwd",
        "(a+)+$",
        "",
    ]


@pytest.mark.parametrize("question", ["explain", "differ", "follow/explain", "follow/differ"])
def test_methods_are_those_that_the_page_offers(server: Running, table: Path, question: str) -> None:
    started = time.monotonic()
    for spec in specs(table):
        asked = {"model": 0, "text": TEXT, "methods": ["attention", spec]}
        answer = server.client.post(
            f"/api/{question}", json=asked | ({"second": "a b"} if "differ" in question else {})
        )
        assert answer.status_code == (400 if len(spec) <= 100 else 422), spec  # a longer name is no method's
        assert answer.status_code == 422 or answer.json()["error"].startswith(f"unknown method '{spec}'"), spec
        assert SECRET not in answer.text
        assert "Traceback" not in answer.text
    assert time.monotonic() - started < 10  # nothing of it is computed


def test_what_is_offered_is_answered_whatever_its_settings(server: Running) -> None:
    offered = [method["name"] for method in server.client.get("/api/models").json()[0]["methods"]]
    assert "leave_one_out:of=logit" in offered
    found = server.follow("explain", text=TEXT, methods=[name for name in offered if name != "kernel_shap"])
    assert found[-1][0] == "found"


def test_a_site_a_class_or_a_search_names_no_file(server: Running, table: Path) -> None:
    for question, asked in (
        ("open", {"site": str(table)[:100]}),
        ("explain", {"target": str(table)}),
        ("explain", {"contrast": str(table)}),
    ):
        answer = server.client.post(f"/api/{question}", json={"model": 0, "text": TEXT} | asked)
        assert answer.status_code == 400
        assert SECRET not in answer.text


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("permute", {"count": 101}),
        ("permute", {"first": 1_000}),
        ("permute", {"first": 10**12}),
        ("rewrite", {"how": "permute", "draw": 1_000}),
        ("rewrite", {"how": "remove", "count": 10**9}),
        ("weigh", {"rows": [{"row": 10**9, "weights": []}]}),
        ("weigh", {"rows": [{"row": 0, "weights": [0.0] * 2_049}]}),
        ("cut", {"word": 10**9}),
        ("open", {"step": 10**9}),
        ("follow/adversary", {"steps": 2_001}),
        ("follow/adversary", {"count": 11}),
        ("follow/adversary", {"epsilon": 1e308}),
        ("explain", {"methods": ["attention"] * 31}),
        ("explain", {"methods": ["a" * 101]}),
        ("explain", {"by": "../x"}),
    ],
)
def test_sizes_are_bounded(server: Running, question: str, asked: dict[str, Any]) -> None:
    answer = server.client.post(f"/api/{question}", json={"model": 0, "text": TEXT} | asked)
    assert answer.status_code == 422
    assert set(answer.json()) == {"error"}


def test_every_field_of_every_message_is_bounded() -> None:
    """A number has two ends, a text and a list have a longest: of all messages, also of those that come to be."""
    kinds = [each for each in vars(messages).values() if isinstance(each, type) and issubclass(each, Message)]
    assert len(kinds) > 10
    for kind in kinds:
        schema = TypeAdapter(kind).json_schema()
        parts = [schema, *schema.get("$defs", {}).values()]
        for name, field in ((n, f) for part in parts for n, f in part.get("properties", {}).items()):
            for each in field.get("anyOf", [field]):
                while each.get("type") == "array":
                    assert "maxItems" in each, f"{kind.__name__}.{name}"
                    each = each["items"]
                if each.get("type") in ("integer", "number"):
                    low, high = {"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}
                    assert low & each.keys(), f"{kind.__name__}.{name}"
                    assert high & each.keys(), f"{kind.__name__}.{name}"
                if each.get("type") == "string" and "enum" not in each and "const" not in each:
                    assert "maxLength" in each, f"{kind.__name__}.{name}"


def test_texts_have_limits_with_sentences_of_their_own(server: Running) -> None:
    many = server.client.post("/api/open", json={"model": 0, "text": "a " * 1_001})
    assert many.status_code == 400
    assert many.json()["error"] == "the explorer reads texts of up to 1000 words: shorten the text"
    matrix = server.client.post("/api/open", json={"model": 1, "text": "a " * 65, "site": "encoder.0"})
    assert "a matrix of weights is shown for texts of up to 64 words" in matrix.json()["error"]


def test_a_long_word_is_cut_in_no_time() -> None:
    started = time.monotonic()
    assert len(penn_words("n't" * 6_000)) == 6_000
    assert time.monotonic() - started < 2


def test_time_and_memory_of_a_question_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    with call_at_pauses(worker_answers.within_limits()):
        pause()
    monkeypatch.setattr(worker_answers, "SECONDS", -1)
    with (
        pytest.raises(UsageError, match="this takes longer than -1 seconds: shorten the text"),
        call_at_pauses(worker_answers.within_limits()),
    ):
        pause()
    monkeypatch.setattr(worker_answers, "SECONDS", 300)
    held = iter([0, 5 << 30])
    monkeypatch.setattr(worker_answers, "_resident", lambda: next(held))
    with pytest.raises(UsageError, match="more than 4 GB of memory"), call_at_pauses(worker_answers.within_limits()):
        pause()


def test_memory_is_that_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 10 << 20 < worker_answers._resident() < 100 << 30
    monkeypatch.setattr(worker_answers, "STATUS", Path("nowhere"))
    assert 10 << 20 < worker_answers._resident() < 100 << 30


def test_pauses_are_made_by_passes_and_end_the_work() -> None:
    from tests.models.contracted import case

    class Enough(Exception):  # noqa: N818
        pass

    def enough() -> None:
        raise Enough

    for kind in ("bilstm", "transformer", "hf", "own"):
        model, examples = case(kind)
        batch = model.collate(examples[:2])
        own = model.logits(batch)
        with call_at_pauses(enough):
            for work in (model.logits, model.trace):
                with pytest.raises(Enough):
                    work(batch)
        assert model.logits(batch).equal(own)  # and nothing is left of it


def test_checks_are_those_of_their_block() -> None:
    seen: list[str] = []
    with call_at_pauses(lambda: seen.append("outer")):
        with call_at_pauses(lambda: seen.append("inner")):
            pause()
        pause()
    pause()
    assert seen == ["outer", "inner", "outer"]


def test_answers_that_are_kept_have_a_longest(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    model = server.models[0]
    server.post("open", text="a b c d")
    before = len(model._kept)
    assert before == len(model._sizes) > 0
    monkeypatch.setattr("exegete.wings.explorer.workers.BYTES", 300)
    server.post("open", text="a b c d e")
    assert sum(model._sizes.values()) <= 300
    assert model._kept.keys() == model._sizes.keys()


# What follows asks a real server for much, and leaves.


def at_rest(server: Running) -> Warm:
    """The worker for what takes long, when it has measured all methods."""
    until(lambda: all(m.milliseconds is not None for m in server.models[1].about.methods if not m.cheap))
    slow = server.models[1]._slow
    assert slow is not None
    until(lambda: slow.waiting == 0)
    return slow


@pytest.mark.slow
def test_work_stops_when_its_client_goes(server: Running) -> None:
    slow = at_rest(server)
    asked = {"model": 1, "text": LONG, "methods": ["kernel_shap"]}  # which takes half a minute
    with server.client.stream("POST", "/api/follow/explain", json=asked) as answer:
        parts = answer.iter_text()
        assert "kernel_shap" in next(parts)
        time.sleep(0.5)
        assert slow.waiting == 1
    started = time.monotonic()
    until(lambda: slow.waiting == 0)
    assert time.monotonic() - started < 3


@pytest.mark.slow
def test_an_answer_that_nobody_waits_for_is_not_computed(server: Running) -> None:
    quick = server.models[1]._quick
    asked = {"model": 1, "text": " ".join(TEXT.split() * 5), "site": "encoder.0"}
    with (
        pytest.raises(httpx.ReadTimeout),
        httpx.Client(base_url=server.address, cookies=dict(server.client.cookies), timeout=0.05) as impatient,
    ):
        impatient.post("/api/permute", json=asked)
    started = time.monotonic()
    until(lambda: quick.waiting == 0)
    assert time.monotonic() - started < 2
    assert server.post("open", model=1, text=TEXT)["site"] == "attention"


@pytest.mark.slow
def test_a_newer_question_of_a_page_stops_the_older(server: Running) -> None:
    at_rest(server)
    asked = {"model": 1, "text": f"{LONG} a", "methods": ["kernel_shap"]}
    page = {"exegete-page": "one"}
    with server.client.stream("POST", "/api/follow/explain", json=asked, headers=page) as older:
        parts = older.iter_text()
        next(parts)
        started = time.monotonic()
        newer = server.client.post("/api/follow/explain", json=asked | {"text": TEXT}, headers=page)
        assert time.monotonic() - started < 5
        assert event_of(newer.text.strip().split("\n\n")[-1])[0] == "found"
        kind, said = event_of("".join(parts).strip().split("\n\n")[-1])
        assert (kind, said["error"]) == (
            "wrong",
            "a newer question of the same page took the place of this one: ask again",
        )


@pytest.mark.slow
def test_other_pages_stop_nobody(server: Running) -> None:
    asked = {"model": 1, "text": "a b c d e f g h", "methods": ["lime"]}
    with server.client.stream("POST", "/api/follow/explain", json=asked, headers={"exegete-page": "one"}) as first:
        for other in ({"exegete-page": "two"}, {}):
            newer = server.client.post("/api/follow/explain", json=asked | {"text": TEXT}, headers=other)
            assert "event: found" in newer.text
        assert "event: found" in "".join(first.iter_text())
