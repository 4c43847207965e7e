"""Studies of pairs and translations, from end to end: of a translation, single words are asked about as classes are."""

from pathlib import Path

import polars as pl
import pytest

from exegete.answers.audit import audit_study
from exegete.answers.pages.build import headlines, predictions, write_run_report
from exegete.answers.request import AuditRequest, study_for
from exegete.base.errors import ExegeteError, UsageError
from exegete.runs.engine.local import LocalEngine
from exegete.runs.run import run_study
from exegete.runs.study import Study, check_study
from exegete.tasks.catalogue import task_kind
from exegete.training.settings import TrainingSettings

pytestmark = pytest.mark.slow

FAST = TrainingSettings(epochs=1, batch=32, lr=1e-2, metric="loss")
TOY = "toy_translation:train=60,dev=20,test=20"
TRANSLATOR = "translator:hidden=8,size=8,attention=luong"


def study(task: str, model: str, *experiments: dict[str, object]) -> Study:
    return check_study(Study(name="small", tasks=(task,), models=(model,), training=FAST, experiments=experiments))


@pytest.mark.usefixtures("undrawn")
def test_a_study_of_translations(tmp_path: Path) -> None:
    asked = study(
        TOY,
        TRANSLATOR,
        {"name": "necessity", "trained": ["uniform"], "inferred": ["permute"]},
        {"name": "permutation", "draws": 5},
        {"name": "agreement", "against": ["attention", "gradient", "leave_one_out"], "ks": [], "topk": []},
        {"name": "diagnostic"},
    )
    run_study(asked, tmp_path, None, LocalEngine(1))
    table = pl.read_csv(tmp_path / "tables" / "necessity_vashishth.csv")
    assert table["condition"].to_list() == ["own attention", "permute", "uniform"]
    changes = pl.read_csv(tmp_path / "tables" / "necessity_summary.csv")
    assert set(changes["metric"]) == {"BLEU"}
    assert set(changes["n"]) == {20}
    words = pl.read_parquet(tmp_path / "tables" / "permutation.parquet")
    assert set(words["kind"]) == {"generation"}
    assert words.height == words["example"].n_unique() <= 20
    assert words["median_tvd"].is_between(0, 1).all()
    tau = pl.read_csv(tmp_path / "tables" / "agreement_summary.csv")
    assert tau.filter(pl.col("measure") == "tau")["n"].min() > 0  # type: ignore[operator]
    cell = next((tmp_path / "cells").glob("*.json")).read_text()
    assert "diagnostic was not asked: it trains models that give one class to a text" in cell
    assert write_run_report(tmp_path).is_file()
    assert "of the words right, each after the right ones" in predictions(tmp_path)[0]
    assert headlines(tmp_path)[0].title == "BLEU with other attention"


@pytest.mark.usefixtures("undrawn")
def test_a_study_of_pairs(tmp_path: Path) -> None:
    asked = study(
        "stories:facts=1,train=60,dev=20,test=20,sentences=4",
        "pair:hidden=4,size=4",
        {"name": "necessity", "trained": ["uniform"], "inferred": ["permute"]},
        {"name": "permutation", "draws": 5},
        {"name": "supporting_facts", "methods": ["attention", "gradient", "random"]},
    )
    run_study(asked, tmp_path, None, LocalEngine(1))
    assert set(pl.read_parquet(tmp_path / "tables" / "permutation.parquet")["kind"]) == {"pair of texts"}
    facts = pl.read_csv(tmp_path / "tables" / "supporting_facts_summary.csv")
    assert {"attention", "gradient", "random"} == set(facts["method"])
    assert facts["chance"].drop_nulls().is_between(0, 1).all()
    assert write_run_report(tmp_path).is_file()
    pl.read_parquet(tmp_path / "tables" / "necessity_summary.parquet").drop("metric").write_parquet(
        tmp_path / "tables" / "necessity_summary.parquet"
    )
    with pytest.raises(ExegeteError, match="made by another version of exegete"):
        headlines(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "model"),
    [("stories:facts=1,train=80,dev=30,test=30,sentences=4", "pair:hidden=4,size=4"), (TOY, TRANSLATOR)],
)
def test_the_audit_is_for_every_kind_and_says_what_does_not_apply(tmp_path: Path, task: str, model: str) -> None:
    asked = study_for(AuditRequest(task=task, model=model))
    quick = asked.model_copy(update={"training": asked.training.model_copy(update={"epochs": 1})})
    found = audit_study(quick, tmp_path, engine=LocalEngine(1))
    assert {"used", "needed", "agrees", "beats_random"} <= {test.name for test in found.tests}
    cell = next((tmp_path / "cells").glob("*.json")).read_text()
    assert "was not asked" in cell


def test_what_kind_a_task_is() -> None:
    assert task_kind("sst") == "classification"
    assert task_kind("snli") == task_kind("stories:facts=2") == "pair"
    assert task_kind("multi30k") == task_kind(TOY) == "translation"
    assert task_kind("file:x.csv") == "classification"
    assert task_kind("file:x.csv:question=q") == "pair"


def test_a_model_for_another_kind_of_task_is_refused(tmp_path: Path) -> None:
    wrong = study(TOY, "bilstm:size=4,hidden=4", {"name": "permutation"})
    with pytest.raises(UsageError, match="is a translation task: use model translator"):
        run_study(wrong, tmp_path, None, LocalEngine(1))
