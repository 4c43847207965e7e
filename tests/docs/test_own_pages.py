"""The pages on own models and on given scores, as they stand there, on a made-up file."""

import random
import re
import shlex
import shutil
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from exegete.cli import app
from exegete.experiments.agreement.experiment import Agreement
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.given import for_texts
from exegete.tasks.catalogue import load_task
from exegete.training.checkpoint import load_checkpoint
from tests.docs.pages import ROOT, blocks
from tests.docs.plugin_runs import FEELING, review


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the example and 60 short texts, from which commands are run."""
    draw = random.Random(0)
    lines = [f"{review(label, draw)},{label}\n" for _ in range(30) for label in FEELING]
    (tmp_path / "reviews.csv").write_text("".join(["text,label\n", *lines]), encoding="utf8")
    shutil.copy(ROOT / "examples" / "own_model.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(page: str, command: str) -> list[str]:
    """The arguments of a command on a page."""
    text = (ROOT / "docs" / page).read_text(encoding="utf8")
    [line] = re.findall(rf"^exegete ({command} .*)$", text, re.MULTILINE)
    return shlex.split(line)


def run(arguments: list[str]) -> str:
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_own_model_is_trained_and_explained(folder: Path) -> None:
    run([argument.replace("epochs=3", "epochs=1") for argument in said("reference/own-model.md", "train")])
    assert load_checkpoint(folder / "checkpoints" / "mine").task == "file:reviews.csv"
    shown = run([*said("reference/own-model.md", "explain"), "--with", "attention,gradient_x_input"])
    assert '"gradient_x_input"' in shown


def test_the_table_is_written_filled_and_read(folder: Path) -> None:
    run(said("how-to/scores-of-another-tool.md", "tokens"))
    [block] = [b for b in blocks("python") if "scores-of-another-tool" in b.where]
    exec(compile(block.text, block.where, "exec"), {})
    task = load_task("file:reviews.csv")
    name = "given:file=scores.parquet"
    for split in ("dev", "test"):
        examples = task.split(split)
        found = for_texts(IMPORTANCES.make(name), task, split, examples)
        for e in examples:
            assert found.scores[e.id].tolist() == [len(word) for word in e.words]  # type: ignore[attr-defined]
    assert name in Agreement(against=("attention", name)).importances
    assert pl.read_parquet("scores.parquet").columns == ["split", "example", "token", "word", "score"]
