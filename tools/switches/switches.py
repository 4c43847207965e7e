"""Switches: for each disagreement of the debate, the settings that turn one result into the other.

`switches.toml` says which row of which kept table every point is. Nothing is computed here but a scale and on which
side of its reference an interval lies, so that a figure can't say what the tables don't.

    python -m tools.switches.switches RESULTS OUT
"""

import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, model_validator

from exegete.base.errors import ExegeteError, UsageError
from exegete.base.files import write_text
from exegete.base.names import validate

Where = dict[str, str | float]  # by column: what a row must have there
ABOVE, BELOW, HOLDS = "above", "below", "holds it"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Numbers(_Strict):
    """The columns of a value and its interval; n and seeds have the same names in every table."""

    value: str
    low: str
    high: str


class Reference(_Strict):
    """What a value is read against: a number, a column of its row, or of the row of its series that `where` names."""

    says: str
    value: float | None = None
    column: str | None = None
    where: Where = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one(self) -> "Reference":
        if (self.value is None) == (self.column is None):
            raise ValueError("a reference is either a value or a column")
        return self


class Beside(_Strict):
    """A further column of the row that a reader must know."""

    column: str
    says: str


class Series(_Strict):
    """What is followed from setting to setting."""

    label: str
    where: Where


class Setting(_Strict):
    """One position of a switch, and who set it so."""

    label: str
    by: str
    where: Where
    study: str | None = None
    table: str | None = None


class Switch(_Strict):
    """One disagreement: its question, who says what, what turns the one into the other, and where the numbers are."""

    name: str
    title: str
    between: tuple[str, str]
    turns: str
    axis: str
    numbers: Numbers
    reference: Reference
    study: str | None = None
    table: str | None = None
    scale: float = 1
    beside: Beside | None = None
    where: Where = Field(default_factory=dict)
    series: tuple[Series, ...] = Field(min_length=1)
    settings: tuple[Setting, ...] = Field(min_length=2)

    @model_validator(mode="after")
    def _told_apart(self) -> "Switch":
        for kind in ("series", "settings"):
            labels = [each.label for each in getattr(self, kind)]
            if len(set(labels)) < len(labels):
                raise ValueError(f"switch '{self.name}': give the {kind} different labels")
        for setting in self.settings:
            if not ((setting.study or self.study) and (setting.table or self.table)):
                raise ValueError(f"switch '{self.name}': say the study and the table of setting '{setting.label}'")
        return self


class Switches(_Strict):
    """All of them."""

    version: int
    switches: tuple[Switch, ...] = Field(min_length=1)


class Drawn(NamedTuple):
    """The points of all switches, and their figure."""

    table: pl.DataFrame
    chart: Any


def load_switches(path: Path | None = None) -> Switches:
    """Those of a TOML file, or the built-in ones."""
    source = Path(__file__).with_name("switches.toml") if path is None else path
    try:
        settings = tomllib.loads(source.read_text(encoding="utf8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{source} is not TOML: {error}") from None
    found: Switches = validate(Switches, settings, f"file {source.name}")
    return found


def switches(results: Path, asked: Switches | None = None) -> Drawn:
    """Every point of every switch from a folder of kept results, with the figure."""
    from tools.switches.figure import switches as draw

    rows = [row for switch in (asked or load_switches()).switches for row in _points(results, switch)]
    table = pl.DataFrame(rows, infer_schema_length=None)
    return Drawn(table, draw(table))


def _points(results: Path, switch: Switch) -> Iterator[dict[str, Any]]:
    """One row per series and setting."""
    for series in switch.series:
        for setting in switch.settings:
            source = Path(setting.study or switch.study or "") / (setting.table or switch.table or "")
            rows = _read(results / source)
            row = _only(rows, {**switch.where, **series.where, **setting.where}, source)
            value, low, high = (
                _scaled(_cell(row, column, source), switch.scale)
                for column in (switch.numbers.value, switch.numbers.low, switch.numbers.high)
            )
            reference = _reference(rows, row, switch, series, source)
            yield {
                "switch": switch.name, "title": switch.title, "turns": switch.turns, "axis": switch.axis,
                "series": series.label, "setting": setting.label, "by": setting.by,
                "value": value, "low": low, "high": high, "n": row["n"], "seeds": row["seeds"],
                "reference": reference, "reference_is": switch.reference.says,
                "against": _side(low, high, reference),
                **_beside(row, switch.beside, source),
                "study": source.parts[0], "table": source.name,
            }  # fmt: skip


def _read(path: Path) -> pl.DataFrame:
    if not path.is_file():
        study = path.parent.name
        raise ExegeteError(
            f"there is no {path}: run its study (`exegete run {study}`) and keep its tables "
            f"(`exegete report runs/{study} --results {path.parent}`)"
        )
    return pl.read_csv(path, infer_schema_length=None)


def _only(rows: pl.DataFrame, where: Mapping[str, str | float], source: Path) -> dict[str, Any]:
    """The one row that has all of these; another number of them is an error that says what was looked for."""
    for column in where:
        if column not in rows.columns:
            raise UsageError(f"{source} has no column '{column}': choose from {', '.join(rows.columns)}")
    kept = rows.filter([pl.col(column).cast(pl.String) == _written(rows, column, v) for column, v in where.items()])
    if kept.height != 1:
        said = ", ".join(f"{column} = {value}" for column, value in where.items())
        raise UsageError(f"{source} has {kept.height} rows with {said}: a point is exactly one row")
    return kept.row(0, named=True)


def _written(rows: pl.DataFrame, column: str, value: str | float) -> str:
    """A value as the column would write it: 1 in a column of decimals is 1.0."""
    return str(pl.Series([value]).cast(rows.schema[column], strict=False).cast(pl.String)[0])


def _cell(row: Mapping[str, Any], column: str, source: Path) -> float | None:
    """A number of a row, or None where it is undefined."""
    if column not in row:
        raise UsageError(f"{source} has no column '{column}': choose from {', '.join(row)}")
    found = row[column]
    return None if found is None else float(found)


def _scaled(value: float | None, scale: float) -> float | None:
    return None if value is None else value * scale


def _reference(
    rows: pl.DataFrame, row: Mapping[str, Any], switch: Switch, series: Series, source: Path
) -> float | None:
    """What the value is read against, on the same scale."""
    of = switch.reference
    if of.column is None:
        return of.value
    if of.where:
        row = _only(rows, {**switch.where, **series.where, **of.where}, source)
    return _scaled(_cell(row, of.column, source), switch.scale)


def _side(low: float | None, high: float | None, reference: float | None) -> str | None:
    """Where the interval lies; None where there is no interval or no reference."""
    if low is None or high is None or reference is None:
        return None
    return ABOVE if low > reference else BELOW if high < reference else HOLDS


def _beside(row: Mapping[str, Any], beside: Beside | None, source: Path) -> dict[str, Any]:
    if beside is None:
        return {"beside": None, "beside_is": None}
    return {"beside": _cell(row, beside.column, source), "beside_is": beside.says}


def write_switches(results: Path, out: Path) -> tuple[Path, Path]:
    """Write switches.csv and switches.svg; the folder is made."""
    from exegete.report.theme import to_svg

    drawn = switches(results)
    out.mkdir(parents=True, exist_ok=True)
    table, figure = out / "switches.csv", out / "switches.svg"
    write_text(table, drawn.table.write_csv(float_precision=6))
    write_text(figure, to_svg(drawn.chart))
    return table, figure


def main(arguments: list[str]) -> int:
    """The door: two folders; errors are one sentence."""
    if len(arguments) != 2:
        print("usage: python -m tools.switches.switches RESULTS OUT", file=sys.stderr)
        return 2
    try:
        for path in write_switches(Path(arguments[0]), Path(arguments[1])):
            print(path)
    except ExegeteError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
