"""The page in a browser, on a real server: what a hand does to the weights is what Python computes for them."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlencode

import pytest

import exegete
from tests.answers.explained_model import TEXT
from tests.browser import Browser
from tests.wings.explorer.serving import Running, until

pytestmark = pytest.mark.slow
WAIT = 60_000
CLOSE = 1e-4
AXE_RULES = {"resultTypes": ["violations"]}


@contextmanager
def opened(
    browser: Browser, server: Running, fragment: str = "", refused: str = "nothing", models: int = 2, **context: Any
) -> Iterator[Any]:
    """The page as somebody sees it who comes with the token; nothing is fetched from elsewhere, and nothing goes wrong
    but what is expected: a browser itself logs what a server refuses.
    """
    said: list[str] = []
    place = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | context)
    place.set_default_timeout(WAIT)
    tab = place.new_page()
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("console", lambda message: said.append(message.text))
    tab.on("request", lambda request: None if request.url.startswith(server.origin) else said.append(request.url))
    tab.goto(server.entrance + fragment)
    for model in range(models):
        panel(tab, model).locator("exegete-heat .exegete-heatmap").wait_for()
    yield tab
    place.close()
    assert [line for line in said if refused not in line] == []


def panel(tab: Any, model: int = 0) -> Any:
    return tab.locator("exegete-model").nth(model)


def settle(tab: Any, model: int = 0) -> None:
    """Until the server has answered what the page asked last."""
    tab.wait_for_load_state("networkidle")
    tab.wait_for_timeout(300)
    assert panel(tab, model).locator(".wrong:visible").all_inner_texts() == []


def weights(tab: Any, model: int = 0) -> list[float]:
    """As the page will ask for them: with all their digits."""
    found: list[float] = panel(tab, model).evaluate("(m) => m.weights(m.row)")
    return found


def shown(tab: Any, model: int = 0) -> list[float]:
    """The probabilities of the page, which shows three places of them."""
    values = panel(tab, model).locator(".effect > exegete-prediction .value")
    both = values.evaluate_all("(all) => all.map((v) => [v.dataset.value, v.textContent])")  # at one moment
    full = [float(value) for value, _ in both]
    assert [text.split("→")[1].strip() for _, text in both] == [f"{p:.3f}" for p in full]
    return full


def in_python(folder: Path | str, text: str, rows: dict[int, list[float]], site: str | None = None) -> list[float]:
    return exegete.lab(folder, text, site=site).weigh(rows).probabilities.tolist()


def drag(tab: Any, key: int, share: float, model: int = 0) -> None:
    """A bar, by the mouse, to a share of its height."""
    bar = panel(tab, model).locator(".bar").nth(key)
    bar.scroll_into_view_if_needed()
    box = bar.bounding_box()
    x = box["x"] + box["width"] / 2
    tab.mouse.move(x, box["y"] + box["height"] - 3)
    tab.mouse.down()
    tab.mouse.move(x, box["y"] + box["height"] * (1 - share), steps=8)
    tab.mouse.up()
    settle(tab, model)


def test_a_text_that_is_typed_is_predicted_and_explained(
    browser: Browser, server: Running, folders: tuple[Path, Path]
) -> None:
    with opened(browser, server) as tab:
        tab.fill("#text", "a b c a d")
        settle(tab)
        assert panel(tab).locator(".column .word").all_inner_texts() == ["a", "b", "c", "a", "d"]
        assert shown(tab) == pytest.approx(in_python(folders[0], "a b c a d", {}), abs=CLOSE)
        rows = panel(tab).locator(".exegete-heatmap .map tbody tr")
        assert rows.count() == 5  # the cheap methods
        assert "May attention be read here?" in panel(tab).locator(".conclusion").inner_text()


def test_a_weight_is_dragged_by_the_mouse(browser: Browser, server: Running, folders: tuple[Path, Path]) -> None:
    with opened(browser, server, f"#text={TEXT}") as tab:
        before = shown(tab)
        drag(tab, 1, 0.9)
        now = weights(tab)
        assert now[1] > 0.2
        assert sum(now) == pytest.approx(1, abs=1e-6)
        assert shown(tab) == pytest.approx(in_python(folders[0], TEXT, {0: now}), abs=CLOSE)
        assert shown(tab) != before
        found = exegete.lab(folders[0], TEXT).weigh({0: now})
        assert panel(tab).locator(".facts dd").all_inner_texts()[:2] == [f"{found.tvd:.3f}", f"{found.jsd:.3f}"]


@pytest.mark.parametrize("size", [(1280, 500), (390, 700)])
def test_the_prediction_stays_in_view_and_says_what_an_edit_did(
    browser: Browser, server: Running, folders: tuple[Path, Path], size: tuple[int, int]
) -> None:
    wide, tall = size
    with opened(browser, server, f"#text={TEXT}", viewport={"width": wide, "height": tall}) as tab:
        now = panel(tab).locator("exegete-now")
        own = shown(tab)
        assert f"{max(own):.2f}" in now.locator(".now-value").inner_text()
        assert "by the model’s own weights" in now.inner_text()
        panel(tab).locator("exegete-heat").scroll_into_view_if_needed()
        box = now.bounding_box()
        assert 0 <= box["y"] < tall / 3
        assert box["x"] + box["width"] <= wide
        drag(tab, 1, 0.9)
        found = exegete.lab(folders[0], TEXT).weigh({0: weights(tab)})
        until(lambda: "shuffled ones by" in now.inner_text())
        assert f"Your weights change it by {found.tvd:.2f}, shuffled ones by" in now.inner_text()
        panel(tab).evaluate(
            """(m) => {
            const own = m.opened, other = Object.keys(own.probabilities).find((one) => one !== own.prediction);
            m.result = {...m.result, flipped: true, prediction: other}; m.effect(); }"""
        )
        assert now.locator(".now-flip").inner_text() == "flipped"
        assert "It was" in now.inner_text()


def test_what_a_measure_means_is_told_by_pointer_and_key(browser: Browser, server: Running) -> None:
    with opened(browser, server, f"#text={TEXT}", viewport={"width": 390, "height": 700}) as tab:
        for place, word in enumerate(("TVD", "JSD")):
            term = panel(tab).locator(".facts .term").nth(place)
            meaning = term.locator(".meaning")
            assert not meaning.is_visible()
            term.hover()
            meaning.wait_for(state="visible")
            tab.mouse.move(2, 2)
            meaning.wait_for(state="hidden")
            tab.keyboard.press("Tab")  # from here on, focus is by key
            term.focus()
            meaning.wait_for(state="visible")
            assert {"TVD": "variation", "JSD": "Jensen"}[word] in meaning.inner_text()
            box = meaning.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 390
            term.blur()


def test_a_weight_is_moved_by_keys_and_a_locked_one_stays(
    browser: Browser, server: Running, folders: tuple[Path, Path]
) -> None:
    with opened(browser, server, f"#text={TEXT}") as tab:
        own = weights(tab)
        panel(tab).locator(".lock").nth(4).click()
        bar = panel(tab).locator(".bar").nth(0)
        bar.focus()
        for key in ("PageUp", "ArrowUp", "ArrowUp", "ArrowDown"):
            bar.press(key)
        settle(tab)
        now = weights(tab)
        assert now[0] == pytest.approx(own[0] + 0.11, abs=1e-6)
        assert now[4] == own[4]
        assert shown(tab) == pytest.approx(in_python(folders[0], TEXT, {0: now}), abs=CLOSE)
        assert bar.get_attribute("aria-valuetext").startswith(f"{now[0]:.3f}, the model’s own {own[0]:.3f}")
        panel(tab).get_by_label("others share what is left").uncheck()
        bar.press("Home")
        settle(tab)
        assert weights(tab) == [0.0, *now[1:]]
        assert "another sum" in panel(tab).locator(".facts dd").nth(1).inner_text()
        assert shown(tab) == pytest.approx(in_python(folders[0], TEXT, {0: weights(tab)}), abs=CLOSE)


def test_presets_can_be_undone(browser: Browser, server: Running, folders: tuple[Path, Path]) -> None:
    with opened(browser, server, f"#text={TEXT}") as tab:
        own, seen = weights(tab), []
        for name in ("Uniform", "Reverse", "Permute", "Remove the top"):
            panel(tab).get_by_role("button", name=name, exact=True).click()
            settle(tab)
            seen.append(weights(tab))
            assert shown(tab) == pytest.approx(in_python(folders[0], TEXT, {0: seen[-1]}), abs=CLOSE)
        assert seen[0] == pytest.approx([0.1] * 10)
        assert sorted(seen[2]) == pytest.approx(sorted(own))
        assert seen[3].count(0) == 1
        for before in (seen[2], seen[1], seen[0], own):
            panel(tab).get_by_role("button", name="Undo").click()
            assert weights(tab) == before
        panel(tab).get_by_role("button", name="Redo").click()
        assert weights(tab) == seen[0]
        panel(tab).get_by_role("button", name="Model’s own").click()
        settle(tab)
        assert weights(tab) == own
        assert panel(tab).locator(".column.moved").count() == 0


def test_an_adversary_climbs(browser: Browser, server: Running, folders: tuple[Path, Path]) -> None:
    with opened(browser, server, f"#text={TEXT}") as tab:
        seen = "window.seen = []; const s = document.querySelector('.steps');" + (
            "new MutationObserver(() => window.seen.push(s.textContent)).observe(s, {childList: true})"
        )
        tab.evaluate(seen)
        panel(tab).get_by_role("button", name="Find an adversary").click()
        panel(tab).get_by_text("Step 500 of 500").wait_for()
        settle(tab)
        climbed = [float(jsd) for said in tab.evaluate("seen") for jsd in re.findall(r"JSD (\d\.\d+)", said)]
        assert climbed[-1] == max(climbed) > 0.2  # how many steps are seen on the way is the machine's to say
        found = exegete.lab(folders[0], TEXT).weigh({0: weights(tab)})
        assert found.tvd <= 0.01
        assert f"you 0.000, the search {found.jsd:.3f}" in panel(tab).locator(".game").inner_text()
        assert panel(tab).locator("exegete-plane .found").count() == 1
        panel(tab).get_by_role("button", name="Permute 100 times").click()
        panel(tab).get_by_text("100 permutations").wait_for()
        assert panel(tab).locator("exegete-plane .drawn").count() == 100


def test_an_address_restores_what_was_shown_in_another_browser(browser: Browser, server: Running) -> None:
    with opened(browser, server, f"#text={TEXT}") as tab:
        drag(tab, 2, 0.8)
        before, probabilities = weights(tab), shown(tab)
        tab.wait_for_function("location.hash.includes('rows.0')")
        fragment = tab.evaluate("location.hash")
        assert server.door.token not in tab.evaluate("location.href")
    assert parse_qs(fragment[1:])["text"] == [TEXT]
    with opened(browser, server, fragment) as tab:
        settle(tab)
        assert tab.input_value("#text") == TEXT
        assert weights(tab) == before
        assert shown(tab) == pytest.approx(probabilities, abs=1e-9)


def test_two_models_side_by_side_and_a_head_is_ablated(
    browser: Browser, server: Running, folders: tuple[Path, Path]
) -> None:
    with opened(browser, server, f"#text={TEXT}&site.1=encoder.0") as tab:
        settle(tab, 1)
        left, right = (panel(tab, model).bounding_box() for model in range(2))
        assert left["y"] == right["y"]
        second = panel(tab, 1)
        assert second.locator(".thumb").count() == 5  # two layers of two heads, and what pools them
        second.get_by_role("button", name="encoder.1, head 2").click()
        settle(tab, 1)
        second.get_by_label("Buttons change").select_option("head")
        second.get_by_role("button", name="Ablate").click()
        settle(tab, 1)
        rows = {row: [0.0] * 10 for row in range(10, 20)}
        assert shown(tab, 1) == pytest.approx(in_python(folders[1], TEXT, rows, "encoder.1"), abs=CLOSE)
        assert "other layers held" in second.inner_text()


def test_sinks_and_the_highest_are_removed(browser: Browser, server: Running, folders: tuple[Path, Path]) -> None:
    with opened(browser, server, f"#text={TEXT}&site.1=encoder.0") as tab:
        settle(tab, 1)
        assert panel(tab).get_by_role("button", name="Remove sinks").is_hidden()  # of a site that pools words
        panel(tab, 1).get_by_role("button", name="Remove sinks").click()
        settle(tab, 1)
        rows = panel(tab, 1).evaluate("(m) => Object.fromEntries(m.rows)")
        assert all(row[0] == 0 and sum(row) == pytest.approx(1, abs=1e-6) for row in rows.values())
        ours = in_python(folders[1], TEXT, {int(row): given for row, given in rows.items()}, "encoder.0")
        assert shown(tab, 1) == pytest.approx(ours, abs=CLOSE)
        own = weights(tab)
        panel(tab).get_by_label("How many of the highest weights").fill("3")
        panel(tab).get_by_role("button", name="Remove the top").click()
        settle(tab)
        gone = [key for key, weight in enumerate(weights(tab)) if weight == 0]
        assert gone == sorted(sorted(range(10), key=lambda key: -own[key])[:3])


def test_a_word_is_knocked_out_and_its_address_restores_it(
    browser: Browser, server: Running, folders: tuple[Path, Path]
) -> None:
    said = exegete.lab(folders[1], TEXT).cut(3, by=0, layers=(1, 1))
    told = f"no {said.probabilities[0]:.3f}, yes {said.probabilities[1]:.3f}; TVD {said.tvd:.3f}"
    with opened(browser, server, f"#text={TEXT}") as tab:
        settle(tab, 1)
        box = panel(tab, 1).locator("exegete-knockout")
        assert panel(tab).locator("exegete-knockout").is_hidden()  # it has no layers
        for label, value in (("Nobody may look at", "3"), ("whose look", "0"), ("from layer", "1")):
            box.get_by_label(label).select_option(value)
        settle(tab, 1)
        assert box.get_by_label("to", exact=True).input_value() == "1"
        box.get_by_text(told).wait_for()
        assert panel(tab, 1).evaluate("(m) => m.parts.knockout.found.tvd") == pytest.approx(said.tvd, abs=CLOSE)
        tab.wait_for_function("location.hash.includes('cut.1')")
        fragment = tab.evaluate("location.hash")
    with opened(browser, server, fragment) as tab:
        box = panel(tab, 1).locator("exegete-knockout")
        box.get_by_text(told).wait_for()
        tab.fill("#text", "a b")
        box.get_by_text("The edges to a word are cut").wait_for()


def test_a_shorter_text_has_smaller_matrices(browser: Browser, server: Running) -> None:
    with opened(browser, server, f"#text={TEXT}&site.1=encoder.0", refused="400 (Bad Request)") as tab:
        settle(tab, 1)
        tab.fill("#text", "a b")
        panel(tab, 1).get_by_text("“a” looks, head 1 of encoder.0").wait_for()
        settle(tab, 1)
        assert [len(row) for row in panel(tab, 1).evaluate("(m) => m.parts.grid.weights('encoder.1', 1)")] == [2, 2]
        tab.fill("#text", "a " * 65)
        tab.locator("#note").get_by_text(
            "up to 64 words: shorten the text. Site attention is shown instead."
        ).wait_for()
        settle(tab, 1)
        assert panel(tab, 1).evaluate("(m) => [m.parts.site.value, m.opened.site]") == ["attention", "attention"]
        assert panel(tab, 1).locator(".column").count() == 65


def test_what_is_saved_is_what_is_shown(browser: Browser, server: Running, tmp_path: Path) -> None:
    with opened(browser, server, f"#text={TEXT}") as tab:
        drag(tab, 1, 0.7)
        with tab.expect_download() as coming:
            panel(tab).get_by_role("button", name="Save JSON").click()
        coming.value.save_as(tmp_path / "x.json")
        saved = json.loads((tmp_path / "x.json").read_text())
        assert saved["rows"]["0"] == weights(tab)
        assert list(saved["result"]["probabilities"].values()) == shown(tab)
        assert saved["text"] == TEXT
        assert len(saved["explanation"]["methods"]) == 5


def test_the_lines_that_are_copied_give_the_same_numbers(
    browser: Browser, server: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    with opened(browser, server, f"#text={TEXT}", permissions=["clipboard-read", "clipboard-write"]) as tab:
        drag(tab, 1, 0.7)
        panel(tab).get_by_role("button", name="Copy Python").click()
        lines = tab.evaluate("navigator.clipboard.readText()")
        exec(lines, {})
        said = [float(x) for x in re.findall(r"\d\.\d+(?:e-\d+)?", capsys.readouterr().out)]
        assert said[:2] == pytest.approx(shown(tab), abs=CLOSE)
        panel(tab).get_by_role("button", name="Copy command").click()
        assert tab.evaluate("navigator.clipboard.readText()").startswith(f"exegete explain '{TEXT}' --model")


def test_dear_methods_come_on_request(browser: Browser, server: Running) -> None:
    with opened(browser, server, f"#text={TEXT}") as tab:
        button = panel(tab).get_by_role("button", name="LIME")
        button.click()
        panel(tab).locator(".exegete-heatmap .map").get_by_text("LIME").wait_for()
        assert button.get_attribute("aria-pressed") == "true"


def test_what_is_wrong_is_one_sentence_and_the_rest_stays(browser: Browser, server: Running) -> None:
    with opened(browser, server, f"#text={TEXT}", refused="400 (Bad Request)") as tab:
        tab.fill("#text", "a " * 1001)
        panel(tab).get_by_text("up to 1000 words").first.wait_for()
        panel(tab).locator(".hand").wait_for(state="hidden")  # no weight of another text is in hand
        tab.fill("#text", "a b")
        panel(tab).locator(".wrong:visible").first.wait_for(state="hidden")
        panel(tab).locator(".hand").wait_for(state="visible")
        assert panel(tab).locator(".column").count() == 2


def test_an_address_that_names_what_is_not_there_is_repaired(browser: Browser, server: Running, tmp_path: Path) -> None:
    table = tmp_path / "cards.csv"
    table.write_text("example,token,word,method,score\n")
    heat = urlencode({"with": f"given:file={table} lime:samples=2000000000 blocking", "target": "gone", "by": "letter"})
    rows = "0:0.5,0.5"
    stale = {"text": TEXT, "site.1": "encoder.9", "heat.0": heat, "rows.0": rows, "site.7": "attention"}
    asked: list[Any] = []
    with opened(browser, server, f"#{urlencode(stale, quote_via=quote)}", refused="400 (Bad Request)") as tab:
        tab.on("request", lambda request: asked.append(request.post_data or ""))
        note = tab.locator("#note")
        for said in (
            "encoder.9",
            "given:file=",
            "lime:samples",
            "“gone”",
            "“letter”",
            "also about model 8",
            "weights that don’t fit",
        ):
            note.get_by_text(said).first.wait_for()
        for number in (0, 1):
            settle(tab, number)
            assert panel(tab, number).locator(".exegete-heatmap").count() > 0
        assert panel(tab, 1).evaluate("(m) => [m.parts.site.value, m.opened.site]") == ["attention", "attention"]
        assert panel(tab).evaluate("(m) => [...m.parts.heat.extra]") == []
        tab.wait_for_function("!location.hash.includes('cards') && !location.hash.includes('encoder.9')")
        tab.evaluate(f"location.hash = {json.dumps(urlencode(stale, quote_via=quote))}")  # also while it is open
        note.get_by_text("encoder.9").first.wait_for()
        settle(tab, 1)
        tab.fill("#text", "a b")
        note.wait_for(state="hidden")
    assert not any("cards" in each or "2000000000" in each for each in asked)


def test_what_is_switched_off_stops_and_a_new_text_does_not_wait(browser: Browser, server: Running) -> None:
    slow = server.models[0]._slow
    assert slow is not None
    with opened(browser, server, f"#text={TEXT}") as tab:
        until(lambda: all(m.milliseconds is not None for m in server.models[0].about.methods if not m.cheap))
        tab.fill("#text", " ".join(TEXT.split() * 90))
        tab.wait_for_timeout(1_000)
        button = panel(tab).get_by_role("button", name=re.compile("KernelSHAP"))
        button.click()
        until(lambda: slow.waiting == 1)
        button.click()
        started = time.monotonic()
        until(lambda: slow.waiting == 0)
        assert time.monotonic() - started < 3
        button.click()
        until(lambda: slow.waiting == 1)
        started = time.monotonic()
        tab.fill("#text", "a b c")
        panel(tab).locator(".exegete-heatmap .map").get_by_text("KernelSHAP").wait_for()
        assert time.monotonic() - started < 5
        settle(tab)


@pytest.mark.parametrize("width", [360, 1280, 3840])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_violation_and_nothing_overflows(browser: Browser, server: Running, width: int, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    viewport = {"width": width, "height": 900}
    with opened(browser, server, f"#text={TEXT}&site.1=encoder.0", viewport=viewport, color_scheme=scheme) as tab:
        settle(tab, 1)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        ground = "rgb(20, 20, 23)" if scheme == "dark" else "rgb(255, 255, 255)"
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == ground
        found = axe.Axe().run(tab, options=AXE_RULES)
        assert [(v["id"], v["nodes"][0]["html"][:200]) for v in found.response["violations"]] == []


def test_a_model_that_is_being_made_says_how_far_it_is(browser: Browser, server: Running) -> None:
    about = [model.about.model_dump() for model in server.models]
    loading = {"state": "loading", "said": "train · epoch 3", "done": 3, "total": 8, "sites": [], "methods": []}
    answers = [
        [about[0] | loading, about[1]],
        [about[0] | {"state": "failed", "said": "the weights are gone"}, about[1]],
    ]
    place = browser.new_context()
    tab = place.new_page()
    tab.route("**/api/models", lambda route: route.fulfill(json=answers[0]))
    tab.goto(server.entrance)
    panel(tab).get_by_text("train · epoch 3").wait_for()
    assert panel(tab).locator("progress").evaluate("(bar) => [bar.value, bar.max]") == [3, 8]
    assert panel(tab).locator(".bench").is_hidden()
    panel(tab, 1).locator(".column").first.wait_for()  # the other model is there meanwhile
    answers.pop(0)
    panel(tab).get_by_text("the weights are gone").wait_for()
    place.close()


def test_dark_by_hand_reaches_the_heat_maps(browser: Browser, server: Running) -> None:
    with opened(browser, server) as tab:
        tab.click("#scheme")
        ground = "getComputedStyle(document.querySelector('.exegete-heatmap')).backgroundColor"
        assert tab.evaluate(ground) == "rgb(20, 20, 23)"


def test_numbers_that_change_move_nothing(browser: Browser, server: Running) -> None:
    with opened(browser, server, f"#text={TEXT}") as tab:
        parts = "[...document.querySelectorAll('.bar, .facts, .class, h3, .game')]"
        places = f"{parts}.map((e) => e.getBoundingClientRect().top)"
        before = tab.evaluate(places)
        for name in ("Uniform", "Reverse", "Ablate"):
            panel(tab).get_by_role("button", name=name, exact=True).click()
            settle(tab)
            assert tab.evaluate(places) == pytest.approx(before, abs=0.6)
