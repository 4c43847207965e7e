"""Drawing: a chart drawn once, for a file of its own, in pixels, and for inside a page.

To draw takes a tenth of a second and more, and everybody wants the same drawing in other ink. So it is drawn in
sentinel colours, and each use replaces them: a standalone file has ordinary ink on white, an inline drawing CSS
variables on no ground at all. A run keeps its drawings beside its figures, and a report takes them from there.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import Any

import polars as pl

from exegete.base.files import whole_file, write_text
from exegete.report.ink import GROUND, INK, SENTINELS, config


@dataclass(frozen=True)
class Drawing:
    """A chart as it was drawn, with the sentence that describes it and the table that it draws, where it has one."""

    sketch: str  # SVG in sentinel colours
    description: str = ""
    carried: str | None = None  # the table, as JSON

    @cached_property
    def svg(self) -> str:
        """A standalone drawing: real text, ordinary ink, white ground; the same chart gives the same bytes."""
        return _own_ids(_inked(self.sketch, INK | {"ground": INK["paper"]}), "")

    def png(self, scale: float = 2) -> bytes:
        """The standalone drawing in pixels."""
        import vl_convert

        pixels: bytes = vl_convert.svg_to_png(self.svg, scale=scale)
        return pixels

    def inline(self, name: str = "") -> str:
        """For inside a page: transparent, its ink in CSS variables (`--ink`, …), its ids begin with `name`."""
        bare = re.sub(rf'<rect [^>]*fill="{GROUND}"[^>]*/>', "", self.sketch, count=1)
        return _inked(_own_ids(bare, name), {word: f"var(--{word}, {ink})" for word, ink in INK.items()})

    @property
    def numbers(self) -> pl.DataFrame | None:
        """The table that it draws."""
        return _table(self.carried)

    def save(self, folder: Path, name: str) -> tuple[Path, Path]:
        """Write name.svg and name.png, each whole or not at all."""
        svg, png = folder / f"{name}.svg", folder / f"{name}.png"
        write_text(svg, self.svg)
        with whole_file(png) as beside:
            beside.write_bytes(self.png())
        return svg, png


def drawing(chart: Any) -> Drawing:
    """A chart (altair), drawn; what is drawn already is itself."""
    if isinstance(chart, Drawing):
        return chart
    # Altair's check of every part against its schema would take longer than the drawing, which says what is wrong, too.
    said = chart.to_dict(validate=False)
    return Drawing(_sketched(said), str(said.get("description", "")), _carried(said))


def get_ready() -> None:
    """Pay now for what the first drawing of a process takes: a second."""
    Drawing(_sketched({"mark": "point", "data": {"values": [{}]}})).png()


def carried_table(specification: Mapping[str, Any]) -> pl.DataFrame | None:
    """The table that a chart carries, before it is drawn."""
    return _table(_carried(specification))


def _carried(specification: Mapping[str, Any]) -> str | None:
    found: str | None = specification.get("usermeta", {}).get("numbers")
    return found


def _table(carried: str | None) -> pl.DataFrame | None:
    return None if carried is None else pl.read_json(StringIO(carried), infer_schema_length=None)


def _sketched(specification: dict[str, Any]) -> str:
    """The whole look is ours: neither a user's altair theme nor the chart's own ink shows through."""
    import altair as alt
    import vl_convert

    look = {"config": config(SENTINELS, ground=GROUND), "usermeta": {}}
    version = ".".join(alt.SCHEMA_VERSION.split(".")[:2])
    return _slim(vl_convert.vegalite_to_svg(specification | look, vl_version=version))


def _inked(svg: str, ink: Mapping[str, str]) -> str:
    sentinels = SENTINELS | {"ground": GROUND}
    for word, colour in ink.items():
        svg = svg.replace(sentinels[word], colour)
    return svg


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
