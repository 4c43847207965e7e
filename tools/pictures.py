"""What the default audit shows, for README and pages: `python -m tools.pictures runs/audit`, once that run is complete.

It judges the run again, writes scorecard and answer into README.md between their marks, and takes pictures of report
and one explanation. It needs chromium and playwright (extra `dev`).
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from exegete.explanations.explain import explain_all
from exegete.report.explanations import show, write_page
from tools.pages.place import ROOT

ASSETS = ROOT / "docs" / "assets"
TEXT = "It's a charming and often affecting journey, but the ending is a dull, overlong mess."
MARKS = "<!-- audit:begin -->", "<!-- audit:end -->"


def told(run: Path) -> str:
    """What `exegete audit` prints of a complete run, in a terminal of 80 columns."""
    front = "from exegete.cli import main; main()"
    command = [sys.executable, "-c", front, "audit", "--out", str(run), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | {"COLUMNS": "80"})
    return done.stdout


def last_lines(said: str) -> str:
    """Scorecard and answer; what stands between (what each test asks, what would settle it) is left out."""
    text = re.sub(r"[ \t]+$", "", said, flags=re.MULTILINE)  # a terminal's lines are filled up
    card = re.search(r"^Scorecard\n.*?\n(?=\n)", text, re.MULTILINE | re.DOTALL)
    answer = re.search(r"^For a .*", text, re.MULTILINE | re.DOTALL)
    if card is None or answer is None:
        raise SystemExit("the output of `exegete audit` has no scorecard or no answer: see what it prints")
    return f"{card[0]}\n…\n\n{answer[0].rstrip()}"


def written(page: str, block: str) -> str:
    """A page with a block between its marks."""
    before, rest = page.split(MARKS[0])
    return f"{before}{MARKS[0]}\n```text\n{block}\n```\n{MARKS[1]}{rest.split(MARKS[1])[1]}"


def photographed(page: Path, picture: Path, width: int, height: int | None = None) -> None:
    """A page of ours in the system's browser; all of it, unless a height is given."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": width, "height": height or 900}, color_scheme="light")
        opened.goto(page.resolve().as_uri())
        opened.screenshot(path=picture, full_page=height is None)
        browser.close()


def explained(run: Path) -> None:
    """One sentence by every method: as a terminal shows it, and as HTML."""
    found = explain_all(None, [TEXT], run=run)
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=100, file=nowhere, highlight=False, force_terminal=True)
        show(found, "word", console)
    console.save_svg(str(ASSETS / "explain_terminal.svg"), title=f'exegete explain "{TEXT}"')
    with TemporaryDirectory() as folder:
        page = Path(folder, "explained.html")
        write_page(page, found, "word")
        photographed(page, ASSETS / "explain_html.png", 1100)


if __name__ == "__main__":
    of = Path(sys.argv[1])
    readme = ROOT / "README.md"
    readme.write_text(written(readme.read_text(encoding="utf8"), last_lines(told(of))), encoding="utf8")
    photographed(of / "report.html", ASSETS / "audit.png", 1280, 1500)
    explained(of)
