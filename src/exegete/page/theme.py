"""Theme: one look for every figure, on white paper and on a page that follows the reader's light or dark.

A figure is drawn once. Its data colours are fixed and legible on both grounds; its ink (text, axes, grid) is not fixed
but named. A standalone file gets ordinary ink on white. An inline one is drawn in sentinel colours, which become CSS
variables.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from functools import wraps
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar

import altair as alt
import polars as pl
import vl_convert
from altair.typing import ChartType
from altair.utils.schemapi import debug_mode

from exegete.base.files import whole_file, write_text

# Vermilion and green are Okabe & Ito's (2008), blue is theirs a little lighter, violet and magenta were searched for.
# All have a contrast of 3:1 or more to white and to #111, and stay apart for protan, deutan and tritan readers (the
# tests compute both). Where they can, shapes and dashes say the same once more.
PALETTE = ("#0877BA", "#D55E00", "#009E73", "#9085F2", "#B0287A")
NEUTRAL = "#808080"  # what is not a finding: noise, "all others"
DASHES = ((1, 0), (7, 3), (2, 2), (9, 3, 2, 3), (4, 2))
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")
FONT = "-apple-system, 'Segoe UI', Roboto, Arial, 'Liberation Sans', sans-serif"

INK = {"ink": "#1b1b1f", "muted": "#55565e", "rule": "#d9d9de", "paper": "#ffffff"}
# No data colour, and no colour that anybody would choose: what is found in a drawing can only be ink.
SENTINELS = {"ink": "#010b17", "muted": "#020b17", "rule": "#030b17", "paper": "#040b17"}

_VEGA_LITE = ".".join(alt.SCHEMA_VERSION.split(".")[:2])
_Drawn = TypeVar("_Drawn", alt.Chart, alt.FacetChart, alt.LayerChart)


def config(ink: Mapping[str, str] = INK, ground: str = INK["paper"]) -> dict[str, Any]:
    """Vega-Lite's configuration with the given ink on the given ground."""
    sized = {"labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal"}
    quiet = sized | {"labelColor": ink["muted"], "titleColor": ink["ink"]}
    lines = {"gridColor": ink["rule"], "domainColor": ink["muted"], "tickColor": ink["muted"], "tickSize": 4}
    symbols = {"symbolStrokeWidth": 2, "symbolOpacity": 1}
    heading = {"labelColor": ink["ink"], "labelFontSize": 12, "labelFontWeight": "bold", "labelLimit": 420}
    return {
        "aria": False,  # the report describes a figure as a whole and gives its numbers as a table
        "background": ground,
        "font": FONT,
        "padding": {"left": 6, "top": 6, "right": 12, "bottom": 6},  # the last tick label hangs over
        "view": {"stroke": None},
        "axis": quiet | lines | {"titlePadding": 8, "labelLimit": 260},
        "axisQuantitative": {"domain": False, "ticks": False, "labelPadding": 6},
        "legend": quiet
        | symbols
        | {"orient": "top", "title": None, "labelLimit": 320, "columnPadding": 18, "offset": 12},
        "header": quiet | heading | {"title": None},
        # A title says how to read a figure; what it shows is the caption's to say.
        "title": {"color": ink["muted"], "fontSize": 11, "fontWeight": "normal", "anchor": "start", "offset": 10},
        "style": {
            "chance": {"color": ink["ink"], "strokeWidth": 1},
            "mark": {"color": ink["ink"]},
            "note": {"color": ink["muted"], "fontSize": 10},
            "sentence": {"color": ink["muted"], "fontSize": 13},
            "room": {"color": ink["rule"]},
            "ground": {"color": ink["paper"]},
        },
    }


def themed(chart: _Drawn, description: str, table: pl.DataFrame | None = None) -> _Drawn:
    """The chart in its look, wherever it is shown, with a sentence that describes it and the table that it draws."""
    drawn: _Drawn = chart.copy(deep=False)
    drawn.config = alt.Config(**config())
    drawn.description = description
    if table is not None:
        drawn.usermeta = {"numbers": table.write_json()}
    return drawn


def numbers(chart: ChartType) -> pl.DataFrame | None:
    """The table that a chart draws, where it carries one."""
    carried = chart.to_dict(validate=False).get("usermeta", {}).get("numbers")
    return None if carried is None else pl.read_json(StringIO(carried), infer_schema_length=None)


class _Inline(alt.InlineData):
    """Data that charts share: altair would copy every cell with every part of a chart that it puts together."""

    def __deepcopy__(self, _: Any) -> "_Inline":
        return self


def inline(frame: pl.DataFrame) -> alt.InlineData:
    """A small frame as a chart's own data: no row limit, and no transformer of the user's that changes the output."""
    with debug_mode(False):  # altair would check every cell against its schema, for seconds
        return _Inline(values=frame.to_dicts())


def nothing(why: str) -> alt.Chart:
    """A small chart that says why there is no other."""
    sentence = f"nothing to show: {why}"
    words = alt.Chart(inline(pl.DataFrame({"all": [0]}))).mark_text(style="sentence", align="left")
    drawn: alt.Chart = words.encode(x=alt.value(0), text=alt.value(sentence))
    drawn = drawn.properties(width=7 * len(sentence), height=40)
    return themed(drawn, sentence)


def figure(
    tabled: Callable[[pl.DataFrame], pl.DataFrame], why: str
) -> Callable[[Callable[[pl.DataFrame], _Drawn]], Callable[[pl.DataFrame], _Drawn | alt.Chart]]:
    """A function that draws a table as a figure of the rows, or the summary, that `tabled` makes the table of.

    Its docstring is the sentence that describes the figure. Where there is nothing to draw, the chart says why.
    """

    def of(draw: Callable[[pl.DataFrame], _Drawn]) -> Callable[[pl.DataFrame], _Drawn | alt.Chart]:
        description = " ".join((draw.__doc__ or "").split())

        @wraps(draw)
        def drawn(frame: pl.DataFrame) -> _Drawn | alt.Chart:
            table = tabled(frame)
            return nothing(why) if table.is_empty() else themed(draw(table), description, table)

        return drawn

    return of


def to_svg(chart: ChartType) -> str:
    """A standalone drawing: real text, ordinary ink, white ground; the same chart gives the same bytes."""
    return _svg(chart, config())


def to_png(chart: ChartType, scale: float = 2) -> bytes:
    """The standalone drawing in pixels."""
    png: bytes = vl_convert.svg_to_png(to_svg(chart), scale=scale)
    return png


def inline_svg(chart: ChartType, name: str = "") -> str:
    """A drawing for inside a page: transparent, its ink in CSS variables (`--ink`, …), its ids begin with `name`."""
    svg = _svg(chart, config(SENTINELS, ground="transparent"), name)
    for word, sentinel in SENTINELS.items():
        svg = svg.replace(sentinel, f"var(--{word}, {INK[word]})")
    return svg


def save(chart: ChartType, folder: Path, name: str) -> tuple[Path, Path]:
    """Write name.svg and name.png, each whole or not at all."""
    svg, png = folder / f"{name}.svg", folder / f"{name}.png"
    write_text(svg, to_svg(chart))
    with whole_file(png) as beside:
        beside.write_bytes(to_png(chart))
    return svg, png


def _svg(chart: ChartType, look: Mapping[str, Any], name: str = "") -> str:
    # The whole look: neither a user's altair theme nor the chart's own ink shows through.
    # Altair's check of every part against its schema would take longer than the drawing, which says what is wrong, too.
    specification = chart.to_dict(validate=False) | {"config": look, "usermeta": {}}
    return _own_ids(_slim(vl_convert.vegalite_to_svg(specification, vl_version=_VEGA_LITE)), name)


def _slim(svg: str) -> str:
    """Without vega's invisible paths and per-mark roles (a figure is one image to a screen reader): half the bytes."""
    empty = r'd="(?:|M0(?:\.5)?,0(?:\.5)?h0v0h0Z)"'
    seen = re.sub(rf'<path class="(?:background|foreground)"[^>]*{empty}[^>]*/>', "", svg)
    return re.sub(r"<[a-z][^>]*>", lambda tag: _NOISE.sub("", tag[0]), seen)  # only in tags: a label may say anything


_NOISE = re.compile(r' (?:aria-[a-z]+|role|pointer-events|class)="[^"]*"')


def _own_ids(svg: str, name: str) -> str:
    """Ids of the drawing's own: vega counts clips over a process, so one chart would differ and two in a page clash."""
    found = list(dict.fromkeys(re.findall(r'<\w+ id="([^"]+)"', svg)))  # a "<" is markup: in a label it is written &lt;
    plain = svg
    for place, old in enumerate(found):
        plain = re.sub(rf'(<\w+ id="|="url\(#){re.escape(old)}(?=["\)])', rf"\g<1>@{place}", plain)
    own = name or f"f{hashlib.sha256(plain.encode()).hexdigest()[:8]}"
    return re.sub(r'(<\w+ id="|="url\(#)@(\d+)', rf"\g<1>{own}-\g<2>", plain)
