"""Marks: which text of a page is written by what, and every page with its text as the code has it today."""

import re
from collections.abc import Callable
from pathlib import Path

from tools.pages.box import box, studies
from tools.pages.calibration import calibration
from tools.pages.debate import debate, verdicts
from tools.pages.declarations import every_test, goals, table
from tools.pages.outcomes import outcomes
from tools.pages.place import ROOT
from tools.pages.stubs import names_that_stay, stub

_MARKED = re.compile(r"^<!-- begin ([^\n]+) -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)


def file(name: str) -> str:
    """A file of the repository, as code."""
    text = (ROOT / name).read_text(encoding="utf8").rstrip("\n")
    return f"```{'python' if name.endswith('.py') else 'toml'}\n{text}\n```\n"


PLAIN: dict[str, Callable[..., str]] = {
    "api": stub,
    "calibration": calibration,
    "file": file,
    "goals": goals,
    "outcomes": outcomes,
    "plugins": names_that_stay,
    "studies": studies,
}
LINKED: dict[str, Callable[[Path], str]] = {  # from this page
    "box": box,
    "debate": debate,
    "every-test": every_test,
    "tests": table,
    "verdicts": verdicts,
}


def written(page: Path) -> str:
    """A page with everything between marks written anew."""

    def between(match: re.Match[str]) -> str:
        name, *arguments = match[1].split()
        text = LINKED[name](page) if name in LINKED else PLAIN[name](*arguments)
        return f"<!-- begin {match[1]} -->\n{text}<!-- end -->"

    return _MARKED.sub(between, page.read_text(encoding="utf8"))


def pages() -> list[Path]:
    """All pages that a person may open in the clone."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def include_marks(text: str) -> list[str]:
    """Lines that only a site generator could replace by what they stand for."""
    return re.findall(r"^.*--8<--.*$|^:::.*$", text, re.MULTILINE)
