"""Reproduction: printed numbers beside ours, for a terminal and for a page of the docs.

What was compared is listed number by number; what was not is counted by reason, so that nothing is left out unsaid.
"""

import re

import polars as pl

from exegete.plugins import NULL, Column, ExegeteError, Table, count, decimal, text
from exegete.wings.papers.paper import Paper
from exegete.wings.papers.rule import VERDICTS

COMPARED = VERDICTS[:5]
BEGIN, END = "<!-- numbers: begin -->", "<!-- numbers: end -->"
RULE = (
    "reproduced: the printed number lies in our 95 % interval, widened by what another training may do (tolerance)",
    "direction only: it doesn't, but it and our whole interval lie on the same side of a level that we name",
    "deviates: neither",
    "cannot tell: our interval is too wide, or ours is not worth a verdict, as the note says",
    "too coarse to tell: as reproduced, but no effect would be reproduced as well",
    "not run, impossible, not compared: there is no number of ours; the reason says why",
)


def comparison_tables(paper: Paper, frame: pl.DataFrame) -> list[Table]:
    """Every printed number that ours stands beside, by table and quantity of the paper."""
    mine = frame.filter(pl.col("verdict").is_in(COMPARED))
    parts = mine.partition_by("table", "quantity", maintain_order=True)
    return [_compared(paper, part) for part in sorted(parts, key=lambda part: _first(frame, part))]


def _first(frame: pl.DataFrame, part: pl.DataFrame) -> int:
    """Where a table of the paper begins: its quantities stay together."""
    return int((frame["table"] == part["table"][0]).arg_true()[0])


def _compared(paper: Paper, part: pl.DataFrame) -> Table:
    """The numbers of one quantity in one table; what all rows share is said once, and so is a note."""
    quantity = paper.quantities[part["quantity"][0]]
    shared = [name for name in _MODEL if part[name].n_unique() == 1]
    notes = list(dict.fromkeys(reason for reason in part["reason"] if reason))
    rows = [_row(paper, row, [name for name in _MODEL if name not in shared], notes) for row in part.to_dicts()]
    shown = pl.DataFrame(rows, schema={**dict.fromkeys(_TEXTS, pl.String), "seeds": pl.Int64, "verdict": pl.String})
    sides = sorted(set(shown["reference"]) - {NULL})
    left_out = {name for name in ("model", "class") if not any(shown[name])} | (
        {"reference"} if len(sides) < 2 else set()
    )
    of = ", ".join(part[name][0] for name in shared if part[name][0])
    said = [f"Direction: which side of {sides[0]}."] if len(sides) == 1 else []
    said += ["; ".join(f"{_mark(place)} {note}" for place, note in enumerate(notes)) + "."] if notes else []
    columns = [column for column in _COLUMNS if not left_out & set(column.of)]
    return Table(f"{part['table'][0]}: {quantity.shows}{f' ({of})' if of else ''}", shown, " ".join(said), columns)


def _mark(place: int) -> str:
    """A raised number.

    >>> _mark(0), _mark(11)
    ('¹', '¹²')
    """
    return str(place + 1).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def left_over_table(frame: pl.DataFrame) -> Table:
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


def count_sentence(counts: dict[str, int]) -> str:
    """How many numbers have each verdict.

    >>> count_sentence({"reproduced": 3, "deviates": 0, "not run": 2})
    'Of 5 published numbers or claims: 3 reproduced, 2 not run.'
    """
    parts = ", ".join(f"{n} {verdict}" for verdict, n in counts.items() if n)
    return f"Of {sum(counts.values())} published numbers or claims: {parts or 'nothing'}."


FEW = 3  # trainings below which nothing is said in general


def trainings(frame: pl.DataFrame) -> str:
    """How many of our numbers are of few trainings: what they say is said of these.

    >>> trainings(pl.DataFrame({"seeds": [1, 1, 3, None]}))
    'Of our 3 numbers 2 are of one training, with intervals over texts: they say nothing of other trainings.'
    """
    seeds = frame["seeds"].drop_nulls()
    one, few = int((seeds == 1).sum()), int(((seeds > 1) & (seeds < FEW)).sum())
    told = [f"{one} are of one training, with intervals over texts"] * bool(one) + [f"{few} of two"] * bool(few)
    if not told:
        return ""
    return f"Of our {len(seeds)} numbers {' and '.join(told)}: they say nothing of other trainings."


def counts_of(frame: pl.DataFrame) -> dict[str, int]:
    """How many rows have each verdict."""
    return {verdict: frame.filter(pl.col("verdict") == verdict).height for verdict in VERDICTS}


def markdown(paper: Paper, frame: pl.DataFrame) -> str:
    """The comparison for a page of the docs."""
    parts = [f"**{count_sentence(counts_of(frame))}**", *filter(None, (trainings(frame),))]
    parts += [
        _titled(table)
        for table in (*comparison_tables(paper, frame), left_over_table(frame))
        if not table.frame.is_empty()
    ]
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


def _row(paper: Paper, row: dict[str, object], varied: list[str], notes: list[str]) -> dict[str, object]:
    digits = 1 if paper.quantities[str(row["quantity"])].scale == 100 else 3
    note = f" {_mark(notes.index(str(row['reason'])))}" if row["reason"] else ""
    return {
        "dataset": row["dataset"],
        "model": ", ".join(str(row[name]) for name in varied if row[name]),
        "class": _class(paper, str(row["class"])),
        "published": str(row["sign"]) if row["published"] is None else _number(row["published"], digits),
        "ours": _number(row["ours"], digits),
        "interval": _interval(row, digits),
        "reference": _number(row["reference"], digits),
        "seeds": row["seeds"],
        "verdict": f"{row['verdict']}{note}",
    }


def _class(paper: Paper, name: str) -> str:
    return "" if name in ("", "Overall") else paper.classes[name].shows or name


_MODEL = ("model", "attention", "projection")  # what together say which model
_TEXTS = ("dataset", "model", "class", "published", "ours", "interval", "reference")
_COLUMNS: tuple[Column, ...] = (
    *(text(name) for name in ("dataset", "model", "class", "published", "ours")),
    text("interval", "95 % interval"),
    text("reference", "side of"),
    count("seeds"),
    text("verdict"),
)


def _number(value: object, digits: int) -> str:
    return NULL if value is None else decimal(float(str(value)), digits)


def _interval(row: dict[str, object], digits: int) -> str:
    if row["low"] is None or row["low"] == row["high"]:
        return NULL
    return f"[{_number(row['low'], digits)}, {_number(row['high'], digits)}]"


def _titled(table: Table) -> str:
    return "\n\n".join(filter(None, (f"### {table.title}", _markdown_table(table), table.caption)))


def _markdown_table(table: Table) -> str:
    titles = [column.title for column in table.shown]
    marks = ["---:" if column.numeric else "---" for column in table.shown]
    rows = [titles, marks, *([cell.replace("|", "\\|") for cell in cells] for cells in table.cells())]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
