"""Training a translator: it learns, goes on where it was interrupted, and is kept with its settings."""

from pathlib import Path

import pytest
import torch

from exegete.base.errors import ExegeteError, UsageError
from exegete.interventions.uniform import Uniform
from exegete.models.build import build_model
from exegete.models.ours.generation import greedy
from exegete.models.ours.recurrent_translator import RecurrentTranslator
from exegete.models.ours.translator import Translator
from exegete.tasks.batching import collate
from exegete.training.checkpoint import load_checkpoint
from exegete.training.evaluation import evaluate
from exegete.training.fit import Fit
from exegete.training.settings import TrainingSettings
from exegete.training.train import train_in_folder
from tests.models.small_translation import translation_task
from tests.small import small_task

SPEC = "translator:hidden=12,size=12,dropout=0.1,projection=entmax,alpha=1.2,layers=2"
FAST = TrainingSettings(epochs=3, patience=20, lr=0.02, metric="loss", smoothing=0.1, clip=1, warmup=20)
TASK = translation_task()


def fit(settings: TrainingSettings = FAST, spec: str = SPEC) -> Fit:
    return Fit(build_model(spec, TASK), TASK, settings, 0)


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["bahdanau", "luong"])
def test_it_learns_to_translate(attention: str) -> None:
    spec = f"translator:hidden=24,size=24,dropout=0.1,attention={attention}"
    settings = TrainingSettings(epochs=25, patience=25, lr=0.02, metric="loss", clip=1)
    done = fit(settings, spec)
    state = done.run()
    assert isinstance(done.model, Translator)
    test = TASK.split("test")
    assert (evaluate(done.model, test)["accuracy"] or 0) > 0.9
    first, best = (state.history[epoch - 1]["objective"] or 0.0 for epoch in (1, state.best_epoch))
    assert best < first / 3
    batch = collate(test, done.model.vocabulary)
    written, uniform = greedy(done.model, batch), greedy(done.model, batch, Uniform())
    rows = [done.model.vocabulary.rows(e.texts[1]) for e in test]
    right, without = (sum(a == b for a, b in zip(w.rows, rows, strict=True)) for w in (written, uniform))
    assert right > 20
    assert without < right  # it needs its attention


class KilledError(Exception):
    """Stands for a kill between two epochs."""


@pytest.mark.slow
def test_an_interrupted_training_ends_with_the_same_weights(tmp_path: Path) -> None:
    whole = train_in_folder(fit(), tmp_path / "whole", "key")

    def stop(label: str, done: int, total: int) -> None:
        if label == "epoch 3":
            raise KilledError

    with pytest.raises(KilledError):
        train_in_folder(fit(), tmp_path / "cut", "key", stop)
    resumed = train_in_folder(fit(), tmp_path / "cut", "key")
    assert resumed.weights_hash == whole.weights_hash
    assert resumed.metrics == whole.metrics


def test_a_checkpoint_keeps_settings_and_predictions(tmp_path: Path) -> None:
    kept = train_in_folder(fit(FAST.model_copy(update={"epochs": 1})), tmp_path / "kept", "key")
    loaded = load_checkpoint(tmp_path / "kept")
    assert isinstance(loaded.model, RecurrentTranslator)
    assert (loaded.model.spec, loaded.model.labels, loaded.model.vocabulary.wrap) == (SPEC, (), True)
    assert loaded.model.spec == kept.model.spec
    assert not loaded.model.training
    batch = collate(TASK.split("test"), loaded.model.vocabulary)
    assert torch.equal(loaded.model.trace(batch).logits, kept.model.trace(batch).logits)
    assert 0 <= loaded.metrics["test"]["accuracy"] <= 1


@pytest.mark.slow
def test_training_stops_early() -> None:
    state = fit(FAST.model_copy(update={"epochs": 9, "patience": 1, "lr": 0.5, "warmup": 0})).run()
    assert state.epoch - state.best_epoch == 1
    assert state.epoch < 9


def test_there_is_no_area_under_the_curve_of_words() -> None:
    with pytest.raises(ExegeteError, match="choose metric=loss"):
        fit(FAST.model_copy(update={"metric": "auc", "epochs": 1})).run()


def test_tasks_and_models_must_fit() -> None:
    with pytest.raises(UsageError, match="use model translator"):
        build_model("bilstm", TASK)
    with pytest.raises(UsageError, match="translation tasks"):
        build_model("translator", small_task())
