"""Reproduction: printed numbers beside ours, for a terminal and for a page of the docs.

What was compared is listed number by number; what was not is counted by reason, so that nothing is left out unsaid.
"""

import re

import polars as pl

from exegete.base.errors import ExegeteError
from exegete.report.columns import NULL, Column, count, decimal, text
from exegete.report.page import Table
from exegete.studies.reproducing_paper import Paper
from exegete.studies.reproducing_rule import VERDICTS

COMPARED = VERDICTS[:4]
BEGIN, END = "<!-- numbers: begin -->", "<!-- numbers: end -->"
RULE = (
    "reproduced: the printed number lies in our 95 % interval, widened by what another training may do (tolerance)",
    "direction only: it doesn't, but it and our whole interval lie on the same side of the reference",
    "deviates: neither",
    "cannot tell: our interval is too wide, or ours is not worth a verdict, as the note says",
    "not run, impossible, not compared: there is no number of ours; the reason says why",
)


def compared(paper: Paper, frame: pl.DataFrame) -> Table:
    """Every printed number that ours stands beside."""
    mine = frame.filter(pl.col("verdict").is_in(COMPARED))
    rows = [_row(paper, row) for row in mine.iter_rows(named=True)]
    shown = pl.DataFrame(rows, schema={**dict.fromkeys(_TEXTS, pl.String), "seeds": pl.Int64, "verdict": pl.String})
    return Table("Published and ours", shown, columns=_COLUMNS)


def left_over(frame: pl.DataFrame) -> Table:
    """What was not compared, counted by reason."""
    rest = frame.filter(~pl.col("verdict").is_in(COMPARED))
    keys = ["table", "dataset", "verdict", "reason"]
    counted = rest.group_by(keys, maintain_order=True).agg(pl.len().cast(pl.Int64).alias("numbers"))
    columns = [text("table"), text("dataset"), count("numbers"), text("verdict"), text("reason")]
    return Table("Without a number of ours", counted, columns=columns)


def differences(paper: Paper, frame: pl.DataFrame) -> list[str]:
    """What differs between the paper and ours: in everything, then by dataset."""
    by_dataset = (
        frame.filter(pl.col("differs").fill_null("") != "").select("dataset", "differs").unique(maintain_order=True)
    )
    return [*paper.differs, *(f"{dataset}: {differs}." for dataset, differs in by_dataset.iter_rows())]


def said(counts: dict[str, int]) -> str:
    """How many numbers have each verdict.

    >>> said({"reproduced": 3, "deviates": 0, "not run": 2})
    'Of 5 published numbers or claims: 3 reproduced, 2 not run.'
    """
    parts = ", ".join(f"{n} {verdict}" for verdict, n in counts.items() if n)
    return f"Of {sum(counts.values())} published numbers or claims: {parts or 'nothing'}."


def counts_of(frame: pl.DataFrame) -> dict[str, int]:
    """How many rows have each verdict."""
    return {verdict: frame.filter(pl.col("verdict") == verdict).height for verdict in VERDICTS}


def markdown(paper: Paper, frame: pl.DataFrame) -> str:
    """The comparison for a page of the docs."""
    parts = [f"**{said(counts_of(frame))}**"]
    for table in (compared(paper, frame), left_over(frame)):
        if not table.frame.is_empty():
            parts.append(_markdown_table(table))
    parts += ["\n".join(f"- {line}" for line in differences(paper, frame))]
    return "\n\n".join(parts)


def into_page(page: str, numbers: str) -> str:
    """A page with its block of numbers written anew."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ExegeteError(f"the page needs one line {BEGIN} and one line {END}: the numbers go between them")
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{numbers}\n{END}{rest.split(END)[1]}"


def block_of(page: str) -> str:
    """The numbers that stand on a page."""
    found = re.search(f"{BEGIN}\n(.*)\n{END}", page, re.DOTALL)
    return found[1] if found else ""


def _row(paper: Paper, row: dict[str, object]) -> dict[str, object]:
    quantity = paper.quantities[str(row["quantity"])]
    of_class = _class(paper, str(row["class"]))
    parts = (row["model"], row["attention"], row["projection"])
    digits = 1 if quantity.scale == 100 else 3
    return {
        "table": row["table"],
        "dataset": row["dataset"],
        "model": ", ".join(str(part) for part in parts if part),
        "quantity": f"{quantity.shows}{of_class}",
        "published": str(row["sign"]) if row["published"] is None else _number(row["published"], digits),
        "ours": _number(row["ours"], digits),
        "interval": _interval(row, digits),
        "reference": _number(row["reference"], digits),
        "reason": row["reason"] or "",
        "seeds": row["seeds"],
        "verdict": row["verdict"],
    }


def _class(paper: Paper, name: str) -> str:
    if name in ("", "Overall"):
        return ""
    return f", {paper.classes[name].shows or f'class {name}'}"


_TEXTS = ("table", "dataset", "model", "quantity", "published", "ours", "interval", "reference", "reason")
_COLUMNS: tuple[Column, ...] = (
    *(text(name) for name in ("table", "dataset", "model", "quantity", "published", "ours")),
    text("interval", "95 % interval"),
    text("reference"),
    count("seeds"),
    text("verdict"),
    text("reason", "note"),
)


def _number(value: object, digits: int) -> str:
    return NULL if value is None else decimal(float(str(value)), digits)


def _interval(row: dict[str, object], digits: int) -> str:
    if row["low"] is None or row["low"] == row["high"]:
        return NULL
    return f"[{_number(row['low'], digits)}, {_number(row['high'], digits)}]"


def _markdown_table(table: Table) -> str:
    titles = [column.title for column in table.shown]
    marks = ["---:" if column.numeric else "---" for column in table.shown]
    rows = [titles, marks, *([cell.replace("|", "\\|") for cell in cells] for cells in table.cells())]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
