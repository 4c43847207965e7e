"""Words over a corpus: attention's mean share of every word against another method's, as a figure and as tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

from exegete.base.arguments import Count, check_arguments
from exegete.base.errors import unknown
from exegete.base.extras import to_pandas
from exegete.base.files import whole_file
from exegete.measures.words import LEAST, count_told_texts, over_words
from exegete.report.columns import count, decimal, interval, number, text
from exegete.report.labels import importance_labels
from exegete.report.section import Figure, Table
from exegete.report.theme import PALETTE, inline, nothing, themed

MARKS, ROWS = 400, 12  # words that are drawn, and that a table shows from either end
ACROSS = 3  # methods that a terminal has room for
SIDE, SMALL, LARGE = 560, 9, 15  # pixels of a figure, and of a rare and a frequent word
ROOM = 1.5  # the axes' end, over the largest share: the word there needs room
FREQUENT = 0.05  # share of the texts from which on a word is one of many texts
FLOOR = 1 / 32  # shares below it stand on it
TICKS = [2.0**power for power in range(-5, 8)]
CAPTION = (
    "Of every text a word's share is n·|score| / Σ|score|: 1 is an even one. Means over occurrences; 95 % intervals by "
    "Student's t over texts, since the words of one text belong together."
)


@dataclass(frozen=True)
class Words:
    """The importance of the words of a corpus, by every method; `frame` has a row per word and method."""

    frame: pl.DataFrame  # word, method, texts, count, mean, low, high, less, less_low, less_high
    methods: tuple[str, ...]  # the first is what the others are held against
    least: int  # texts that a word must be in
    left_out: int  # words in fewer
    texts: int  # in which every method says something
    silent: int  # in which some method gives every word 0
    more: str = ""  # a sentence: how many texts were scored anew, and why

    def __len__(self) -> int:
        return self.frame["word"].n_unique()

    @property
    def content(self) -> pl.DataFrame:
        """The words that are not in many of the texts: what is in many is mostly *the*, *of* and the like."""
        own = self.frame.filter(pl.col("method") == self.methods[0])
        return own.filter(pl.col("texts") <= max(self.least, FREQUENT * self.texts))

    def save(self, path: str | Path) -> None:
        """Write the frame as CSV, numbers to six digits."""
        with whole_file(Path(path)) as beside:
            self.frame.with_columns(pl.selectors.float().round(6)).write_csv(beside)

    def to_pandas(self) -> Any:
        """The frame for pandas (extra `pandas`)."""
        return to_pandas(self.frame)

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        about = {"methods": list(self.methods), "least": self.least, "left_out": self.left_out}
        return about | {"texts": self.texts, "silent": self.silent, "more": self.more, "rows": self.frame.to_dicts()}

    def beside(self, method: str | None = None) -> pl.DataFrame:
        """The first method and another, a row per word: word, texts, count, own, other, less, each with its bounds."""
        other = self._other(method)
        own = self.frame.filter(pl.col("method") == self.methods[0])
        own = own.select("word", "texts", "count", own="mean", own_low="low", own_high="high")
        named = self.frame.filter(pl.col("method") == other).drop("method", "texts", "count")
        named = named.rename({"mean": "other", "low": "other_low", "high": "other_high"})
        return own.join(named, on="word", maintain_order="left")

    def figure(self, method: str | None = None) -> Any:
        """Words as marks: the first method across, another upwards (altair)."""
        own, other = (self._labels[name] for name in (self.methods[0], self._other(method)))
        return word_chart(self.beside(method), own, other)

    @property
    def said(self) -> str:
        """What was counted."""
        silent = f", {self.silent:,} more in which a method gives every word 0 are left out" if self.silent else ""
        words = f"{self.left_out:,} words in fewer than {self.least} texts are left out"
        return f"{len(self):,} words of {self.texts:,} texts{silent}; {words}. {self.more}".rstrip()

    @check_arguments
    def most(self, rows: Count = ROWS) -> Table:
        """The words that the first method gives most, beside what the next ones do, for a terminal."""
        wide, shown = self.beside().select("word", "texts", "count"), self.methods[:ACROSS]
        for place, name in enumerate(shown):
            cell = pl.struct("mean", "low", "high").map_elements(_with_bounds, return_dtype=pl.String)
            column = self.frame.filter(pl.col("method") == name).select("word", cell.alias(f"m{place}"))
            wide = wide.join(column, on="word", maintain_order="left")
        first = self.frame.filter(pl.col("method") == self.methods[0]).select("word", "mean")
        top = wide.join(first, on="word").sort("mean", "word", descending=[True, False]).head(rows)
        columns = [text("word"), count("texts"), count("count", "times")]
        columns += [text(f"m{place}", self._labels[name]) for place, name in enumerate(shown)]
        more = [self._labels[name] for name in self.methods[ACROSS:]]
        also = f" Among all rows also: {', '.join(more)}." if more else ""
        title = f"The words that {self._labels[self.methods[0]]} gives most"
        return Table(title, top, f"{CAPTION} {self.said}{also}", columns)

    @check_arguments
    def apart(self, method: str | None = None, rows: Count = ROWS) -> Table:
        """The words on which two methods surely differ most: from either end, where the interval leaves out 0."""
        frame = self.beside(method)
        above = frame.filter(pl.col("less_low") > 0).sort("less", "word", descending=[True, False]).head(rows)
        below = frame.filter(pl.col("less_high") < 0).sort("less", "word").head(rows).reverse()
        own, other = (self._labels[name] for name in (self.methods[0], self._other(method)))
        columns = [
            text("word"), count("texts"), count("count", "times"), number("own", own), interval("own_low", "own_high"),
            number("other", other), interval("other_low", "other_high"), number("less", "difference"),
            interval("less_low", "less_high"),
        ]  # fmt: skip
        caption = f"{CAPTION} {self.said} Intervals are not corrected for the number of words."
        return Table(f"Where {own} and {other} differ most", pl.concat([above, below]), caption, columns)

    def _other(self, method: str | None) -> str:
        others = self.methods[1:] or self.methods
        if method is not None and method not in self.methods:
            raise unknown("method of these words", method, self.methods)
        return others[0] if method is None else method

    @property
    def _labels(self) -> dict[str, str]:
        return importance_labels(self.methods)


def shares_by_word(frame: pl.DataFrame, methods: Sequence[str], least: int = LEAST) -> Words:
    """Words from a frame with `example`, `words` and a list of scores per method."""
    every, told = over_words(frame, methods), count_told_texts(frame, methods)
    kept = every.filter(pl.col("texts") >= least)
    left = every["word"].n_unique() - kept["word"].n_unique()
    return Words(kept, tuple(methods), least, left, told, frame.height - told)


def figure_of(words: Words) -> Figure:
    """The figure for a report: the first two methods."""
    caption = (
        f"Mean shares of a text; 1 is an even one. {words.said} Both axes are logarithmic; on the line both agree."
    )
    return Figure("Words over all texts", words.figure(), caption)


def word_chart(beside: pl.DataFrame, own: str, other: str) -> alt.LayerChart | alt.Chart:
    """A word where there is room, the frequent ones first; else a dot."""
    if beside.is_empty():
        return nothing("no word is in texts enough")
    rows = beside.sort("count", "word", descending=[True, False]).head(MARKS)
    top = max(2.0, *rows["own"], *rows["other"]) * ROOM
    table = _placed(rows, top)
    ticks = [tick for tick in TICKS if tick <= top]
    scale = alt.Scale(type="log", base=2, domain=[FLOOR, top])
    base = alt.Chart(inline(table)).encode(
        x=alt.X("x:Q", scale=scale, axis=_axis(own, ticks)),
        y=alt.Y("y:Q", scale=scale, axis=_axis(other, ticks)),
    )
    even = alt.Chart(inline(pl.DataFrame({"x": [FLOOR, top], "y": [FLOOR, top]})))
    layers = [
        even.mark_line(style="chance", strokeWidth=1, opacity=0.5, strokeDash=[4, 3]).encode(x="x:Q", y="y:Q"),
        base.transform_filter("!datum.room").mark_point(filled=True, size=14, opacity=0.45, color=PALETTE[0]),
        base.transform_filter("datum.room")
        .mark_text(style="mark")
        .encode(text="word:N", size=alt.Size("size:Q", scale=None, legend=None)),
    ]
    said = f"The mean share of {len(table)} words by {own} and by {other}; words below the line {own} gives more."
    return themed(alt.LayerChart(layer=layers).properties(width=SIDE, height=SIDE), said, table)


def _axis(label: str, ticks: list[float]) -> alt.Axis:
    said = "datum.value < 1 ? '1/' + 1 / datum.value : datum.value"
    return alt.Axis(title=f"{label} →", values=ticks, labelExpr=said, grid=False)


def _placed(rows: pl.DataFrame, top: float) -> pl.DataFrame:
    """Where every word stands, how large, and whether there is room for it."""
    often = log(max(2, *rows["count"], 2))
    taken: list[tuple[float, float, float, float]] = []
    found = []
    for row in rows.iter_rows(named=True):
        x, y = (max(FLOOR, row[name]) for name in ("own", "other"))
        size = SMALL + (LARGE - SMALL) * log(row["count"]) / often
        across, up = (SIDE * log(value / FLOOR) / log(top / FLOOR) for value in (x, y))
        half, tall = len(row["word"]) * size * 0.29 + 1, size * 0.55
        box = (across - half, across + half, up - tall, up + tall)
        room = box[0] >= 0 and box[1] <= SIDE and all(_apart(box, other) for other in taken)
        taken += [box] if room else []
        found.append({"word": row["word"], "count": row["count"], "x": x, "y": y, "size": size, "room": room})
    schema = {"word": pl.String, "count": pl.Int64, "x": pl.Float64, "y": pl.Float64, "size": pl.Float64}
    return pl.DataFrame(found, schema=schema | {"room": pl.Boolean})


def _apart(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[1] < other[0] or one[0] > other[1] or one[3] < other[2] or one[2] > other[3]


def _with_bounds(row: dict[str, float | None]) -> str:
    low, high = row["low"], row["high"]
    bounds = "" if low is None or high is None else f" [{decimal(low, 2)}, {decimal(high, 2)}]"
    return decimal(row["mean"] or 0.0, 2) + bounds
