"""What the default audit shows, for README and pages: `python -m tools.pictures runs/audit`, once that run is complete.

It judges the run again, writes what decides and the answer into README.md between their marks, draws one text with the
answer beside it, and takes pictures of report and one explanation. It needs chromium and playwright (extra `dev`).
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap

from rich.console import Console

from exegete.answers.audit import judge_run
from exegete.answers.explain import explain_all
from exegete.answers.pages.explanations import show, write_page
from exegete.base.files import write_text
from exegete.report.heat import DARK_HUES, HUES, LINE, heat_svg, text_width
from exegete.report.heatmap import HeatMap
from exegete.report.ink import FONT, INK
from exegete.report.labels import method_label
from exegete.runs.run import study_of
from tools.pages.place import ROOT

ASSETS = ROOT / "docs" / "assets"
TEXT = "It's a charming and often affecting journey, but the ending is a dull, overlong mess."
ATTENTION = "attention"
ASKED = "May its attention be read as a reason?"
ACROSS, ROOM, EDGE = 34, 280, 14  # letters of a line of the answer, and pixels of it and around all
DARK_INK = {"ink": "#ececf0", "muted": "#adaeb8", "rule": "#3b3c44", "paper": "#141417"}  # as on a dark page of ours
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


def answered(run: Path) -> dict[str, str]:
    """One text under attention and under what to read instead, as the run's model has it, with the answer beside.

    A drawing for a light page and one for a dark one.
    """
    audit = judge_run(study_of(run), run)
    ((where, decision),) = audit.decisions.items()
    best = audit.instead[where][0]
    assert decision.gamma is not None
    found = explain_all(None, [TEXT], [ATTENTION, best.method], run=run)[0].heatmap()
    order = sorted(found.rows, key=lambda row: not row.main)
    drawn = replace(found, title="One text by attention, and by what to read instead", rows=tuple(order))
    name, right = method_label(best.method), pairs(*decision.gamma)
    said = [
        f"Of 100 pairs of words attention has {right} in the right order.",
        f"Read {name} instead: it has {pairs(best.gamma, best.gamma)}.",
    ]
    looks = {"light": (INK, HUES), "dark": (DARK_INK, DARK_HUES)}
    above = f"The model calls this {found.toward}. Which words made it do so?"
    return {
        scheme: beside(heat_svg(drawn, ink, hues), above, decision.label, said, ink, legend_of(drawn, hues))
        for scheme, (ink, hues) in looks.items()
    }


def pairs(low: float, high: float) -> str:
    """The share of pairs of words in the right order, by Γ: (1 + Γ) / 2 of 100."""
    return " to ".join(dict.fromkeys(f"{50 + 50 * end:.0f}" for end in (low, high)))


def legend_of(drawn: HeatMap, hues: Mapping[str, str]) -> list[tuple[str, str]]:
    """Hues and what they stand for."""
    return [(hues[hue], said) for hue, said in drawn.legend.items()]


def beside(
    words: str, above: str, grade: str, said: Sequence[str], ink: Mapping[str, str], legend: Sequence[tuple[str, str]]
) -> str:
    """A drawing of words, a sentence above and hues below, and right of it the answer: the grade large, then why."""
    (height,) = (int(found) for found in re.findall(r'height="(\d+)"', words)[:1])
    ends = [float(x) + float(across) for x, across in re.findall(r'<rect x="([\d.]+)" y="\d+" width="([\d.]+)"', words)]
    left = EDGE + round(max(ends, default=0.0)) + 28
    lines = [line for sentence in said for line in (*wrap(sentence, ACROSS), "")][:-1]
    tall = max(height + 3 * LINE, 100 + 20 * len(lines)) + EDGE
    size = f'width="{left + ROOM}" height="{tall}" viewBox="0 0 {left + ROOM} {tall}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONT}" fill="{ink["ink"]}">',
        f'<rect width="100%" height="100%" rx="6" fill="{ink["paper"]}" stroke="{ink["rule"]}"/>',
        _line(EDGE, 2 * EDGE, above, 14, ink["muted"]),
        f'<g transform="translate({EDGE} {LINE + EDGE})">{words}</g>',
        f'<path d="M{left - 14} {EDGE}V{tall - EDGE}" stroke="{ink["rule"]}"/>',
        _line(left, 2 * EDGE, ASKED, 14, ink["muted"]),
        _line(left, 66, f"{grade}.", 26, ink["ink"]),
        *(_line(left, 100 + 20 * place, line, 15, ink["ink"]) for place, line in enumerate(lines)),
    ]
    x, y = float(EDGE), height + 2 * LINE + EDGE
    for hue, meaning in legend:
        parts += [f'<rect x="{x:.0f}" y="{y - 11}" width="14" height="14" rx="3" fill="{hue}"/>',
                  _line(x + 20, y, meaning, 13, ink["muted"])]  # fmt: skip
        x += text_width(meaning) + 44
    return "".join(parts) + "</svg>\n"


def _line(x: float, y: float, words: str, size: int, colour: str) -> str:
    weight = ' font-weight="600"' if size > 20 else ""
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" fill="{colour}"{weight}>{escape(words)}</text>'


if __name__ == "__main__":
    of = Path(sys.argv[1])
    for scheme, picture in answered(of).items():
        write_text(ASSETS / f"answered_{scheme}.svg", picture)
    readme = ROOT / "README.md"
    readme.write_text(written(readme.read_text(encoding="utf8"), last_lines(told(of))), encoding="utf8")
    photographed(of / "report.html", ASSETS / "audit.png", 1280, 1500)
    explained(of)
