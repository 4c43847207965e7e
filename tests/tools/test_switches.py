"""Switches: every point is the one row that its filters name, on its scale and side; what isn't there is told."""

import csv
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tools.switches.figure import switches as draw
from tools.switches.switches import Switches, load_switches, main, switches

from exegete.base.errors import ExegeteError, UsageError
from exegete.base.names import validate
from exegete.report.drawing import drawing
from exegete.report.theme import to_svg
from exegete.runs.study import load_study

pytestmark = pytest.mark.slow

RESULTS = Path(__file__).parents[2] / "results"
ROWS = (
    "model,kind,lam,mean,low,high,n,seeds,chance,tvd\n"
    "a,free,,0.5,0.4,0.6,30,3,0.1,0.01\n"
    "a,bound,1,0.05,0.01,0.09,30,3,0.1,0.02\n"
    "a,bound,0.3,0.12,0.05,0.2,30,3,0.1,0.03\n"
    "b,free,,0.2,,,10,1,0.1,0.01\n"
    "b,bound,1,0.3,0.2,0.4,10,1,,0.02\n"
    "a,twin,,0.7,0.6,0.8,30,3,0.1,0.01\n"
    "b,twin,,0.8,0.7,0.9,10,1,0.1,0.01\n"
)
SWITCH: dict[str, Any] = {
    "name": "made_up", "title": "Is it so?", "between": ("one", "other"), "turns": "who asks", "axis": "how much",
    "study": "st", "table": "t.csv", "numbers": {"value": "mean", "low": "low", "high": "high"}, "scale": 100,
    "reference": {"column": "chance", "says": "luck"}, "beside": {"column": "tvd", "says": "TVD"},
    "series": ({"label": "A", "where": {"model": "a"}}, {"label": "B", "where": {"model": "b"}}),
    "settings": (
        {"label": "left", "by": "one", "where": {"kind": "free"}},
        {"label": "right", "by": "other", "where": {"kind": "bound", "lam": 1}},
    ),
}  # fmt: skip


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    (tmp_path / "st").mkdir()
    (tmp_path / "st" / "t.csv").write_text(ROWS, encoding="utf8")
    return tmp_path


def made(**other: Any) -> Switches:
    found: Switches = validate(Switches, {"version": 1, "switches": [SWITCH | other]}, "file")
    return found


def test_points_known_by_hand(kept: Path) -> None:
    table = switches(kept, made()).table
    assert table["series"].to_list() == ["A", "A", "B", "B"]
    assert table["setting"].to_list() == ["left", "right"] * 2
    assert table["value"].to_list() == pytest.approx([50, 5, 20, 30])
    assert table["low"].to_list() == pytest.approx([40, 1, None, 20])
    assert table["reference"].to_list() == pytest.approx([10, 10, 10, None])
    assert table["against"].to_list() == ["above", "below", None, None]  # no interval; no reference
    assert table["n"].to_list() == [30, 30, 10, 10]
    assert table["beside"].to_list() == [0.01, 0.02, 0.01, 0.02]  # not on the scale of the values


def test_an_interval_that_holds_its_reference_says_so(kept: Path) -> None:
    settings = (SWITCH["settings"][0], {"label": "right", "by": "x", "where": {"kind": "bound", "lam": 0.3}})
    table = switches(kept, made(settings=settings, series=SWITCH["series"][:1])).table
    assert table["against"].to_list() == ["above", "holds it"]


def test_references_of_other_rows_and_fixed_ones(kept: Path) -> None:
    other = {"column": "mean", "where": {"kind": "twin"}, "says": "a twin"}
    assert switches(kept, made(reference=other)).table["reference"].to_list() == pytest.approx([70, 70, 80, 80])
    fixed = switches(kept, made(reference={"value": 7, "says": "seven"})).table
    assert fixed["reference"].to_list() == [7] * 4  # as written, on the scale of the values


@pytest.mark.parametrize(
    ("other", "error", "said"),
    [
        ({"where": {"colour": "red"}}, UsageError, "no column 'colour'"),
        ({"where": {"n": 31}}, UsageError, "0 rows with n = 31"),
        ({"where": {}, "settings": ({"label": "l", "by": "", "where": {"kind": "bound"}}, SWITCH["settings"][1])},
         UsageError, "2 rows with model = a, kind = bound"),
        ({"numbers": {"value": "median", "low": "low", "high": "high"}}, UsageError, "no column 'median'"),
        ({"study": "nowhere"}, ExegeteError, "exegete run nowhere"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_told(kept: Path, other: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        switches(kept, made(**other))


@pytest.mark.parametrize(
    "wrong",
    [
        {"settings": SWITCH["settings"][:1]},
        {"settings": (SWITCH["settings"][0], SWITCH["settings"][0])},
        {"study": None},
        {"reference": {"says": "nothing"}},
        {"reference": {"says": "both", "value": 0, "column": "chance"}},
    ],
)
def test_wrong_declarations_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        made(**wrong)


def test_a_file_that_is_not_toml_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text("a = ", encoding="utf8")
    with pytest.raises(UsageError, match="not TOML"):
        load_switches(tmp_path / "x.toml")


def test_the_figure_shows_every_panel_in_ink_that_follows_the_page(kept: Path) -> None:
    twice = Switches(
        version=1, switches=(*made().switches, *made(name="second", title="And so?", beside=None).switches)
    )
    chart = switches(kept, twice).chart
    drawn = to_svg(chart)
    for said in ("Is it so?", "And so?", "who asks", "luck", "left", "(one)", "TVD 0.01"):
        assert said in drawn
    inline = drawing(chart).inline("x")  # what isn't ink of the theme would vanish on a dark page
    assert 'fill="#000"' not in inline
    assert 'fill="black"' not in inline
    assert "nothing to show" in to_svg(draw(pl.DataFrame()))


def test_the_built_in_switches_name_studies_of_the_library() -> None:
    named = {setting.study or switch.study for switch in load_switches().switches for setting in switch.settings}
    assert len(named) == 7
    for study in named:
        load_study(str(study))


def test_kept_results_hold_every_point_of_the_built_in_switches(tmp_path: Path) -> None:
    """The figure in the repository is what its tables say, row by row."""
    assert main([str(RESULTS), str(tmp_path)]) == 0
    fresh = (tmp_path / "switches.csv").read_text(encoding="utf8")
    assert fresh == (RESULTS / "switches" / "switches.csv").read_text(encoding="utf8")
    with (RESULTS / "neely_schouten_2020" / "agreement_summary.csv").open(encoding="utf8") as file:
        slow = [
            row["mean"] for row in csv.DictReader(file)
            if row["task"] == "sst" and row["class"] == "all" and row["second"] == "gradient"
            and row["model"].startswith("bilstm:attention=tanh,projection=sparsemax")
            and row["first"] == "attention" and (row["measure"], row["k"]) == ("legacy", "nonzeros")
        ]  # fmt: skip
    table = pl.read_csv(tmp_path / "switches.csv")
    point = table.filter(pl.col("series") == "sparsemax", pl.col("by") == "Neely & Schouten")
    assert [float(value) for value in slow] == point["value"].to_list()
    assert point["against"].to_list() == ["below"]


def test_the_door_leaves_with_a_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert main([str(tmp_path), str(tmp_path / "out")]) == 1
    assert "exegete run" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
