"""Fuzz: a sample of inputs that nobody would write; and that the tool finds what it looks for."""

import json
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tools.fuzz import KINDS, Kind, outcome

from exegete.base.errors import ExegeteError
from exegete.models.build import build_model
from exegete.runs.study import load_study
from exegete.tasks.catalogue import load_task
from exegete.training.checkpoint import load_checkpoint
from tools import fuzz, fuzz_inputs

SAMPLE = 400  # inputs of all kinds together


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_every_input_is_taken_or_refused_in_a_sentence(name: str) -> None:
    kind = KINDS[name]

    @settings(max_examples=round(SAMPLE * kind.share), deadline=None, derandomize=True, database=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(kind.drawn)
    def ask(drawn: Any) -> None:
        assert outcome(kind, drawn) in ("taken", "refused")

    ask()


def test_shares_are_shares_of_all_inputs() -> None:
    assert sum(kind.share for kind in KINDS.values()) == pytest.approx(1)


def _raising(error: BaseException) -> Kind:
    def tried(_: Any, __: Path) -> None:
        raise error

    return Kind(st.none(), tried, 1.0)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ExegeteError("it is not so: write it so"), "refused"),
        (ExegeteError("two\nlines"), "FOUND a refusal that is not one sentence"),
        (KeyError("x"), "FOUND KeyError"),
        (SystemExit(3), "FOUND SystemExit"),
    ],
)
def test_what_counts_as_a_finding(error: BaseException, said: str) -> None:
    assert outcome(_raising(error), None).startswith(said)


@pytest.mark.slow
def test_a_hang_and_a_file_that_is_left_are_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    def leaves(_: Any, folder: Path) -> None:
        (folder / "half").write_text("x")
        raise ExegeteError("no")

    monkeypatch.setattr(fuzz, "LIMIT", 1)
    assert outcome(Kind(st.none(), lambda *_: time.sleep(5), 1.0), None).startswith("FOUND Hang")
    assert outcome(Kind(st.none(), leaves, 1.0), None) == "FOUND a file that was left behind: ['half']"


def test_a_run_counts_what_it_did() -> None:
    tally = fuzz.run(_raising(KeyError("x")), 3, time.monotonic() + 60, 0)
    assert tally.total == len(tally.findings) == 1  # there is only one None
    assert fuzz.run(KINDS["name"], 3, time.monotonic() - 1, 0).total == 0  # no time is left


# What fuzzing found, each once more by hand.


def test_a_damaged_parquet_file(tmp_path: Path) -> None:
    """Its columns can be told, its pages can't be read."""
    whole = fuzz_inputs._as_parquet([{"text": f"word{i} {'x' * (i % 7)}", "label": str(i % 2)} for i in range(200)])
    (tmp_path / "a.parquet").write_bytes(whole[:40] + b"\x00" * 40 + whole[80:])
    with pytest.raises(ExegeteError, match="is not a whole parquet file"):
        load_task(f"file:{tmp_path / 'a.parquet'}")


def test_a_parquet_file_at_which_its_reader_panics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a page lies beyond the end of the file, polars raises what is no Exception."""

    def panics(*_: Any, **__: Any) -> None:
        raise pl.exceptions.PanicException("range.end <= self.size")

    (tmp_path / "a.parquet").write_bytes(fuzz_inputs._as_parquet([{"text": "good", "label": "1"}]))
    monkeypatch.setattr(pl, "scan_parquet", panics)
    with pytest.raises(ExegeteError, match="is not a whole parquet file"):
        load_task(f"file:{tmp_path / 'a.parquet'}")


def test_a_damaged_gzip_file_that_is_not_utf8_either(tmp_path: Path) -> None:
    import gzip

    whole = gzip.compress(b"text,label\ngood,1\n\xff\xfe,0\n")
    (tmp_path / "a.csv.gz").write_bytes(whole[:-8] + b"\x00" * 8)
    with pytest.raises(ExegeteError, match=r"not UTF-8|not a whole gzip file"):
        load_task(f"file:{tmp_path / 'a.csv.gz'}")


@pytest.mark.parametrize(
    "change", [{"wrap": "no"}, {"model": []}, {"task": None}, {"words": "abc"}, {"labels": [0, 1]}]
)
def test_a_checkpoint_whose_facts_are_of_another_kind(tmp_path: Path, change: dict[str, Any]) -> None:
    folder, _ = fuzz_inputs.small()
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    facts = next(tmp_path.glob("*.json"))
    facts.write_text(json.dumps(json.loads(facts.read_text()) | change))
    with pytest.raises(ExegeteError, match="is damaged"):
        load_checkpoint(tmp_path)


def test_an_adapter_that_exits(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import sys\nsys.exit(4)\n")
    with pytest.raises(ExegeteError, match=r"mine\.py, line 2: SystemExit: 4"):
        build_model(f"own:file={tmp_path / 'mine.py'}", fuzz_inputs.small()[1])


@pytest.mark.parametrize("written", ["[true]", "true", "3"])
def test_plugins_of_a_study_that_are_no_names(tmp_path: Path, written: str) -> None:
    (tmp_path / "mine.toml").write_text(f"plugins = {written}\n" + "\n".join(fuzz_inputs.RIGHT))
    with pytest.raises(ExegeteError, match="plugins"):
        load_study(str(tmp_path / "mine.toml"))


def test_a_name_that_breaks_lines_is_refused_in_one(tmp_path: Path) -> None:
    with pytest.raises(ExegeteError) as refused:
        fuzz_inputs.read_name("mo\nvies\u2028:a=1", tmp_path)
    assert len(str(refused.value).splitlines()) == 1
