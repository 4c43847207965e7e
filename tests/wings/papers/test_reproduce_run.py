"""Reproducing for real: a paper of one number whose study is small enough to be run."""

import json
from pathlib import Path

import polars as pl
import pytest

from exegete.base.errors import UsageError
from exegete.runs.engine.local import LocalEngine
from exegete.runs.study import Study
from exegete.wings.papers.paper import load_paper, read_paper
from exegete.wings.papers.published import KEYS
from exegete.wings.papers.reproduce import compare, run_for, write_reproduction
from tests.wings.papers.test_reproduce import GOOD


def test_a_device_that_is_not_here_is_told_before_anything_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    with pytest.raises(UsageError, match="there is no device 'cuda' here"):
        run_for(load_paper("serrano_smith_2019"), ["T2"], tmp_path, device="cuda")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_small_paper_is_run_and_resumed(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undrawn: None
) -> None:
    """A paper of one number, whose study is small enough to be run here."""
    text = GOOD + 'where = { first = "attention", second = "gradient", measure = "tau", class = "all" }\nlow = "low"\n'
    text += 'high = "high"\nreference = 0.0\n[models.B]\nmodel = ["bilstm:projection=softmax"]\n'
    text += '[[tables.T1.sources]]\nstudy = "small"\nquick = { models = ["*hidden=8"] }\n'
    paper = read_paper("mine", text.replace('"t"', '"agreement_summary"').replace('"sst"', f'"{study.tasks[0]}"'))
    printed = dict.fromkeys(KEYS, "") | {"table": "T1", "dataset": "D", "model": "B", "quantity": "q"}
    frame = pl.DataFrame([printed | {"mean": 0.5, "std": None, "sign": "", "note": ""}], infer_schema_length=None)
    monkeypatch.setattr("exegete.wings.papers.reproduce.load_study", lambda _: study)
    monkeypatch.setattr("exegete.wings.papers.reproduce.read_published", lambda _: frame)
    for _ in range(2):  # the second time everything is there
        run_for(paper, ["T1"], tmp_path, quick=True, engine=LocalEngine(1))
        found = compare(paper, ["T1"], tmp_path)
        assert found.lines[0].verdict != "not run"
        assert (found.lines[0].seeds, found.lines[0].our_model) == (1, study.models[0])
    manifest = json.loads(
        write_reproduction(found, tmp_path / "out", tmp_path, quick=True).with_name("manifest.json").read_text()
    )
    assert manifest["studies"]["small"]["cells"] == 1
