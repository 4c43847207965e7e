"""One look: legible on both grounds, the same bytes every time, nothing of one drawing in another."""

import re
from pathlib import Path
from xml.etree import ElementTree

import altair as alt
import polars as pl
import pytest

from exegete.experiments.agreement.figure import histogram, ties, topk
from exegete.report.density import density
from exegete.report.drawing import drawing
from exegete.report.theme import INK, NEUTRAL, PALETTE, SENTINELS, nothing
from tests.report.agreement_frames import agreement_rows, agreement_summary
from tests.report.colours import DEFICIENCIES, contrast, nearest

CHARTS = {
    "histogram": histogram(agreement_rows()),
    "density": density(agreement_rows()),
    "topk": topk(agreement_summary()),
    "ties": ties(agreement_summary()),
}


@pytest.mark.parametrize("colour", [*PALETTE, NEUTRAL])
def test_data_are_legible_on_white_and_near_black(colour: str) -> None:
    assert contrast(colour, "#ffffff") >= 3
    assert contrast(colour, "#111111") >= 3


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_colours_stay_apart(deficiency: str) -> None:
    assert nearest(PALETTE, deficiency) > 0.06  # about three times what is just seen


def test_text_is_legible() -> None:
    assert contrast(INK["ink"], INK["paper"]) >= 7
    assert contrast(INK["muted"], INK["paper"]) >= 4.5


@pytest.mark.parametrize("name", CHARTS)
def test_the_same_chart_gives_the_same_bytes(name: str) -> None:
    assert drawing(CHARTS[name]).svg == drawing(CHARTS[name]).svg


@pytest.mark.parametrize("name", CHARTS)
def test_an_inline_drawing_has_the_pages_ink(name: str) -> None:
    svg = drawing(CHARTS[name]).inline()
    ElementTree.fromstring(svg)
    assert not any(sentinel in svg.lower() for sentinel in SENTINELS.values())
    assert "var(--ink" in svg
    assert "var(--rule" in svg
    assert not re.search(
        r'(fill|stroke)="(white|black|#000|#888|#ddd)"', svg
    )  # vega's own ink would vanish on one of the grounds
    assert "<text" in svg


def test_a_standalone_drawing_is_on_white() -> None:
    svg = drawing(CHARTS["ties"]).svg
    assert f'fill="{INK["paper"]}"' in svg
    assert "var(" not in svg


def test_a_users_altair_theme_changes_nothing() -> None:
    plain = drawing(CHARTS["ties"]).svg
    with alt.theme.enable("dark"):
        assert drawing(CHARTS["ties"]).svg == plain


def test_ids_of_two_drawings_in_a_page_differ() -> None:
    ids = [set(re.findall(r' id="([^"]+)"', drawing(CHARTS[name]).inline())) for name in ("topk", "density")]
    assert ids[0]
    assert not ids[0] & ids[1]


def test_hostile_labels_are_text() -> None:
    hostile = '</text><script>alert("1")</script>'
    rows = agreement_rows(20, (hostile, "b")).with_columns(
        model=pl.lit(f'hf:{hostile} id="clip0"\''), task=pl.lit(hostile)
    )
    for chart in (histogram(rows), density(rows), nothing(hostile)):
        svg = drawing(chart).inline()
        ElementTree.fromstring(svg)
        assert "<script" not in svg


def test_save_writes_both_files(tmp_path: Path) -> None:
    svg, png = drawing(CHARTS["ties"]).save(tmp_path / "figures", "ties")
    assert svg.read_text() == drawing(CHARTS["ties"]).svg
    assert png.read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in svg.parent.iterdir()) == ["ties.png", "ties.svg"]
    assert len(drawing(CHARTS["ties"]).png(scale=1)) < len(png.read_bytes())
