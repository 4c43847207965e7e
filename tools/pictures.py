"""What the default audit shows, for README and pages: `python -m tools.pictures runs/audit`, once that run is complete.

It judges the run again, writes what decides and the answer into README.md between their marks, draws one text with the
answer beside it, and takes pictures of report and one explanation. It needs chromium and playwright (extra `dev`).
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap

from rich.console import Console

from exegete.audits.audit import judge_run
from exegete.base.files import write_text
from exegete.explanations.explain import explain_all
from exegete.page.ink import FONT, INK
from exegete.page.labels import method_label
from exegete.report.explanations import show, write_page
from exegete.report.heat import heat_svg
from exegete.runs.run import study_of
from tools.pages.place import ROOT

ASSETS = ROOT / "docs" / "assets"
TEXT = "It's a charming and often affecting journey, but the ending is a dull, overlong mess."
ATTENTION = "attention"
ACROSS, ROOM, EDGE = 36, 300, 12  # letters of a line of the answer, and pixels of it and left of the words
MARKS = "<!-- audit:begin -->", "<!-- audit:end -->"


def told(run: Path) -> str:
    """What `exegete audit` prints of a complete run, in a terminal of 80 columns."""
    front = "from exegete.cli import main; main()"
    command = [sys.executable, "-c", front, "audit", "--out", str(run), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | {"COLUMNS": "80"})
    return done.stdout


def last_lines(said: str) -> str:
    """What decides and the answer; what stands before and between is left out."""
    text = re.sub(r"[ \t]+$", "", said, flags=re.MULTILINE)  # a terminal's lines are filled up
    card = re.search(r"^What decides\n.*?\n(?=\n)", text, re.MULTILINE | re.DOTALL)
    if card is None:
        raise SystemExit("the output of `exegete audit` has no scorecard: see what it prints")
    rest = text[card.end() :].strip("\n").split("\n\n")
    answer = [part for part in rest if not re.search(r"^Not asked:|with --all", part, re.MULTILINE)]
    return "\n\n".join([card[0].rstrip(), *answer])


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


def answered(run: Path) -> str:
    """One text under attention and under what to read instead, as the run's model has it, with the answer beside."""
    audit = judge_run(study_of(run), run)
    ((where, decision),) = audit.decisions.items()
    best = audit.instead[where][0].method
    found = explain_all(None, [TEXT], [ATTENTION, best], run=run)[0]
    drawn = replace(found.heatmap(), title="One text by attention, and by what to read instead")
    rows = [next(row for row in drawn.rows if row.main), *(row for row in drawn.rows if not row.main)]
    far = decision.why.partition(":")[0]
    words = heat_svg(replace(drawn, rows=tuple(rows)))
    return beside(words, decision.label, far, f"Read {method_label(best)} instead.")


def beside(words: str, grade: str, why: str, read: str) -> str:
    """A drawing of words, and right of it the answer: the grade large, then two sentences."""
    (height,) = (int(found) for found in re.findall(r'height="(\d+)"', words)[:1])
    ends = [float(x) + float(wide) for x, wide in re.findall(r'<rect x="([\d.]+)" y="\d+" width="([\d.]+)"', words)]
    width = EDGE + round(max(ends, default=0.0))
    lines = [*wrap(f"{why}.", ACROSS), "", *wrap(read, ACROSS)]
    tall = EDGE + max(height, 56 + 19 * len(lines))
    said = "".join(
        f'<text x="{width + 24}" y="{64 + 19 * place}" font-size="14">{escape(line)}</text>'
        for place, line in enumerate(lines)
    )
    size = f'width="{width + ROOM}" height="{tall}" viewBox="0 0 {width + ROOM} {tall}"'
    paper = f'<rect width="100%" height="100%" fill="{INK["paper"]}"/>'
    large = f'<text x="{width + 24}" y="36" font-size="26" font-weight="600">{escape(grade)}.</text>'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONT}" fill="{INK["ink"]}">'
    return f'{opening}{paper}<g transform="translate({EDGE} {EDGE})">{words}</g>{large}{said}</svg>\n'


if __name__ == "__main__":
    of = Path(sys.argv[1])
    write_text(ASSETS / "answered.svg", answered(of))
    readme = ROOT / "README.md"
    readme.write_text(written(readme.read_text(encoding="utf8"), last_lines(told(of))), encoding="utf8")
    photographed(of / "report.html", ASSETS / "audit.png", 1280, 1500)
    explained(of)
