"""Ink: what text, axes and grids are drawn in, by name, so that a drawing serves white paper and a dark page alike."""

from collections.abc import Mapping
from typing import Any

FONT = "-apple-system, 'Segoe UI', Roboto, Arial, 'Liberation Sans', sans-serif"
INK = {"ink": "#1b1b1f", "muted": "#55565e", "rule": "#d9d9de", "paper": "#ffffff"}
# No data colour, and no colour that anybody would choose: what is found in a drawing can only be ink.
SENTINELS = {"ink": "#010b17", "muted": "#020b17", "rule": "#030b17", "paper": "#040b17"}
GROUND = "#050b17"  # the sentinel of what lies below all else


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
        # A title says how to read a figure; what it shows is the caption's to say. Only a title names its font's style,
        # so that a page finds it in the drawing and can let it wrap.
        "title": {"color": ink["muted"], "fontSize": 11, "fontWeight": "normal", "anchor": "start", "offset": 10}
        | {"fontStyle": "normal"},
        "style": {
            "chance": {"color": ink["ink"], "strokeWidth": 1},
            "mark": {"color": ink["ink"]},
            "note": {"color": ink["muted"], "fontSize": 10},
            "sentence": {"color": ink["muted"], "fontSize": 13},
            "room": {"color": ink["rule"]},
            "ground": {"color": ink["paper"]},
        },
    }
