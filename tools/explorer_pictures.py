"""Pictures of every view of the explorer for the how-to; of the lab also in the dark and on a phone.

    python -m tools.explorer_pictures RUN HF_RUN TRANSLATOR [VIEW …]

RUN is a complete default audit, HF_RUN one of a transformer, TRANSLATOR a trained checkpoint of `toy_translation`. It
needs chromium and playwright (extra `dev`), and pillow, which makes the files small. Look at what it writes.
"""

import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from io import BytesIO
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from exegete.wings.explorer.guard import Buckets
from exegete.wings.explorer.start import Background
from tools.pages.place import ROOT

ASSETS = ROOT / "docs" / "assets"
TEXT = "it is a slow , dull film that never quite finds its feet , although the two leads are charming"
OTHER = "it is a slow , sweet film that never quite loses its feet , and the two leads are charming"
SOURCE = "two green dogs fear five red cats"
WIDE, PHONE = {"width": 1280, "height": 1000}, {"width": 390, "height": 844}
COLOURS = 256  # of a file; fewer made teal of pale blue
WAIT = 300_000  # milliseconds, on a busy machine


def nothing(tab: Any) -> None:
    """As it is."""
    del tab


class View(NamedTuple):
    """What is shown, and how it gets there."""

    name: str
    models: tuple[str, ...]
    address: dict[str, str]
    ready: str  # a selector of what must be there
    act: Callable[[Any], None] = nothing
    top: str | None = None  # what is scrolled to
    tall: int | None = None  # pixels that are kept of a wide one; all unless given


def taken_in_hand(tab: Any) -> None:
    """A word dragged up by the keyboard, a hundred permutations, and an adversary."""
    tab.get_by_role("button", name="Permute 100 times").click()
    tab.wait_for_function("() => document.querySelector('.outcomes').textContent.includes('median')", timeout=WAIT)
    bar = tab.locator(".bar").nth(5)
    for _ in range(2):
        bar.press("PageUp")
    tab.locator(".lock").nth(3).click()
    tab.wait_for_function("() => document.querySelector('exegete-model').dataset.weighed > 1", timeout=WAIT)


def ablated(tab: Any) -> None:
    """One head silenced, as a whole."""
    tab.locator(".thumb[data-head='3']").nth(2).click()
    tab.wait_for_timeout(3000)
    tab.get_by_label("Buttons change").select_option("head")
    tab.get_by_role("button", name="Ablate").click()
    tab.wait_for_timeout(3000)


def views(run: str, transformer: str, translator: str) -> list[View]:
    """All of them."""
    said, heat = {"text": TEXT}, ".exegete-heatmap table.map"
    return [
        View("lab", (run,), said, heat, taken_in_hand),
        View("heat", (run,), said, heat, top="exegete-heat", tall=622),
        View("diff", (run,), said | {"other": OTHER}, "table.two-texts", top="exegete-diff"),
        View("data", (run,), {"view": "data"}, "exegete-data tbody tr"),
        View("words", (run,), {"view": "data"}, "exegete-words svg", top="exegete-words"),
        View("scorecard", (run,), {"view": "scorecard"}, "exegete-scorecard table"),
        View("translator", (translator,), {"text": SOURCE, "step.0": "3"}, heat),
        View("layers", (transformer,), {"text": "a charming film with a dull end"}, heat, ablated, top="exegete-grid"),
        View("two", (run, transformer), {"text": "a charming film with a dull end"}, heat),
    ]


def small(picture: bytes, tall: int | None) -> bytes:
    """The same in few colours, perhaps without its lower part."""
    from PIL import Image

    made = BytesIO()
    whole = Image.open(BytesIO(picture)).convert("RGB")
    whole = whole.crop((0, 0, whole.width, tall or whole.height))
    whole.quantize(COLOURS, kmeans=2, dither=Image.Dither.NONE).save(made, "PNG", optimize=True)
    return made.getvalue()


def photographed(browser: Any, server: Background, view: View) -> None:
    """One view wide and light; the lab also in the dark, and on a phone."""
    more = (("_dark", WIDE, "dark"), ("_phone", PHONE, "light")) if view.name == "lab" else ()
    for place, size, scheme in (("", WIDE, "light"), *more):
        tab = browser.new_page(viewport=size, color_scheme=scheme)
        fragment = urlencode(view.address, quote_via=quote)
        tab.goto(f"http://127.0.0.1:{server.door.port}/?token={server.door.token}#{fragment}")
        for _ in view.models:
            tab.wait_for_selector(view.ready, timeout=WAIT)
        tab.wait_for_function("() => !document.querySelector('.stale')", timeout=WAIT)
        tab.wait_for_timeout(1500)
        view.act(tab)
        tab.mouse.move(0, 0)
        if view.top is not None:
            tab.evaluate("name => document.querySelector(name).scrollIntoView({ block: 'start' })", view.top)
        tab.wait_for_timeout(800)
        name = f"explorer_{view.name}{place}.png"
        (ASSETS / name).write_bytes(small(tab.screenshot(), view.tall if size is WIDE else None))
        tab.close()
        print(name, (ASSETS / name).stat().st_size, flush=True)


def main(run: str, transformer: str, translator: str, wanted: Sequence[str]) -> None:
    """Those that are wanted, or all; a server for every set of models."""
    from playwright.sync_api import sync_playwright

    chosen = [view for view in views(run, transformer, translator) if not wanted or view.name in wanted]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for models in dict.fromkeys(view.models for view in chosen):
            with closing(Background(models, buckets=Buckets(1e4, 1e4))) as server:
                here = [view for view in chosen if view.models == models]
                costs = any(view.name == "heat" for view in here)  # which it shows
                while any(m.about.state == "loading" for m in server.models) or (costs and _measuring(server)):
                    time.sleep(0.2)
                for view in here:
                    photographed(browser, server, view)
        browser.close()


def _measuring(server: Background) -> bool:
    """Whether it is still found out what methods cost."""
    return any(m.milliseconds is None and not m.cheap for served in server.models for m in served.about.methods)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
