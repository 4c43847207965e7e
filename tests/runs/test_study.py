"""Studies: every wrong key, name or value is one sentence before any work is done."""

from pathlib import Path

import pytest

from exegete.base.errors import ExegeteError, UsageError
from exegete.runs.study import built_in_studies, load_study

GOOD = """
tasks = ["rotten_tomatoes"]
models = ["bilstm"]
"""


def load(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    load_study(str(path))


def test_built_in_studies_are_right() -> None:
    for path in built_in_studies():
        assert load_study(path.stem).name == path.stem
    assert len(load_study("neely_schouten_2020").cells) == 2 * 4 * 5
    first = next(built_in_studies())
    assert load_study(str(first)).name == first.stem  # also by its path


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (GOOD + "sedes = [1]", "unknown setting of study mine.toml 'sedes': did you mean 'seeds'"),
        (GOOD + "[training]\nepoch = 3", "did you mean 'epochs'"),
        (GOOD + "[training]\nepochs = 0", "epochs"),
        (GOOD.replace("bilstm", "bilstn"), "did you mean 'bilstm'"),
        (GOOD.replace("rotten_tomatoes", "roten_tomatoes"), "did you mean 'rotten_tomatoes'"),
        (GOOD.replace("rotten_tomatoes", "rotten_tomatoes:lwer=true"), "did you mean 'lower'"),
        (GOOD + '[[experiments]]\nname = "agrement"', "did you mean 'agreement'"),
        (GOOD + '[[experiments]]\nname = "agreement"\ndraw = 3', "did you mean 'draws'"),
        (GOOD + '[[experiments]]\nname = "agreement"\nks = ["some"]', "k is a whole number"),
        (GOOD + '[[experiments]]\nname = "agreement"\nagainst = ["attention", "gradeint"]', "did you mean 'gradient'"),
        (GOOD + '[[experiments]]\nname = "agreement"\nagainst = ["attention"]', "at least two"),
        (
            GOOD + '[[experiments]]\nname = "agreement"\nagainst = ["attention", "gradient", "gradient"]',
            "every importance once",
        ),
        (GOOD + '[[experiments]]\nname = "agreement"\nagainst = ["attention", "random"]', "only as `noise`"),
        (GOOD + "[[experiments]]\ndraws = 3", "an experiment needs a name"),
        (GOOD + '[[experiments]]\nname = "agreement"\ntasks = "sst"', "a list of patterns"),
        (GOOD + '[[experiments]]\nname = "sanity"\ntexts = 0', "texts is 1 or more"),
        (GOOD + '[[experiments]]\nname = "agreement"\ntasks = ["sst*"]', "no task of study"),
        (GOOD + '[[experiments]]\nname = "faithfulness"\nmethods = ["random"]', "against attention and random"),
        (GOOD + '[[experiments]]\nname = "agreement"\n[[experiments]]\nname = "agreement"', "there twice"),
        (GOOD + "seeds = [0, 0]", "there twice"),
        (GOOD + 'name = "my study"', "letters, digits"),
        ("tasks = [", "is not TOML"),
        ('models = ["bilstm"]', "'tasks' is missing"),
        (GOOD + 'plugins = ["no_such_module_here"]', "can't be imported"),
    ],
)
def test_wrong_studies_are_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ExegeteError, match=sentence):
        load(tmp_path, text)


def test_an_experiment_may_be_about_some_tasks_only() -> None:
    audit = load_study("audit")
    plain, planted = audit.tasks
    assert list(audit.built_experiments(planted)) == ["known_answer"]
    assert "known_answer" not in audit.built_experiments(plain)
    assert set(audit.built_experiments()) == {*audit.built_experiments(plain), "known_answer"}


def test_a_missing_study_says_what_there_is() -> None:
    with pytest.raises(ExegeteError, match=r"there is no study file nowhere/mine.toml"):
        load_study("nowhere/mine.toml")
    with pytest.raises(UsageError, match="did you mean 'neely_schouten_2020'"):
        load_study("neely_schouten")


def test_tasks_of_several_kinds_get_the_models_and_the_training_of_their_kind() -> None:
    mixed = load_study("kinds")
    fitting = {"pair": {"stories", "babi", "snli"}, "translator": {"multi30k"}, "bilstm": {"sst", "agnews"}}
    for model, tasks in fitting.items():
        assert {c.task.partition(":")[0] for c in mixed.cells if c.model.partition(":")[0] == model} == tasks
    assert mixed.training_for("snli").metric == "accuracy"
    assert mixed.training_for("snli").weight_decay == mixed.training.weight_decay
    assert mixed.training_for("multi30k").clip == 1.0
    assert mixed.training_for("sst") == mixed.training


def test_training_differs_by_task_and_model_where_a_study_says_so(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'tasks = ["sst", "rotten_tomatoes"]\nmodels = ["bilstm", "average"]\n[training]\nepochs = 8\nlr = 0.1\n'
        '[[trained]]\ntasks = ["!rotten*"]\nmodels = ["bilstm*"]\nepochs = 2\n'
        '[[trained]]\nmodels = ["average"]\nlr = 0.5'
    )
    study = load_study(str(path))
    found = {(t, m): study.training_for(t, m) for t in study.tasks for m in ("bilstm:size=3", "average")}
    assert {pair: (each.epochs, each.lr) for pair, each in found.items()} == {
        ("sst", "bilstm:size=3"): (2, 0.1), ("sst", "average"): (8, 0.5),
        ("rotten_tomatoes", "bilstm:size=3"): (8, 0.1), ("rotten_tomatoes", "average"): (8, 0.5),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('tasks = ["sst", "snli"]\nmodels = ["pair"]', "no model of study 'mine' fits task 'sst'"),
        (
            'tasks = ["sst", "snli"]\nmodels = ["pair", "bilstm", "translator"]',
            "no task of study 'mine' fits model 'trans",
        ),
        ('tasks = ["snli"]\nmodels = ["pair"]\n[kinds.pair]\nmetrik = 1', "did you mean 'metric'"),
        ('tasks = ["snli"]\nmodels = ["pair"]\n[kinds.pairs]\nlr = 1', "kinds"),
        ('tasks = ["sst"]\nmodels = ["bilstm"]\n[[trained]]\nlearning = 1', "unknown setting of training 'learning'"),
        ('tasks = ["sst"]\nmodels = ["bilstm"]\n[[trained]]\nmodels = "bilstm"', "trained.*models is a list"),
        ('tasks = ["sst"]\nmodels = ["bilstm"]\n[trained]\nlr = 1', "trained"),
    ],
)
def test_what_is_wrong_with_kinds_is_a_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=sentence):
        load_study(str(path))
