"""Two texts side by side, and what a translator writes, in a browser: every number is the one that Python gives."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import exegete
from exegete.answers.explain import explain_prediction
from exegete.answers.question import Word
from exegete.answers.translations import translate
from exegete.cli import app
from exegete.training.checkpoint import load_checkpoint
from tests.answers.explained_model import TEXT
from tests.answers.written_model import SOURCE, saved_translator
from tests.browser import Browser
from tests.wings.explorer.serving import Running, running
from tests.wings.explorer.test_explorer_page import AXE_RULES, WAIT, opened, panel, settle, shown

pytestmark = pytest.mark.slow
OTHER = "b a c! D f a? f g h"


@pytest.fixture(scope="module")
def translators(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    at = tmp_path_factory.mktemp("translators")
    return saved_translator(at / "recurrent"), saved_translator(at / "layers", "transformer_translator")


@pytest.fixture(scope="module")
def writing(translators: tuple[Path, Path]) -> Iterator[Running]:
    with running([str(folder) for folder in translators]) as found:
        yield found


def copied(tab: Any, within: Any, name: str) -> str:
    tab.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    within.get_by_role("button", name=name, exact=True).click()
    tab.wait_for_function("() => window.copied !== undefined", timeout=WAIT)
    said: str = tab.evaluate("window.copied")
    return said


def printed(command: str, capsys: pytest.CaptureFixture[str]) -> Any:
    """What a command of the page prints."""
    capsys.readouterr()
    app(shlex.split(command)[1:], standalone_mode=False)
    return json.loads(capsys.readouterr().out)


def without_times(found: Any) -> Any:
    for each in (found["first"], found["second"]) if "first" in found else (found,):
        for method in each["methods"]:
            del method["milliseconds"]
    return found


def test_a_second_text_is_set_beside_the_first(
    browser: Browser, server: Running, folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    with opened(browser, server, f"#text={TEXT}") as tab:
        tab.get_by_role("button", name="Compare with a second text").click()
        assert tab.input_value("#other") == TEXT  # to be changed
        tab.fill("#other", OTHER)
        settle(tab)
        diff = panel(tab).locator("exegete-diff")
        diff.get_by_text("9 words in common, of 10 and 11").wait_for()
        first = explain_prediction(folders[0], TEXT, ["attention", "gradient_x_input"])
        ours = first.difference(explain_prediction(folders[0], OTHER, ["attention", "gradient_x_input"], first.target))
        found = diff.evaluate("(d) => d.found")
        for method in ("attention", "gradient_x_input"):
            assert found["differences"][method] == pytest.approx(ours.to_json()["differences"][method], abs=1e-9)
        assert diff.locator("tbody tr").first.locator(".changed").all_inner_texts() == ["e", "f", "h"]
        values = diff.locator("exegete-prediction .value").all_inner_texts()
        both = zip(ours.first.probabilities.values(), ours.second.probabilities.values(), strict=True)
        assert values == [f"{p:.3f} → {q:.3f}" for p, q in both]
        command = copied(tab, diff, "Copy command")
        assert without_times(printed(command, capsys)) == without_times(found)
        lines: dict[str, Any] = {}
        exec(copied(tab, diff, "Copy Python"), lines)
        assert lines["first"].difference(lines["second"]).to_json()["words"] == found["words"]
        address = tab.evaluate("location.hash")
    with opened(browser, server, address) as tab:  # another browser, the same two texts
        assert tab.input_value("#other") == OTHER
        panel(tab).get_by_text("9 words in common, of 10 and 11").wait_for()
        tab.get_by_role("button", name="Compare with a second text").click()
        assert not panel(tab).locator("exegete-diff").is_visible()


def test_the_two_texts_are_taken_away(browser: Browser, server: Running, tmp_path: Path) -> None:
    with opened(browser, server, f"#text={TEXT}&other={OTHER}", accept_downloads=True) as tab:
        diff = panel(tab).locator("exegete-diff")
        diff.locator("table.two-texts").wait_for()
        settle(tab)
        for kind in ("JSON", "HTML"):
            with tab.expect_download() as saved:
                diff.get_by_role("button", name=f"Save {kind}").click()
            saved.value.save_as(tmp_path / f"two.{kind.lower()}")
        found = diff.evaluate("(d) => d.found")
    assert json.loads((tmp_path / "two.json").read_text(encoding="utf8")) == found
    page = browser.new_page()
    page.goto((tmp_path / "two.html").as_uri())  # no server
    assert page.locator("table.two-texts tbody tr").count() == len(found["differences"])
    assert json.loads(page.locator("#exegete").inner_text()) == found
    page.close()


def test_what_is_asked_of_the_heat_maps_is_restored(browser: Browser, server: Running) -> None:
    with opened(browser, server, f"#text={TEXT}&other={OTHER}") as tab:
        panel(tab).get_by_label("set against").select_option("no" if "yes" in said(tab) else "yes")
        settle(tab)
        tab.wait_for_function("() => location.hash.includes('heat.0')")
        address, title = tab.evaluate("location.hash"), said(tab)
        assert "minus that of" in title
    with opened(browser, server, address) as tab:
        settle(tab)
        assert said(tab) == title


def said(tab: Any) -> str:
    title: str = panel(tab).locator("exegete-heat .heat-title").inner_text()
    return title


def test_a_word_of_the_output_is_chosen(
    browser: Browser, writing: Running, translators: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    output = translate(load_checkpoint(translators[0]), SOURCE)
    with opened(browser, writing, f"#text={SOURCE}", "400") as tab:
        words = panel(tab).locator("exegete-output button")
        assert words.all_inner_texts() == [piece.removeprefix("▁") for piece in output]
        words.nth(2).click()
        settle(tab)
        ours = explain_prediction(translators[0], SOURCE, ["gradient_x_input"], Word(3))
        found = panel(tab).locator("exegete-heat").evaluate("(h) => h.explanation")
        scores = {method["name"]: method["scores"] for method in found["methods"]}
        assert scores["gradient_x_input"] == pytest.approx(ours["gradient_x_input"].scores, abs=1e-9)
        lab = exegete.lab(translators[0], SOURCE, step=3)
        assert shown(tab) == pytest.approx(list(lab.likeliest.values()), abs=1e-6)
        panel(tab).get_by_role("button", name="Uniform").click()
        settle(tab)
        flat = lab.weigh({0: [1 / 6] * 6})
        assert shown(tab) == pytest.approx(list(lab.classes(flat.probabilities).values()), abs=1e-6)
        foil = panel(tab).get_by_label("set against")
        foil.fill("felina")
        foil.press("Enter")
        panel(tab).get_by_text("minus that of felina, at step 3").wait_for()
        settle(tab)
        command = copied(tab, panel(tab).locator(".effect"), "Copy command")
        shown_now = panel(tab).locator("exegete-heat").evaluate("(h) => h.explanation")
        assert without_times(printed(command, capsys)) == without_times(shown_now)
        tab.wait_for_function("() => location.hash.includes('step.0=3')")
        address = tab.evaluate("location.hash")
    with opened(browser, writing, address, "400") as tab:
        settle(tab)
        assert panel(tab).locator("exegete-output [aria-pressed=true]").inner_text() == output[2].removeprefix("▁")
        assert panel(tab).get_by_label("set against").input_value() == "felina"


def test_a_translator_of_many_layers_has_heat_maps_alone(browser: Browser, writing: Running) -> None:
    with opened(browser, writing, f"#text={SOURCE}", "400") as tab:
        second = panel(tab, 1)
        second.get_by_text("none of them pools the source").wait_for()
        assert not second.locator(".hand").is_visible()
        assert second.locator("exegete-heat .map tbody tr").count() > 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nobody_is_shut_out(browser: Browser, server: Running, writing: Running, scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    wanted: dict[str, Any] = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme, "bypass_csp": True}
    for of, fragment in ((server, f"#text={TEXT}&other={OTHER}"), (writing, f"#text={SOURCE}&other=two dogs")):
        with opened(browser, of, fragment, "400", **wanted) as tab:
            panel(tab).locator("table.two-texts").wait_for()
            tab.wait_for_load_state("networkidle")
            found = axe.run(tab, options=AXE_RULES).response["violations"]
            assert [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in found] == []
            wide = tab.evaluate("document.documentElement.scrollWidth")
            assert wide <= width
