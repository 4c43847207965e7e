"""The front door: what a person types, what they read, and the exit code."""

import json
import subprocess
import sys
from pathlib import Path
from textwrap import wrap

import pytest
from typer.main import get_command

from exegete.cli import app, main
from tests.studied import reviews, undrawn

SMALL = "size=8,hidden=8"
HERE = ("--workers", "1")  # a worker process takes longer to start than all its work here; test_engine has them
__all__ = ["undrawn"]  # a fixture, found by its name


def call(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Run a command here; its exit code."""
    monkeypatch.setattr(sys, "argv", ["exegete", *words])
    try:
        main()
    except SystemExit as done:
        return int(done.code or 0)
    return 0


@pytest.fixture
def task(tmp_path: Path) -> str:
    return f"file:{reviews(tmp_path / 'reviews.csv')}:text=review,label=sentiment,tokenizer=whitespace"


@pytest.fixture
def study(tmp_path: Path, task: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(
        f'tasks = ["{task}"]\nmodels = ["bilstm:{SMALL}"]\nseeds = [0]\n[training]\nepochs = 1\nmetric = "accuracy"\n'
        '[[experiments]]\nname = "agreement"\nks = ["1"]\ndraws = 2\n'
    )
    return path


@pytest.mark.parametrize(
    "kind", ["tasks", "models", "importances", "interventions", "measures", "experiments", "papers"]
)
def test_ls_lists_names_and_summaries(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    assert call(monkeypatch, "ls", kind, "--json") == 0
    entries = json.loads(capsys.readouterr().out)
    assert entries
    assert all(set(entry) == {"name", "summary"} and entry["summary"] for entry in entries)
    assert call(monkeypatch, "ls", kind) == 0
    shown = capsys.readouterr().out
    assert all(entry["name"] in shown for entry in entries)


def test_the_help_of_an_option_is_read_at_a_glance() -> None:
    """Two lines of a terminal of 80 columns; pages say the rest."""
    options = get_command(app).commands["audit"].params  # type: ignore[attr-defined]
    long = {option.name: option.help for option in options if len(wrap(option.help or "", 33)) > 2}
    assert not long


def test_help_and_ls_import_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['exegete', 'ls']\nfrom exegete.cli import main\nmain()\n"
        "heavy = {'torch', 'polars', 'altair', 'scipy', 'transformers', 'datasets'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_train_keeps_a_checkpoint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, task: str
) -> None:
    out = tmp_path / "model"
    words = ("train", "--task", task, "--model", f"cnn:{SMALL}", "--out", str(out), "--json", "--training", "epochs=1")
    assert call(monkeypatch, *words) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["checkpoint"] == str(out)
    assert 0 <= said["test_accuracy"] <= 1
    assert call(monkeypatch, *words) == 0  # the same training is there already
    again = json.loads(capsys.readouterr().out)
    assert again == said
    assert call(monkeypatch, *words[:-1], "epochs=2") == 1
    assert "holds another model" in capsys.readouterr().err
    asked = ("audit", "--task", task, "--model", str(out), "--out", str(tmp_path / "run"), "--quick")
    assert call(monkeypatch, *asked, "--json", *HERE) == 0
    audit = json.loads(capsys.readouterr().out)
    assert audit["models"][0].startswith(f"…/{out.name} on file:…/")
    assert any("split" in note for note in audit["notes"])
    assert {"name", "statistic", "n", "interval", "chance", "criterion", "verdict", "paper"} <= set(audit["tests"][0])


@pytest.mark.usefixtures("undrawn")
def test_run_report_and_audit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, study: Path
) -> None:
    run = tmp_path / "run"
    assert call(monkeypatch, "run", str(study), "--out", str(run), "--quiet", *HERE) == 0
    shown = capsys.readouterr().out
    assert "attention – gradient" in shown.replace("\n", " ")
    assert f"report: {run / 'report.html'}" in shown
    assert (
        call(monkeypatch, "report", str(run), "--out", str(tmp_path / "page.html"), "--results", str(tmp_path / "kept"))
        == 0
    )
    page = (tmp_path / "page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "The texts of " in page
    assert "also in train" in page
    assert (tmp_path / "kept" / "manifest.json").is_file()
    capsys.readouterr()
    assert call(monkeypatch, "audit", str(study), "--out", str(run), "--quiet", *HERE) == 0
    said = capsys.readouterr().out
    assert "agrees with saliency" in said
    assert "attention – gradient" not in said  # tables of experiments are for those who ask for all
    assert said.index("Words that matter") < said.index("Not asked: ") < said.index("\nUndecided.")
    assert said.splitlines()[-1] == f"report: {run / 'report.html'}"
    assert "Holds if" not in said
    assert call(monkeypatch, "audit", str(study), "--out", str(run), "--quiet", "--all", *HERE) == 0
    said = capsys.readouterr().out
    assert said.index("attention – gradient") < said.index("Words that matter") < said.index("\nUndecided.")
    assert said.index("It was not asked whether") < said.index("\nUndecided.")
    assert call(monkeypatch, "audit", str(study), "--out", str(run), "--quiet", "--definitions", *HERE) == 0
    said = capsys.readouterr().out
    assert said.index("\nUndecided.") < said.index("Holds if")


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("ls", "task"), 2, "did you mean 'tasks'"),
        (("train", "--task", "sts", "--model", "bilstm", "--out", "x"), 2, "unknown task 'sts'"),
        (("train", "--task", "file:none.csv", "--model", "bilstm", "--out", "x"), 1, "none.csv"),
        (("train", "--task", "rotten_tomatoes", "--model", "bilstm:hiden=3", "--out", "x"), 2, "did you mean 'hidden'"),
        (("train", "--task", "sst", "--model", "cnn", "--out", "x", "--training", "epoch=1"), 2, "'epochs'"),
        (("train", "--model", "bilstm"), 2, "--task"),
        (("run", "none.toml"), 1, "no study file none.toml"),
        (("run", "neely"), 2, "unknown study 'neely'"),
        (("report", "nowhere"), 1, "there is no run folder nowhere"),
        (("audit", "audit", "--task", "sst"), 2, "not both"),
        (("audit", "--model", "no_such_model"), 2, "nor is there a checkpoint folder no_such_model"),
        (("audit", "--criteria", "none.toml"), 1, "no criteria file"),
        (("serve", "nowhere"), 1, "there is no checkpoint or run folder nowhere"),
        (("server",), 2, "server"),
        (("annotate", "draw"), 2, "Missing option '--model' (see exegete annotate draw --help)"),
        (("train", "--task", "sst", "--model", "bilstm", "--training", "lr=inf", "--out", "x"), 2, "lr: Input should"),
        (("train", "--task", "sst", "--model", "bilstm:scale=nan", "--out", "x"), 2, "scale: Input should be a finite"),
    ],
)  # fmt: skip
def test_wrong_words_are_one_sentence_and_the_right_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    words: tuple[str, ...],
    code: int,
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, *words) == code
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""
    assert list(tmp_path.iterdir()) == []  # nothing half-written is left behind


@pytest.mark.parametrize(("words", "command"), [((), "audit"), (("annotate",), "draw")])
def test_without_a_command_the_commands_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], command: str
) -> None:
    assert call(monkeypatch, *words) == 2
    said = capsys.readouterr()
    assert f"a command is missing: choose from {'ls, train' if not words else 'draw, read'}" in said.err
    assert command in said.out  # the help


@pytest.mark.parametrize("error", [KeyboardInterrupt()])
def test_ctrl_c_says_so_and_leaves_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], study: Path, error: BaseException
) -> None:
    def stop(*words: object, **named: object) -> None:
        raise error

    monkeypatch.setattr("exegete.runs.run.run_study", stop)
    assert call(monkeypatch, "run", str(study), "--quiet") == 130
    assert "the same command goes on" in capsys.readouterr().err


def test_a_file_without_its_prefix_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, task: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, "train", "--task", "reviews.csv", "--model", "cnn", "--out", "x") == 2
    assert "write file:reviews.csv" in capsys.readouterr().err


def test_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from exegete import __version__

    assert call(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"exegete {__version__}\n"


@pytest.mark.parametrize("command", ["train", "audit", "explain"])
def test_a_model_of_the_hub_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, task: str, command: str
) -> None:
    """`bert-base-uncased` is what people try first."""
    words = {
        "train": ["--task", task, "--out", str(tmp_path / "model")],
        "audit": ["--task", task, "--out", str(tmp_path / "run")],
        "explain": ["a good film"],
    }
    assert call(monkeypatch, command, *words[command], "--model", "bert-base-uncased") in (1, 2)
    assert "a model of Hugging Face" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_study_of_several_kinds_of_tasks_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, task: str, undrawn: None
) -> None:
    """As `exegete run kinds`: where tasks are of several kinds, a chart by kind is drawn, and it has a title."""
    study = tmp_path / "some_kinds.toml"
    study.write_text(
        f'tasks = ["{task}", "stories:train=60,dev=20,test=20"]\nmodels = ["bilstm:{SMALL}", "pair:{SMALL}"]\n'
        'seeds = [0]\n[training]\nepochs = 1\nmetric = "accuracy"\n[kinds.pair]\nepochs = 1\nmetric = "accuracy"\n'
        '[[experiments]]\nname = "permutation"\ndraws = 3\n[[experiments]]\nname = "single_weight"\n'
    )
    run = tmp_path / "run"
    assert call(monkeypatch, "run", str(study), "--out", str(run), "--quiet", *HERE) == 0
    assert f"report: {run / 'report.html'}" in capsys.readouterr().out
    assert "Change of the prediction by kind of task" in (run / "report.html").read_text(encoding="utf8")


def test_the_data_is_checked_before_training(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "same.csv"
    path.write_text("text,label\n" + "".join(f"word{i} and more,{i % 2}\n" for i in range(60)))
    task = f"file:{path}:test={path},dev={path}"
    words = ("train", "--task", task, "--model", f"average:{SMALL}", "--training", "epochs=1", "--out")
    assert call(monkeypatch, *words, str(tmp_path / "a")) == 0
    told = capsys.readouterr()
    assert f"note: the texts of file:{path}:\nsplit  texts  mean words  classes" in told.err
    assert "note: 100% of test (60 of 60 texts) are in train, too" in told.err
    assert "note: 100% of test (60 of 60 texts) are in train, too" in told.out
    assert call(monkeypatch, *words, str(tmp_path / "b"), "--json") == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["notes"][-1].startswith("100% of test")  # standard output is JSON alone
    path.write_text("text,label\n" + "".join(f"word{i} and more,{i / 7}\n" for i in range(60)))
    assert call(monkeypatch, "audit", "--task", f"file:{path}", "--out", str(tmp_path / "run"), *HERE) == 2
    assert "are numbers, not classes (60 different ones in 60 texts)" in capsys.readouterr().err
