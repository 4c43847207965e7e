"""A model whose words have several pieces, in a browser: every layer is taken hold of, and is the one that is named."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser import Browser
from tests.models.tiny import bert_folder
from tests.wings.explorer.serving import Running, running
from tests.wings.explorer.test_explorer_page import CLOSE, drag, in_python, opened, panel, settle, shown, weights
from tests.wings.explorer.test_pieces import PIECES, TEXT

pytestmark = pytest.mark.slow
REFUSED = "Failed to load resource"  # which a browser says itself of what is refused
BUTTONS = ("Uniform", "Reverse", "Permute", "Remove the top", "Remove sinks", "Ablate")


@pytest.fixture(scope="module")
def source() -> str:
    pytest.importorskip("transformers", reason="transformers is not installed")
    return f"hf:{bert_folder()}"


@pytest.fixture(scope="module")
def served(source: str) -> Iterator[Running]:
    with running([source]) as found:
        yield found


def choose(tab: Any, site: str) -> None:
    panel(tab).get_by_label("Site").select_option(site)
    tab.wait_for_function("(site) => document.querySelector('exegete-model').opened.site === site", arg=site)
    settle(tab)


def named(tab: Any) -> list[str]:
    """What the selector names, and what is shown."""
    both: list[str] = panel(tab).evaluate("(m) => [m.parts.site.value, m.opened.site]")
    return both


@pytest.mark.parametrize("site", ["encoder.0", "encoder.1"])
def test_a_layer_is_dragged_and_changed_by_every_button(
    browser: Browser, served: Running, source: str, site: str
) -> None:
    with opened(browser, served, f"#text={TEXT}", models=1) as tab:
        choose(tab, site)
        here = panel(tab)
        assert named(tab) == [site, site]
        assert here.locator(".thumb").count() == 2 * 2
        drag(tab, 2, 0.8)
        assert shown(tab) == pytest.approx(in_python(source, TEXT, {0: weights(tab)}, site), abs=CLOSE)
        for name in BUTTONS:
            button = here.get_by_role("button", name=name, exact=True)
            if button.is_visible():
                button.click()
                settle(tab)
        here.get_by_role("button", name="Permute 100 times").click()
        here.get_by_text("100 permutations").wait_for()
        settle(tab)
        here.get_by_role("button", name="Find an adversary").click()
        here.get_by_text(re.compile(r"Step \d+ of 500")).wait_for()
        stop = here.get_by_role("button", name="Stop")
        if stop.is_visible():
            stop.click()
        settle(tab)
        assert named(tab) == [site, site]


def test_rows_are_named_by_word_and_piece(browser: Browser, served: Running) -> None:
    with opened(browser, served, f"#text={TEXT}&site.0=encoder.0", models=1) as tab:
        settle(tab)
        assert panel(tab).evaluate("(m) => m.opened.queries.length") == PIECES
        panel(tab).evaluate("(m) => m.choose({ ...m.chosen, head: 1, query: 4 })")
        assert panel(tab).locator(".row-name").inner_text() == "“unbelievably 2/3” looks, head 2 of encoder.0"


def test_a_layer_that_can_not_be_shown_is_not_named(browser: Browser, served: Running) -> None:
    with opened(browser, served, f"#text={TEXT}", refused=REFUSED, models=1) as tab:
        settle(tab)
        tab.route("**/api/open", lambda route: route.fulfill(status=400, json={"error": "it can’t be"})
                  if route.request.post_data_json["site"] == "encoder.0" else route.continue_())  # fmt: skip
        panel(tab).get_by_label("Site").select_option("encoder.0")
        tab.locator("#note").get_by_text("It can’t be. Site encoder.1 is shown instead.").wait_for()
        settle(tab)
        assert named(tab) == ["encoder.1", "encoder.1"]
        drag(tab, 2, 0.8)
        assert named(tab) == ["encoder.1", "encoder.1"]


def test_a_text_too_long_for_its_layer_shows_the_readout(browser: Browser, served: Running) -> None:
    with opened(browser, served, f"#text={TEXT}&site.0=encoder.0", refused=REFUSED, models=1) as tab:
        settle(tab)
        tab.route("**/api/open", lambda route: route.fulfill(status=400, json={"error": "it is too long"})
                  if route.request.post_data_json["site"] == "encoder.0" else route.continue_())  # fmt: skip
        tab.fill("#text", "a bad plot")
        tab.locator("#note").get_by_text("It is too long").wait_for()
        settle(tab)
        assert named(tab) == ["encoder.1", "encoder.1"]
        assert panel(tab).locator(".column .word").all_inner_texts() == ["<s>", "a", "bad", "plot", "</s>"]
