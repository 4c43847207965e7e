"""Auditing: which study answers what a user asks, with scores of another tool, quickly, and how long it takes."""

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from exegete.answers.criteria import load_criteria
from exegete.answers.goals import uncalibrated
from exegete.answers.request import OURS_TAKES, QUICK_TEXTS, AuditRequest, study_for, with_scores
from exegete.answers.retraining import RETRAINED, retraining_note, skipped_tests, trainable
from exegete.base.errors import ExegeteError, UsageError
from exegete.runs.cell import cached_task
from exegete.runs.engine.local import LocalEngine
from exegete.runs.estimate import DonePiece, Estimating, Plan, _told, plan_audit, seconds_of
from exegete.runs.passes import OF_HUB
from exegete.runs.run import run_study
from exegete.runs.study import Study, load_study
from exegete.training.checkpoint import is_of_hub
from tests.models.tiny import bert_folder


def test_the_quick_audit_trains_once_and_reads_few_texts() -> None:
    study = study_for(AuditRequest(quick=True))
    assert len(study.cells) == 1
    built = study.built_experiments()
    assert all(each.texts is not None and each.texts <= 200 for each in built.values())
    assert not {"necessity", "seed_stability", "diagnostic", "adversary_training"} & set(built)
    other = study_for(AuditRequest(task="rotten_tomatoes", model="average", quick=True))
    assert other.tasks == ("rotten_tomatoes",)  # no planted words: they need a training of their own
    assert other.name != study.name
    with pytest.raises(UsageError, match="built-in audit"):
        study_for(AuditRequest(study="audit", quick=True))


def hub_model() -> str:
    return f"hf:{bert_folder(('negative', 'positive'))}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "texts", "minutes"),
    [
        ({}, None, OURS_TAKES),
        ({"quick": True}, QUICK_TEXTS, 1.0),
        ({"quick": True, "texts": 400}, 400, 0.0),  # more than a quick audit asks by itself
        ({"quick": True, "texts": 100}, 100, 0.0),
        ({"quick": True, "minutes": 5.0}, QUICK_TEXTS, 5.0),
        ({"texts": 400}, 400, 0.0),
        ({"texts": 400, "minutes": 5.0}, 400, 5.0),
    ],
)
def test_an_audit_asks_as_many_texts_as_it_is_told(asked: dict[str, Any], texts: int | None, minutes: float) -> None:
    request = AuditRequest(**asked)
    budget = request.budget(study_for(request))
    assert budget is not None
    assert (budget.texts, budget.minutes) == (texts, minutes)


def test_a_model_of_hugging_face_has_an_audit_of_its_own_size() -> None:
    own, hub = (
        study_for(AuditRequest(task="sst", model="average")),
        study_for(AuditRequest(task="sst", model=hub_model())),
    )
    quick = study_for(AuditRequest(task="sst", model=hub_model(), quick=True))
    assert set(RETRAINED) <= set(own.built_experiments())
    assert not set(RETRAINED) & (set(hub.built_experiments()) | set(quick.built_experiments()))
    assert hub.tasks == ("sst:lower=false",)  # nothing planted: that would be another fine-tuning
    assert hub.training.epochs == 1
    for study in (hub, quick):
        built = study.built_experiments()
        assert (getattr(built["mediation"], "draws"), getattr(built["mediation"], "words")) == (4, 24)  # noqa: B009
        assert all(each.texts is not None and each.texts <= 150 for each in built.values())
        assert not uncalibrated(load_criteria(), study)
    assert hub.built_experiments()["adversary_search"].texts == 40
    assert "adversary_search" not in quick.built_experiments()


@pytest.mark.slow
def test_what_needs_fine_tunings_is_named_with_its_command_and_asked_by_it() -> None:
    study = study_for(AuditRequest(task="sst", model=hub_model()))
    assert set(skipped_tests(study)) == {"known_answer", "needed", "stable", "informative", "hard_to_fake"}
    (sentence,) = retraining_note(study)
    further = f"{hub_model()}:tune=true"
    assert f"`exegete audit --task sst:lower=false --model {further} --retrain`" in sentence
    again = study_for(AuditRequest(task="sst", model=further, retrain=True))
    assert set(RETRAINED) <= set(again.built_experiments())
    assert again.tasks == ("sst:lower=false", "sst:lower=false,planted=token")
    assert retraining_note(again) == []
    assert retraining_note(study_for(AuditRequest(task="sst", model="average"))) == []
    encoder = f"{hub_model()}:head=cls"
    assert trainable(encoder) == encoder
    for asking in (
        AuditRequest(task="sst", model="average", retrain=True),
        AuditRequest(model=further, retrain=True, quick=True),
    ):
        with pytest.raises(UsageError, match="--retrain is for the whole audit"):
            study_for(asking)


@pytest.mark.slow
def test_a_checkpoint_of_hugging_face_is_named_by_what_it_was_made_of(tmp_path: Path) -> None:
    recipe = f"{hub_model()}:head=cls,frozen=1"
    ours, own = tmp_path / "ours", tmp_path / "own"
    for folder, model in ((ours, recipe), (own, "hf:BertForSequenceClassification")):
        folder.mkdir()
        (folder / "checkpoint.json").write_text(json.dumps({"model": model}))
    assert is_of_hub(str(ours))
    assert trainable(str(ours)) == trainable(f"hf:{ours}") == recipe
    assert trainable(str(own)) == f"hf:{own}:tune=true"


@pytest.mark.parametrize("before", ["", "hf:"])
def test_a_checkpoint_is_given_texts_as_it_was_trained_on_them(tmp_path: Path, before: str) -> None:
    folder = Path(shutil.copytree(bert_folder(("negative", "positive")), tmp_path / "saved"))
    alone = study_for(AuditRequest(task="sst", model=f"hf:{folder}", quick=True))
    assert alone.tasks == ("sst:lower=false",)  # saved by transformers: as people wrote them
    for lower, task in ((True, "sst:tokenizer=words"), (False, "sst:tokenizer=words,lower=false")):
        facts = {"model": "hf:BertForSequenceClassification", "tokenizer": "words", "lower": lower}
        (folder / "checkpoint.json").write_text(json.dumps(facts))
        assert study_for(AuditRequest(task="sst", model=f"{before}{folder}", quick=True)).tasks == (task,)
    said = study_for(AuditRequest(task="sst:tokenizer=whitespace", model=f"{before}{folder}", quick=True))
    assert said.tasks == ("sst:tokenizer=whitespace,lower=false",)  # what the name says stands


def test_a_folder_that_transformers_saved_is_named_so(tmp_path: Path) -> None:
    with pytest.raises(ExegeteError, match=f"if transformers saved it, write hf:{bert_folder()}$"):
        study_for(AuditRequest(task="sst", model=str(bert_folder()), quick=True))
    with pytest.raises(ExegeteError, match="train one there, or name another folder"):
        study_for(AuditRequest(task="sst", model=str(tmp_path), quick=True))


def test_questions_are_asked_about_their_facts_too() -> None:
    assert "supporting_facts" in study_for(AuditRequest(task="stories", model="pair")).built_experiments()
    assert "supporting_facts" not in study_for(AuditRequest(task="sst", model="average")).built_experiments()


def test_scores_of_another_tool_are_one_more_method(tmp_path: Path) -> None:
    file = tmp_path / "scores.parquet"
    pl.DataFrame({"example": [0], "token": [0], "score": [1.0]}).write_parquet(file)
    study = with_scores(load_study("audit"), [str(file)])
    entries = {entry["name"]: entry for entry in study.experiments}
    assert entries["agreement"]["against"] == ["attention", "gradient", "leave_one_out", f"given:file={file}"]
    assert entries["faithfulness"]["methods"][-1] == f"given:file={file}"
    assert entries["permutation"] == {entry["name"]: entry for entry in load_study("audit").experiments}["permutation"]
    assert study.name != "audit"


class Heard:
    """A listener who keeps sentences."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def __call__(self, label: str, done: int, total: int) -> None:
        """Nothing."""

    def say(self, sentence: str) -> None:
        self.said.append(sentence)


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_first_piece_tells_the_time_once_and_a_complete_run_is_not_waited_for(
    study: Study, whole: Path, tmp_path: Path
) -> None:
    heard = Heard()
    run_study(
        study,
        tmp_path / "run",
        engine=LocalEngine(1),
        progress=Estimating(study, tmp_path / "run", heard, LocalEngine(2)),
    )
    about = [sentence for sentence in heard.said if sentence.startswith("this takes about ")]
    assert len(about) == 1
    assert "on 2 cores" in about[0]
    again = Heard()
    run_study(study, whole, engine=LocalEngine(1), progress=Estimating(study, whole, again, LocalEngine(2)))
    assert again.said == []


def test_slow_first_steps_and_loading_are_not_the_speed(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """100 steps of a tenth of a second, but the first four take a minute each, and whoever listens is slow, too."""
    now, heard, pieces = [0.0], Heard(), []
    monkeypatch.setattr("exegete.runs.estimate.time.monotonic", lambda: now[0])

    class Slow(Estimating):
        def _piece(self, label: str, share: float, took: float) -> DonePiece:
            now[0] += 1000  # it loads the texts
            pieces.append((share, took))
            return DonePiece(1.0, 1.0)

    listening = Slow(study, Path("nowhere"), heard, LocalEngine(1))
    for step in range(1, 101):
        now[0] += 60 if step < 5 else 0.1
        listening("epoch 1", step, 100)
    ((share, took),) = pieces
    assert took == pytest.approx(0.1 * 100 * share)
    assert share >= 0.2
    assert len(heard.said) == 1


def test_a_plan_is_counted_from_words_epochs_and_methods(study: Study) -> None:
    plan, more = plan_audit(study), plan_audit(study.model_copy(update={"seeds": (0, 1, 2, 3)}))
    assert plan.trainings == len(study.cells) == 4
    assert more.training == 2 * plan.training > 0
    assert more.asking == 2 * plan.asking > 0
    asked = [{"name": "agreement", "against": ["attention", "gradient", "lime:samples=500"], "ks": [], "topk": []}]
    assert plan_audit(study.model_copy(update={"experiments": tuple(asked)})).asking > 5 * plan.asking


def test_time_is_work_over_speed() -> None:
    fixed = seconds_of(Plan(0, 0, 1, 0), [DonePiece(1, 1)], 2)
    plan = Plan(training=5000, asking=5000, trainings=1, experiments=0)
    trained = seconds_of(plan, [DonePiece(500, 10)], 2) - fixed  # 0.02 s a pass
    assert trained == pytest.approx(5000 * 0.02 + 5000 * 0.02 / 2)  # one training keeps one core busy
    assert seconds_of(plan, [DonePiece(500, 20)], 2) - fixed == pytest.approx(2 * trained)
    beside = seconds_of(plan._replace(trainings=2), [DonePiece(500, 10)], 2) - fixed
    assert beside == pytest.approx(trained - 50)
    alone = seconds_of(plan._replace(longest=4000), [DonePiece(500, 10)], 2) - fixed  # of 5000: the other core waits
    assert alone == pytest.approx(trained + 30)


def test_a_step_and_a_question_are_told_by_the_kind_of_model() -> None:
    """Measured, CPU-seconds of MiniLM: an audit's questions took 515, one of them 190, of which half is a piece."""
    plan = plan_audit(load_study("audit_hf"))
    a_text = 0.008 / 21  # seconds of a plain prediction, by words
    assert 515 / 1.5 <= plan.asking * a_text <= 515 * 1.5
    assert 190 / 2 / 1.5 <= plan.longest * a_text <= 190 / 2 * 1.5
    words = sum(len(e) for e in cached_task("rotten_tomatoes:tokenizer=whitespace,lower=false").split("train"))
    assert plan.training == pytest.approx(OF_HUB.step * words)
    assert plan_audit(load_study("audit_quick")).longest > 0


def test_companions_of_single_words_are_trained_in_less_and_each_is_counted_once(study: Study) -> None:
    def training(*experiments: dict[str, Any]) -> float:
        return plan_audit(study.model_copy(update={"experiments": experiments})).training

    another: dict[str, Any] = {"name": "seed_stability", "seeds": [8, 9]}
    frozen: dict[str, Any] = {"name": "adversary_training", "unfrozen": False, "frozen_lams": [0.1], "seeds": []}
    assert training(another, frozen) == training(another, frozen | {"seeds": [9]})
    assert training(frozen) < training(frozen | {"seeds": [9]})
    words = training({"name": "adversary_search", "references": True})  # two models of single words
    assert training() < words < training(another)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (11, "10 seconds"),
        (72, "70 seconds"),
        (100, "1.5 minutes"),
        (140, "2.5 minutes"),
        (700, "12 minutes"),
        (7200, "2.0 hours"),
    ],
)
def test_times_as_people_say_them(seconds: float, said: str) -> None:
    assert _told(seconds) == said
