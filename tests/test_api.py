"""The front door in Python: objects from memory, in a script without a guard, in a thread; and what it refuses."""

import random
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from torch import nn

import exegete
import exegete as ex
from exegete.answers.gate import AuditFailedError
from exegete.answers.request import AuditRequest, study_for
from exegete.base.errors import DataWarning, ExegeteError, UsageError
from exegete.importance.catalogue import IMPORTANCES
from exegete.runs.objects import Trained, name_of_scores
from exegete.runs.run import read_manifest
from exegete.runs.study import read_study
from exegete.runs.study_of_objects import entry_of
from exegete.tasks.catalogue import load_task
from exegete.tasks.example import Task

SPEC, TRAINING = "average:size=8,hidden=8", {"epochs": 2, "lr": 0.02}


def written(n: int = 90) -> tuple[list[str], list[str]]:
    draw = random.Random(0)
    words = [[draw.choice("abcdefghijkl") for _ in range(draw.randint(3, 8))] for _ in range(n)]
    texts = [" ".join([*row, "fine" if i % 2 else "poor", f"n{i}"]) for i, row in enumerate(words)]
    return texts, ["good" if i % 2 else "bad" for i in range(n)]


@pytest.fixture(scope="module")
def task() -> Task:
    texts, labels = written()
    return ex.task(texts=texts, labels=labels)


@pytest.fixture(scope="module")
def model(task: Task) -> Trained:
    return ex.train(SPEC, task, training=TRAINING)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undrawn: None) -> None:
    monkeypatch.chdir(tmp_path)


class Bag(nn.Module):
    """A module as people have them: embeddings, scores and one layer."""

    def __init__(self, words: int) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.table, self.scorer, self.output = nn.Embedding(words, 6), nn.Linear(6, 1), nn.Linear(6, 2)


class BagAdapter(ex.OwnPooling):
    vocabulary = ("<pad>", "<unk>", "fine", "poor", "a", "b", "c", "d")
    labels = ("good", "bad")

    def __init__(self, module: Bag) -> None:
        super().__init__()
        self.module = module

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.module.table(tokens)  # type: ignore[no-any-return]

    def states(self, embedded: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return embedded

    def scores(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.module.scorer(states).squeeze(-1)  # type: ignore[no-any-return]

    def decode(self, context: torch.Tensor) -> torch.Tensor:
        return self.module.output(context)  # type: ignore[no-any-return]


def test_importing_is_light() -> None:
    code = "import sys, exegete as ex; ex.experiments; assert not {'torch', 'polars'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_task_from_lists_frames_and_its_deposit_is_the_same(task: Task, tmp_path: Path) -> None:
    texts, labels = written()
    frame = pl.DataFrame({"review": texts, "mood": labels})
    again = ex.task(frame, text="review", label="mood")
    pandas = ex.task(frame.to_pandas(), text="review", label="mood")
    (tmp_path / "reviews.csv").write_text(frame.write_csv())
    file = load_task(f"file:{tmp_path / 'reviews.csv'}:text=review,label=mood")
    assert task.hash == again.hash == pandas.hash == file.hash
    settled = ex.task(frame, text="review", label="mood", lower=False, test_limit=3)
    assert len(settled.split("test")) == 3
    assert load_task(settled.deposited(tmp_path / "inputs")).hash == settled.hash  # type: ignore[attr-defined]


def test_a_task_with_splits_and_rationales(tmp_path: Path) -> None:
    texts, labels = written(30)
    splits = ["train"] * 20 + ["val"] * 5 + ["test"] * 5
    frame = pl.DataFrame({"text": texts, "label": labels, "split": splits, "rationale": [[[0, 2]]] * 30})
    made = ex.task(frame)
    assert [len(made.split(name)) for name in ("train", "dev", "test")] == [20, 5, 5]
    assert {e.rationale for e in made.split("test")} == {(0, 1)}
    assert load_task(made.deposited(tmp_path)).hash == made.hash  # type: ignore[attr-defined]


def pairs() -> pl.DataFrame:
    """A statement about a person, and another: does it follow?"""
    draw = random.Random(0)
    rows = [(f"{draw.choice(('ada', 'bruno'))} sleeps now n{i}", i % 2) for i in range(60)]
    second = [f"{premise.split()[0]} {'is awake' if no else 'sleeps'}" for premise, no in rows]
    return pl.DataFrame({"premise": [p for p, _ in rows], "hypothesis": second, "label": [no for _, no in rows]})


def test_pairs_come_as_frames_of_two_columns_or_as_lists(tmp_path: Path) -> None:
    frame = pairs()
    task = ex.task(frame, text="premise", question="hypothesis")
    assert task.kind == "pair"
    first = task.split("train")[0]
    assert [" ".join(text) for text in first.texts] == list(frame.row(first.id)[:2])
    columns = {"text": "premise", "question": "hypothesis"}
    lists = {"texts": frame["premise"], "questions": frame["hypothesis"].to_list(), "labels": frame["label"]}
    renamed = frame.rename({"premise": "text", "hypothesis": "question"})
    same = (ex.task(frame.to_pandas(), **columns), ex.task(**lists), ex.task(renamed))  # type: ignore[arg-type]
    assert {each.hash for each in same} == {task.hash}
    assert load_task(task.deposited(tmp_path / "inputs")).hash == task.hash  # type: ignore[attr-defined]
    model = ex.train("pair:size=4,hidden=4", task, training={"epochs": 1})
    said = ex.explain(model, ("ada sleeps now", "ada is awake"), ["attention", "gradient"])
    assert said.words == ("ada", "sleeps", "now")
    assert ex.ask("permutation", model, task, texts=3).rows.height == 3
    with pytest.raises(UsageError, match="this model reads two texts"):
        ex.explain(model, "ada sleeps now", ["attention"])
    with pytest.raises(UsageError, match="is a pair task"):
        ex.train(SPEC, task)


def test_scores_are_those_of_the_method_text_by_text(model: Trained, task: Task) -> None:
    frame = ex.score(model, task, ["attention", "lrp"], texts=3)
    assert frame.columns == ["example", "token", "word", "method", "score"]
    assert frame["example"].n_unique() == 3
    first = next(e for e in task.split("test") if e.id == frame["example"][0])
    for method in ("attention", "lrp"):
        mine = frame.filter(pl.col("example") == first.id, pl.col("method") == method)
        assert tuple(mine["word"]) == first.words
        batch = model.model.collate([first])
        values = IMPORTANCES.make(method)(model.model, batch).values[batch.words]
        assert mine["score"].to_list() == pytest.approx(values.tolist(), abs=1e-6)


def test_an_experiment_of_a_trained_model_trains_nothing_again_and_has_companions(model: Trained, task: Task) -> None:
    found = ex.experiments.Necessity(trained=("uniform",), inferred=()).run(model, task, texts=6)
    assert set(found.rows["when"]) == {"training"}
    cell = read_manifest(found.run)["cells"][0]
    assert (cell["weights"], cell["model"], cell["training"]) == (model.weights_hash, SPEC, model.key)
    assert cell["data"]["hash"] == task.hash
    assert found.figures
    with pytest.raises(UsageError, match="unknown figure of necessity"):
        found.figure("leaderboard")


def test_a_loaded_model_is_its_folder_and_has_no_companions(task: Task, tmp_path: Path) -> None:
    ex.train(SPEC, task, training=TRAINING, out="kept")
    loaded = ex.load("kept")
    found = ex.experiments.Permutation(draws=2).run(loaded, task, texts=4)
    assert set(found.rows["model"]) == {"kept"}
    assert found.rows.height == 4
    with pytest.raises(ExegeteError, match="it needs more models of the same kind"):
        ex.experiments.Necessity(trained=("uniform",), inferred=()).run(loaded, task, texts=4)


def test_a_study_of_objects(model: Trained, task: Task) -> None:
    agreement = ex.experiments.Agreement(against=("attention", "gradient"), topk=())
    run = ex.Study(tasks=[task], models=[model], experiments=[agreement]).run("mine", workers=1)
    assert run.models["model"].to_list() == [SPEC]
    assert set(run["agreement"].rows["first"]) >= {"attention"}
    assert Path("mine/inputs").is_dir()
    with pytest.raises(UsageError, match="did you mean 'agreement'"):
        run["agreemnt"]


@pytest.mark.slow
def test_a_wrapped_module_is_audited_in_this_process(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = Bag(8)
    wrapped = ex.wrap(module, adapter=BagAdapter)
    own = ex.score(wrapped, task, ["attention"]).select("example", "token", "score")
    assert Path(name_of_scores(own, tmp_path)) == Path(name_of_scores(own.to_pandas(), tmp_path))
    asked: dict[str, Any] = {"quick": True, "scores": [own], "out": "run"}
    result = ex.audit(wrapped, task, **asked)
    rows = result["agreement"].rows.filter(pl.col("measure") == "tau", pl.col("first") == "attention")
    taus = rows.filter(pl.col("second").str.starts_with("given"))["value"].drop_nulls()
    assert taus.to_list() == pytest.approx([1] * (len(taus) or 1))  # attention's own scores, as those of another tool
    assert set(result.scorecard["model"]) == {wrapped.spec}
    assert result["agreement"].rows.height
    assert all("needed" not in test.name or test.verdict == "not testable" for test in result.tests)
    result.save("card.csv")
    assert pl.read_csv("card.csv").height == result.scorecard.height == len(result.to_pandas())
    assert "</html>" in result.report("report.html").read_text(encoding="utf8")
    with pytest.raises(UsageError, match="unknown test 'agree': did you mean 'agrees'"):
        ex.audit(wrapped, task, **asked, fail_on="agree")
    monkeypatch.setattr("exegete.answers.audit.audit_study", lambda *_: result)
    assert ex.audit(wrapped, task, **asked, fail_on=["agrees", "used"]) is result  # so few texts can't tell
    failing = replace(result, tests=tuple(replace(test, verdict="fails") for test in result.tests))
    monkeypatch.setattr("exegete.answers.audit.audit_study", lambda *_: failing)
    with pytest.raises(AuditFailedError, match="used fails for own:wrapped"):
        ex.audit(wrapped, task, **asked, fail_on="used")
    said = ex.explain(ex.wrap(BagAdapter(module), task=task), "a fine b", ["attention"])
    bag = BagAdapter(module)
    tokens = torch.tensor([[4, 2, 5]])
    weights = bag.scores(bag.embed(tokens), tokens > 0).softmax(-1)[0]
    assert said["attention"].scores == pytest.approx(tuple(weights.tolist()), abs=1e-6)


@pytest.mark.slow
def test_the_api_audits_as_the_command_line(tmp_path: Path) -> None:
    """By name, by object, with scores as a frame or a file: one scorecard."""
    texts, labels = written(120)
    pl.DataFrame({"text": texts, "label": labels}).write_csv("reviews.csv")
    name = "file:reviews.csv"
    study = ["audit", "--task", name, "--model", SPEC, "--quick", "--workers", "1", "--out", "line", "--json", "-q"]
    subprocess.run(
        [sys.executable, "-c", "from exegete.cli import main; main()", *study], check=True, stdout=subprocess.DEVNULL
    )
    card = pl.read_csv("line/tables/scorecard.csv")
    mine = ex.audit(SPEC, name, quick=True, workers=1, out="mine")
    mine.save("mine.csv")
    assert pl.read_csv("mine.csv").equals(card)
    held = ex.audit(SPEC, ex.task(texts=texts, labels=labels), quick=True, workers=1, out="held")
    same = ["name", "verdict", "statistic", "low", "high", "n"]
    assert held.scorecard.select(same).equals(mine.scorecard.select(same))
    training = study_for(AuditRequest(task=name, model=SPEC, quick=True)).training_for(name, SPEC).model_dump()
    given = {key: value for key, value in training.items() if value is not None}
    trained = ex.audit(ex.train(SPEC, name, training=given), name, quick=True, workers=1, out="trained")
    assert trained.scorecard.select(same).equals(mine.scorecard.select(same))


def test_the_default_audit_is_one_study_by_command_and_in_python() -> None:
    """A name, an object that was trained by that name, and nothing at all ask for the same experiments."""
    default = read_study("audit")
    by_name = study_for(AuditRequest(default.models[0], default.tasks[0]))
    assert study_for(AuditRequest()).experiments == by_name.experiments == default.experiments
    assert (by_name.tasks, by_name.models, by_name.seeds) == (default.tasks, default.models, default.seeds)
    for task in default.tasks:
        assert by_name.training_for(task, by_name.models[0]) == default.training_for(task, default.models[0])


SCRIPT = """
import exegete
import exegete as ex
print("once")
texts = [f"a {'fine' if i % 2 else 'poor'} film n{i} {'abcdefg'[i % 7]}" for i in range(90)]
task = ex.task(texts=texts, labels=[i % 2 for i in range(90)])
model = ex.train("average:size=4,hidden=4", task, training={"epochs": 1})
print(ex.ask("permutation", model, task, texts=4, workers=2).rows.height)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["file", "stdin", "-c"])
def test_a_script_needs_no_guard(how: str, tmp_path: Path) -> None:
    """Workers start, and none of them runs the script again."""
    (tmp_path / "mine.py").write_text(SCRIPT)
    given: dict[str, list[str]] = {"file": ["mine.py"], "stdin": ["-"], "-c": ["-c", SCRIPT]}
    told = subprocess.run(
        [sys.executable, *given[how]], input=SCRIPT if how == "stdin" else None, capture_output=True, text=True
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout.split() == ["once", "4"]


@pytest.mark.slow
def test_it_runs_in_a_thread_and_lets_go_of_its_folder(model: Trained, task: Task) -> None:
    found: list[Any] = []
    permutation = ex.experiments.Permutation(draws=2)

    def run() -> None:
        found.append(permutation.run(model, task, texts=4, out="run", workers=2))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found[0].rows.equals(permutation.run(model, task, texts=4, out="run").rows)


def test_what_is_refused_is_one_sentence(model: Trained, task: Task) -> None:
    texts, labels = written(30)
    frame = pl.DataFrame({"text": texts, "label": labels})
    ex: Any = exegete  # what a type checker would refuse is told in words, too
    refused: list[tuple[str, Any]] = [
        ("Linear needs an adapter: write a subclass", lambda: ex.wrap(nn.Linear(2, 2))),
        ("is no model of transformers", lambda: ex.wrap(nn.Linear(2, 2), tokenizer=object())),
        ("Linear needs an adapter: give exegete.wrap", lambda: ex.audit(nn.Linear(2, 2), task)),
        ("have no labels, and average.* would have to learn them", lambda: ex.audit(SPEC, texts)),
        ("a task is a name, or what exegete.task", lambda: ex.audit(SPEC, {"a": 1})),
        ("a model is a name, a checkpoint folder", lambda: ex.audit([SPEC], task)),
        ("tasks is a list", lambda: ex.Study(tasks=task, models=[SPEC], experiments=["agreement"])),
        ("did you mean 'attention'", lambda: ex.score(model, task, ["atention"])),
        ("methods is a list of names", lambda: ex.score(model, task, "attention")),
        ("there are 30 texts and 29 labels", lambda: ex.task(texts=texts, labels=labels[1:])),
        ("texts= is missing", lambda: ex.task(labels=labels)),
        ("did you mean 'label'.*write label=COLUMN", lambda: ex.task(frame, label="labl")),
        ("there is no device 'cuda' here", lambda: ex.audit(SPEC, task, device="cuda")),
        ("unknown engine 'locl'", lambda: ex.ask("permutation", model, task, engine="locl")),
        ("unknown experiment 'permutatoin'", lambda: ex.ask("permutatoin", model, task)),
        ("there is no checkpoint folder", lambda: ex.load("nowhere")),
        ("a wrapped module has no words", lambda: ex.explain(ex.wrap(Bag(8), adapter=BagAdapter), "a")),
        ("scores is a list", lambda: ex.audit(SPEC, task, scores="scores.csv")),
        ("give a study, or a task and a model", lambda: ex.audit(SPEC, task, study="audit")),
        ("seeds is a list of whole numbers, not 0", lambda: ex.audit(SPEC, task, seeds=0)),
        ("fail_on is a list of names or a name, not 3", lambda: ex.audit(SPEC, task, fail_on=3)),
        ("workers is a whole number, not '2'", lambda: ex.audit(SPEC, task, workers="2")),
        ("an engine is a name or an object", lambda: ex.audit(SPEC, task, engine=["local"])),
        ("unknown goal 'faithfull': did you mean", lambda: ex.audit(SPEC, task, goal="faithfull")),
        ("progress is True, False or a function", lambda: ex.audit(SPEC, task, progress=3)),
        ("out is a name or a path, not 3", lambda: ex.train(SPEC, task, out=3)),
        ("training is a table of settings or a name", lambda: ex.train(SPEC, task, training=["epochs=1"])),
        ("a model is trained by its name|model is a name", lambda: ex.train([SPEC], task)),
        (r"text is a name, not \['a', 'b'\]", lambda: ex.task(frame, text=["a", "b"])),
        ("split is a name, not", lambda: ex.score(model, task, ["attention"], split=["test"])),
        ("splits is a list of names, not 'test'", lambda: ex.tokens(task, "test")),
        ("name at least one method", lambda: ex.score(model, task, [])),
        ("a model is a name, a checkpoint folder", lambda: ex.explain([model], "a fine b")),
        (r"a text is a string, or a pair .* call explain_all", lambda: ex.explain(model, ["a fine b", "a b"])),
        (r"methods is a list of names or a name, not \[3\]", lambda: ex.explain(model, "a fine b", [3])),
        ("target is a name, not", lambda: ex.explain(model, "a fine b", target=["good"])),
        ("unknown importance 'lpr': did you mean 'lrp'", lambda: ex.explain(model, "a fine b", ["lpr"])),
        ("tasks is empty", lambda: ex.Study(tasks=[], models=[model], experiments=["permutation"])),
    ]
    for sentence, call in refused:
        with pytest.raises(ExegeteError, match=sentence) as error:
            call()
        assert "\n" not in str(error.value)


def test_an_experiment_is_written_with_what_was_set() -> None:
    assert entry_of(ex.experiments.Permutation(draws=7)) == {"name": "permutation", "draws": 7}
    assert "Agreement" in dir(ex.experiments)
    with pytest.raises(AttributeError, match="no experiment 'Nothing'"):
        _ = ex.experiments.Nothing


def test_a_class_that_is_missing_is_no_class() -> None:
    pandas = pytest.importorskip("pandas")
    texts, labels = written()
    numbers = [float(label == "good") for label in labels]
    for values in (
        [*numbers[:-2], float("nan"), float("nan")],
        [*labels[:-2], float("nan"), None],
        pandas.array([*map(int, numbers[:-2]), None, None], dtype="Int64"),
    ):
        frame = pandas.DataFrame({"text": texts, "label": values})
        with pytest.raises(
            ExegeteError, match=r"row 89 of 'texts': 'label' is empty: 2 rows have none \(row 89, row 90\)"
        ):
            ex.task(frame)
        left = ex.task(frame, unlabelled="drop")
        assert left.labels in (("0", "1"), ("bad", "good"))
        assert sum(map(len, left.splits.values())) == 88
    assert ex.task(texts=texts, labels=numbers).labels == ("0", "1")
    empty = ex.task(pandas.DataFrame({"text": [*texts[:-1], float("nan")], "label": numbers}))
    assert empty.notes[0] == "1 empty text was left out of train."


def test_columns_come_in_every_form_that_has_an_order(task: Task) -> None:
    texts, labels = written()
    frame = pl.DataFrame({"text": texts, "label": labels})
    assert ex.task(frame.lazy()).hash == task.hash
    pairs = dict(zip(texts, labels, strict=True))
    assert ex.task(texts=pairs.keys(), labels=list(pairs.values())).hash == task.hash  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"texts is a list, not {.*: a set has no order"):
        ex.task(texts=set(texts), labels=labels)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="texts is a list, not <generator"):
        ex.task(texts=(text for text in texts), labels=labels)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the lazy frame can't be collected"):
        ex.task(pl.scan_csv("nowhere.csv"))
    half = ex.task(texts=[f"{text} \ud800" for text in texts], labels=labels)
    assert half.split("test")[0].words[-1] == "\ufffd"
    assert len(ex.tokens(half))


def test_rationales_may_be_places_of_words(tmp_path: Path) -> None:
    texts, labels = written(30)
    places = ex.task(texts=texts, labels=labels, rationales=[[0, 2]] * 30)
    assert places.hash == ex.task(texts=texts, labels=labels, rationales=[[[0, 1], [2, 3]]] * 30).hash
    assert load_task(places.deposited(tmp_path)).hash == places.hash  # type: ignore[attr-defined]
    with pytest.raises(ExegeteError, match="row 1 of 'texts': 'rationale' names a word twice"):
        ex.task(texts=texts, labels=labels, rationales=[[0, 0, 1, 1]] * 30)


def test_scores_and_words_say_how_far_they_are_and_take_a_device(model: Trained, task: Task) -> None:
    calls: list[Callable[..., object]] = [
        partial(ex.score, model, task, ["occlusion"]),
        partial(ex.words, model, task, ["occlusion"], least=1),
    ]
    for call in calls:
        told: list[tuple[str, int, int]] = []
        call(progress=lambda *step: told.append(step), device="cpu")  # noqa: B023
        assert told
        assert told[-1][1] == told[-1][2]
        with pytest.raises(UsageError, match="is no device"):
            call(device="gpu")


@pytest.mark.parametrize("number", [-5, 0, True, 2.0, float("nan"), "3"])
def test_every_count_is_checked(number: Any, model: Trained, task: Task) -> None:
    asked: list[tuple[str, Any]] = [
        ("texts", lambda: ex.score(model, task, ["attention"], texts=number)),
        ("texts", lambda: ex.words(model, task, texts=number)),
        ("least", lambda: ex.words(model, task, least=number)),
        ("texts", lambda: ex.ask("permutation", model, task, texts=number)),
        ("workers", lambda: ex.ask("permutation", model, task, workers=number)),
        ("workers", lambda: ex.audit(model, task, workers=number)),
        ("workers", lambda: ex.Study([task], [model], ["permutation"]).run(workers=number)),
        ("step", lambda: ex.explain(model, "a fine b", step=number)),
        ("step", lambda: ex.lab(model, "a fine b", step=number)),
        ("draws", lambda: ex.ask({"name": "permutation", "draws": number}, model, task)),
        ("test_limit", lambda: ex.task(pl.DataFrame({"text": ["a"], "label": [1]}), test_limit=number)),
    ]
    table = ex.words(model, task, texts=5, least=1)
    asked += [("rows", lambda: table.most(number)), ("rows", lambda: table.apart(rows=number))]
    written_out = [(name, each) for name in ("draws", "test_limit") for each in (2.0, "3")]  # as in a study's file
    for name, call in asked:
        if (name, number) not in written_out:
            with pytest.raises(UsageError, match=name):
                call()


def test_seeds_are_whole_numbers_in_a_list(task: Task) -> None:
    for seeds in ({1}, 3, [1.5], [True]):
        with pytest.raises(UsageError, match="seeds is a list of whole numbers"):
            ex.Study([task], [SPEC], ["permutation"], seeds=seeds)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="seeds is empty"):
        ex.audit(SPEC, task, seeds=[])
    with pytest.raises(UsageError, match="less than 9223372036854775808"):
        ex.Study([task], [SPEC], ["permutation"], seeds=[2**70]).run("runs/far")


def test_leaks_are_warned_of_before_anything_is_trained() -> None:
    texts, labels = written(60)
    splits = ["train"] * 60 + ["dev"] * 60 + ["test"] * 60
    leaking = ex.task(pl.DataFrame({"text": texts * 3, "label": labels * 3, "split": splits}))
    with pytest.raises(DataWarning, match="100% of dev"):  # every warning is an error in these tests
        ex.train(SPEC, leaking, training=TRAINING)
    with pytest.raises(DataWarning, match="100% of dev"):
        ex.Study([leaking], [SPEC], ["permutation"]).run("runs/leaking")
    assert not list(Path("runs/leaking/stages").glob("*"))
    said: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        run = ex.ask("permutation", SPEC, leaking, out="runs/warned").run
        ex.train(SPEC, leaking, training=TRAINING, progress=Listener(said))
    (cell,) = read_manifest(run)["cells"]
    assert [each["shared"] for each in cell["data"]["check"]["splits"]] == [0, 60, 60]
    assert any(note.startswith("100% of test") for note in cell["data"]["notes"])
    assert said[0].startswith("the texts of texts:\nsplit  texts")
    assert said[2].startswith("100% of test")


class Listener:
    """Somebody who hears sentences."""

    def __init__(self, said: list[str]) -> None:
        self.said = said

    def __call__(self, label: str, done: int, total: int) -> None:
        """How far it is, nobody asks."""

    def say(self, sentence: str) -> None:
        """Remember it."""
        self.said.append(sentence)
