"""Annotation: the page on which a person says of every item whether its highlighted words are relevant.

One file that works offline: nothing is fetched, no script runs but ours. Answers stay in the annotator's browser, under
their name, until they are saved as a file. The page holds nothing of the key.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from exegete.plugins import shipped, unknown, whole, write_text
from exegete.wings.annotation.sheets import PAGE, SHEET, DrawnItems, Item, claim, to_csv

Format = Literal["html", "csv", "both"]
QUESTION = "Are the highlighted words relevant to the prediction?"
SCRIPTS = ("report/scheme.js", "wings/annotation/annotation.js")


def checked_format(name: str) -> Format:
    """What is written, if there is such a thing."""
    if name not in get_args(Format):
        raise unknown("format", name, get_args(Format))
    return name  # type: ignore[return-value]


def write_sheets(folder: Path, drawn: DrawnItems, form: Format) -> list[Path]:
    """Write the key and the sheets; a sheet that is there already may hold answers, and stays as it is."""
    claim(folder, drawn)
    made = {PAGE: lambda: page(drawn.items, drawn.key.id), SHEET: lambda: to_csv(drawn.items)}
    wanted = {"html": (PAGE,), "csv": (SHEET,), "both": (PAGE, SHEET)}[form]
    for name in wanted:
        if not (folder / name).exists():
            write_text(folder / name, made[name]())
    return [folder / name for name in wanted]


def page(items: Sequence[Item], key: str) -> str:
    """The whole page; the same items give the same bytes."""
    style, scripts = shipped("report/style.css", "wings/annotation/annotation.css"), [shipped(name) for name in SCRIPTS]
    return whole("wings/annotation/templates/annotation.html", QUESTION, style, scripts, items=items, key=key)
