"""Annotation: the page on which a person says of every item whether its highlighted words are relevant.

One file that works offline: nothing is fetched, no script runs but ours. Answers stay in the annotator's browser, under
their name, until they are saved as a file. The page holds nothing of the key.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from exegete.plugins import read_shipped, unknown, whole, write_text
from exegete.wings.annotation.sheets import PAGE, SHEET, DrawnItems, SheetItem, claim_folder, sheet_csv

SheetFormat = Literal["html", "csv", "both"]
QUESTION = "Are the highlighted words relevant to the prediction?"
SCRIPTS = ("report/scheme.js", "wings/annotation/annotation.js")


def checked_format(name: str) -> SheetFormat:
    """What is written, if there is such a thing."""
    if name not in get_args(SheetFormat):
        raise unknown("format", name, get_args(SheetFormat))
    return name  # type: ignore[return-value]


def write_sheets(folder: Path, drawn: DrawnItems, form: SheetFormat) -> list[Path]:
    """Write the key and the sheets; a sheet that is there already may hold answers, and stays as it is."""
    claim_folder(folder, drawn)
    made = {PAGE: lambda: annotation_page(drawn.items, drawn.key.id), SHEET: lambda: sheet_csv(drawn.items)}
    wanted = {"html": (PAGE,), "csv": (SHEET,), "both": (PAGE, SHEET)}[form]
    for name in wanted:
        if not (folder / name).exists():
            write_text(folder / name, made[name]())
    return [folder / name for name in wanted]


def annotation_page(items: Sequence[SheetItem], key: str) -> str:
    """The whole page; the same items give the same bytes."""
    style, scripts = (
        read_shipped("report/style.css", "wings/annotation/annotation.css"),
        [read_shipped(name) for name in SCRIPTS],
    )
    return whole("wings/annotation/templates/annotation.html", QUESTION, style, scripts, items=items, key=key)
