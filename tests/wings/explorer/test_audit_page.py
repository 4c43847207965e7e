"""An audit that is run from the page: its progress, its scorecard, which is Python's; and one that is stopped."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import exegete
from exegete.answers.audit import judge_run
from exegete.runs.results import Run
from tests.browser import Browser
from tests.studied import reviews
from tests.wings.explorer.serving import Running, running
from tests.wings.explorer.test_views_page import opened

pytestmark = pytest.mark.slow


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """A small model that knows what it was trained on, in a folder where runs may be written."""
    monkeypatch.chdir(tmp_path)
    task = f"file:{reviews(tmp_path / 'reviews.csv')}:text=review,label=sentiment"
    exegete.train("bilstm:size=8,hidden=8", task, training={"epochs": 2}, out=tmp_path / "model")
    with running([str(tmp_path / "model")]) as found:
        yield found


def test_an_audit_is_run_from_the_page(browser: Browser, served: Running, tmp_path: Path) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    with opened(browser, served, "#view=scorecard") as tab:
        tab.set_default_timeout(90_000)
        button = tab.get_by_role("button", name="Run the audit")
        button.wait_for()
        found = axe.Axe().run(tab, options={"resultTypes": ["violations"]})
        assert [(v["id"], v["nodes"][0]["html"][:200]) for v in found.response["violations"]] == []
        assert tab.get_by_role("button", name="Data", exact=True).is_hidden()  # there is no run yet
        seen = "window.seen = []; const p = document.querySelector('exegete-audit .progress');" + (
            "new MutationObserver(() => window.seen.push(p.textContent)).observe(p, {childList: true, subtree: true})"
        )
        tab.evaluate(seen)
        button.click()
        tab.locator(".one-card .card").first.wait_for()
        (run,) = (tmp_path / "runs").iterdir()
        audit = judge_run(Run.read(run).study, run)
        said = tab.locator(".card .verdict").all_text_contents()
        assert sorted(each.partition(" ")[2] for each in said) == sorted(test.outcome for test in audit.tests)
        assert any("faithfulness" in each for each in tab.evaluate("seen"))
        assert not any(str(tmp_path) in each for each in tab.evaluate("seen"))  # folders are nobody's business
        tab.get_by_role("button", name="Data", exact=True).click()  # it is a run now
        tab.locator(".texts tbody tr").first.wait_for()
    answer = served.client.post("/api/follow/audit", json={"model": 0}).text
    assert "has its scorecard" in json.loads(answer.partition("data: ")[2])["error"]


def test_one_that_is_stopped_keeps_what_is_done_and_can_go_on(browser: Browser, served: Running) -> None:
    with opened(browser, served, "#view=scorecard") as tab:
        tab.set_default_timeout(90_000)
        tab.get_by_role("button", name="Run the audit").click()
        tab.locator("exegete-audit .progress span:not(:has-text('Starting'))").wait_for()
        again = served.client.post("/api/follow/audit", json={"model": 0}).text
        assert "being audited already" in again
        tab.get_by_role("button", name="Stop").click()
        tab.get_by_text("Stopped; what is done is kept.").wait_for()
        tab.wait_for_function("async () => (await fetch('api/models')).ok")  # and it answers
        assert served.post("open", text="a fine b")["keys"] == ["a", "fine", "b"]
        assert served.client.get("/api/models").json()[0]["run"] is False
