"""Own models and given scores in studies, checkpoints and explanations: everything that a model of ours can do."""

import json
from pathlib import Path

import polars as pl
import pytest
import torch
from typer.testing import CliRunner

import exegete
from exegete.base.errors import ExegeteError, UsageError
from exegete.cli import app
from exegete.importance.given import tokens_of
from exegete.models.build import build_model
from exegete.models.own.classifier import Own
from exegete.runs.engine.local import LocalEngine
from exegete.runs.run import read_manifest, run_study
from exegete.runs.study import Study, check_study
from exegete.runs.training import train_model
from exegete.tasks.catalogue import load_task
from exegete.training.checkpoint import is_trained, load_checkpoint
from tests.models.own_models import GENERAL, POOLING, written
from tests.studied import reviews

TRAINED = POOLING.replace(
    "    return Adapter(len(words), len(labels))",
    "    torch.manual_seed(3)\n    made = Adapter(8, 2)\n"
    "    made.vocabulary = ['<pad>', '<unk>', 'fine', 'poor', 'a', 'b', 'c', 'd']\n"
    "    made.labels = ['good', 'bad']\n    return made",
)
EXPERIMENTS: list[dict[str, object]] = [
    {"name": "agreement", "against": ["attention", "gradient"], "topk": [], "texts": 6},
    {"name": "permutation", "draws": 2},
    {"name": "necessity", "trained": ["uniform"], "inferred": ["uniform"]},
]


@pytest.fixture
def task(tmp_path: Path) -> str:
    return f"file:{reviews(tmp_path / 'reviews.csv', 60)}:text=review,label=sentiment,tokenizer=whitespace"


def study_of(task: str, *models: str, experiments: list[dict[str, object]] = EXPERIMENTS) -> Study:
    said = {"name": "own", "tasks": [task], "models": models, "training": {"epochs": 1}, "experiments": experiments}
    return check_study(Study.model_validate(said))


def run(study: Study, folder: Path) -> Path:
    return run_study(study, folder / "run", engine=LocalEngine(1))


def notes(folder: Path) -> str:
    return "; ".join(note for cell in read_manifest(folder)["cells"] for note in cell["notes"])


def test_a_study_of_own_models(task: str, tmp_path: Path, undrawn: None) -> None:
    pooling, general = written(tmp_path, POOLING), written(tmp_path, GENERAL, "general.py")
    found = run(study_of(task, pooling, general), tmp_path)
    tables = {name: pl.read_parquet(found / "tables" / f"{name}.parquet") for name in ("agreement", "necessity")}
    names = {"own:file=…/mine.py", "own:file=…/general.py"}  # paths are in the manifest
    assert set(tables["agreement"]["model"]) == names
    assert set(tables["necessity"]["when"].unique()) == {"training", "inference"}
    assert set(pl.read_parquet(found / "tables" / "permutation.parquet")["model"]) == names
    assert "permutation was not asked" not in notes(found)


@pytest.mark.slow
def test_a_changed_file_is_another_model(task: str, tmp_path: Path, undrawn: None) -> None:
    """The stages of a run are those of the code that made them."""
    spec = written(tmp_path, POOLING)
    study = study_of(task, spec, experiments=[{"name": "permutation", "draws": 2}])
    keys = []
    for text in (POOLING, POOLING, POOLING.replace("3 *", "2 *")):
        written(tmp_path, text)
        keys.append(read_manifest(run(study, tmp_path))["cells"][0]["training"])
    assert keys[0] == keys[1] != keys[2]


def test_a_checkpoint_comes_back_and_names_its_file(task: str, tmp_path: Path) -> None:
    spec = written(tmp_path, POOLING)
    made, _ = train_model(task, spec, 0, "epochs=1", tmp_path / "kept")
    facts = json.loads((tmp_path / "kept" / "checkpoint.json").read_text(encoding="utf8"))
    assert facts["model"].startswith(f"{spec},hash=")
    back = load_checkpoint(tmp_path / "kept")
    assert back.weights_hash == made.weights_hash
    shown = exegete.explain(tmp_path / "kept", "a fine b", ["attention", "gradient:norm=l2", "lrp"])
    assert [len(method.scores) for method in shown.methods] == [3, 3]
    assert "lrp" in shown.refused
    written(tmp_path, POOLING.replace("3 *", "2 *"))
    with pytest.raises(ExegeteError, match="has changed since"):
        load_checkpoint(tmp_path / "kept")


def test_seeds_draw_other_weights_and_the_same_seed_the_same(task: str, tmp_path: Path) -> None:
    spec, loaded = written(tmp_path, POOLING), load_task(task)
    tables = [build_model(spec, loaded, seed).state_dict()["own.table.weight"] for seed in (0, 0, 1)]
    assert torch.equal(tables[0], tables[1])
    assert not torch.equal(tables[0], tables[2])


def test_tied_weights_are_kept_once(task: str, tmp_path: Path) -> None:
    body = POOLING.replace("def embed(self", "self.again = self.layer\n    def embed(self")
    body = body.replace("        self.table", "        self.table", 1).replace("    self.again", "        self.again")
    made, _ = train_model(task, written(tmp_path, body), 0, "epochs=1", tmp_path / "kept")
    assert not [name for name in made.model.state_dict() if "again" in name]
    back = load_checkpoint(tmp_path / "kept").model
    assert isinstance(back, Own)
    layer, again = back.own.get_parameter("layer.weight"), back.own.get_parameter("again.weight")
    assert layer is again
    assert torch.equal(layer, made.model.state_dict()["own.layer.weight"])


def test_a_trained_module_is_judged_as_it_is(task: str, tmp_path: Path, undrawn: None) -> None:
    spec = f"{written(tmp_path, TRAINED)},trained=true"
    assert is_trained(spec)
    assert not is_trained(spec.replace(",trained=true", ""))
    found = run(study_of(task, spec), tmp_path)
    [folder] = found.glob("stages/train-*/checkpoint")
    kept = load_checkpoint(folder)
    torch.manual_seed(3)
    assert kept.model.reader.words == ("fine", "poor", "a", "b", "c", "d")
    assert kept.metrics["best_epoch"] == 0
    first = torch.nn.Embedding(8, 5).weight
    assert torch.equal(kept.model.state_dict()["own.table.weight"], first)
    said = notes(found)
    assert "necessity was not asked: it needs more models of the same kind" in said
    assert (found / "tables" / "permutation.parquet").is_file()
    with pytest.raises(UsageError, match="is one trained model: give the study one seed"):
        check_study(study_of(task, spec).model_copy(update={"seeds": (0, 1)}))


def test_a_vocabulary_that_changed_behind_the_file_is_said(task: str, tmp_path: Path) -> None:
    body = f"from pathlib import Path\n{TRAINED}".replace("'c', 'd']", "'c', Path(__file__ + '.word').read_text()]")
    spec = f"{written(tmp_path, body)},trained=true"
    (tmp_path / "mine.py.word").write_text("d", encoding="utf8")
    train_model(task, spec, 0, "", tmp_path / "kept")
    (tmp_path / "mine.py.word").write_text("e", encoding="utf8")
    with pytest.raises(ExegeteError, match=r"vocabulary .* is not the one that"):
        load_checkpoint(tmp_path / "kept")


# Scores of another tool.


def scored(task: str, path: Path, splits: tuple[str, ...]) -> str:
    """A file in which a word's score is its length."""
    frame = tokens_of(load_task(task), splits).with_columns(score=pl.col("word").str.len_chars().cast(pl.Float64))
    frame.write_parquet(path)
    return f"given:file={path},name=length"


@pytest.mark.parametrize("splits", [pytest.param(("dev", "test"), marks=pytest.mark.slow), ("test",)])
def test_given_scores_are_judged_like_any_importance(
    task: str, splits: tuple[str, ...], tmp_path: Path, undrawn: None
) -> None:
    given = scored(task, tmp_path / "scores.parquet", splits)
    asked: list[dict[str, object]] = [
        {"name": "agreement", "against": ["attention", given], "topk": [], "texts": 6},
        {"name": "faithfulness", "methods": ["attention", given, "random"], "removals": ["delete"], "texts": 6},
    ]
    found = run(study_of(task, "average:size=6,hidden=4", experiments=asked), tmp_path)
    assert given in set(pl.read_parquet(found / "tables" / "agreement.parquet")["second"])
    rows = pl.read_parquet(found / "tables" / "faithfulness.parquet")
    assert set(rows.filter(pl.col("method") == given)["split"]) == set(splits)
    board = pl.read_csv(found / "tables" / "faithfulness_leaderboard.csv")
    assert given in set(board["method"])
    assert ("has no scores of dev texts" in notes(found)) == (splits == ("test",))


@pytest.mark.slow
def test_changed_scores_are_judged_anew(task: str, tmp_path: Path, undrawn: None) -> None:
    given = scored(task, tmp_path / "scores.parquet", ("test",))
    asked: list[dict[str, object]] = [{"name": "agreement", "against": ["attention", given], "topk": [], "texts": 6}]
    study = study_of(task, "average:size=6,hidden=4", experiments=asked)
    means = []
    for sign in (1, -1):
        frame = pl.read_parquet(tmp_path / "scores.parquet").with_columns(score=sign * pl.col("score"))
        frame.write_parquet(tmp_path / "scores.parquet")
        rows = pl.read_parquet(run(study, tmp_path) / "tables" / "agreement.parquet")
        tau = rows.filter((pl.col("measure") == "tau") & (pl.col("first") == "attention"))
        means.append(float(tau["value"].to_numpy().mean()))
    assert means[0] == pytest.approx(-means[1])
    assert means[0] != 0


def test_the_command_writes_the_table(task: str, tmp_path: Path) -> None:
    for suffix in (".csv", ".parquet", ".jsonl"):
        out = tmp_path / f"tokens{suffix}"
        said = CliRunner().invoke(
            app, ["tokens", "--task", task, "--split", "dev", "--split", "test", "--out", str(out), "--json"]
        )
        assert said.exit_code == 0, said.output
        facts = json.loads(said.stdout)
        loaded = load_task(task)
        texts = [*loaded.split("dev"), *loaded.split("test")]
        notes = facts.pop("notes")
        assert notes == list(loaded.notes)
        assert facts == {"file": str(out), "texts": len(texts), "tokens": sum(map(len, texts))}
    frame = pl.read_csv(tmp_path / "tokens.csv")
    assert frame.columns == ["split", "example", "token", "word"]
    assert frame.equals(exegete.tokens(task, ("dev", "test")))
    wrong = CliRunner().invoke(app, ["tokens", "--task", task, "--out", "tokens.txt"])
    assert isinstance(wrong.exception, UsageError)
