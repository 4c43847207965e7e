"""`exegete.lab(…).live()`: the page in a notebook's page, for that page only, and gone when it is closed."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

import exegete
from exegete.training.checkpoint import load_checkpoint
from exegete.wings.explorer.guard import HEADERS, Door, Guard
from exegete.wings.explorer.panel import Live
from tests.answers.explained_model import TEXT
from tests.browser import Browser
from tests.wings.explorer.test_explorer_page import CLOSE, WAIT, in_python, panel, settle, shown, weights


@contextmanager
def notebook(html: str) -> Iterator[int]:
    """A page with what a notebook would show; its port."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.slow
def test_a_notebook_has_the_page(browser: Browser, folders: tuple[Path, Path]) -> None:
    model = exegete.load(folders[1])
    with closing(exegete.lab(model, TEXT, site="encoder.0").live()) as live, notebook(live._repr_html_()) as port:
        place = browser.new_context()
        place.set_default_timeout(WAIT)
        tab = place.new_page()
        tab.goto(f"http://localhost:{port}")
        frame = tab.frames[1]
        panel(frame).locator(".exegete-heatmap").wait_for()
        settle(frame)
        bar = panel(frame).locator(".bar").nth(1)
        bar.press("PageUp")
        settle(frame)
        assert panel(frame).evaluate("(m) => m.chosen.site") == "encoder.0"
        ours = in_python(folders[1], TEXT, {0: weights(frame)}, "encoder.0")
        assert shown(frame) == pytest.approx(ours, abs=CLOSE)
        tab.goto(f"http://127.0.0.1:{port}")  # another site: our cookie stays behind
        tab.frames[1].get_by_text("open the address").wait_for()
        place.close()
    with pytest.raises(httpx.ConnectError):
        httpx.get(live.address)


@pytest.mark.slow
def test_a_model_in_memory_is_written_and_goes_with_its_panel(folders: tuple[Path, Path]) -> None:
    with closing(Live(load_checkpoint(folders[0]), TEXT, "attention", 300)) as live:
        assert live._folder is not None
        written = Path(live._folder.name)
        assert (written / "model" / "checkpoint.json").is_file()
        assert "height: 300px" in live._repr_html_()
    assert not written.exists()


def test_only_pages_of_this_machine_may_frame_it() -> None:
    async def app(*_: Any) -> None: ...

    policy = "content-security-policy"
    assert "frame-ancestors 'none'" in HEADERS[policy]
    assert Guard(app, Door(1)).headers == HEADERS
    framed = Guard(app, Door(1, frames="http://localhost:*")).headers[policy]
    assert framed.endswith("frame-ancestors http://localhost:*")
