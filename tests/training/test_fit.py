"""Training: it learns, it repeats itself, it goes on where it was interrupted, and it says what is wrong."""

from pathlib import Path

import pytest
import torch

from exegete.base.errors import ExegeteError
from exegete.base.names import parse
from exegete.models.build import build
from exegete.models.contract import Site
from exegete.models.ours.classifier import PoolingClassifier
from exegete.models.ours.module import hash_tensors
from exegete.tasks.example import Task
from exegete.training.checkpoint import load_checkpoint, load_state, save_state
from exegete.training.evaluation import evaluate, predict
from exegete.training.fit import Fit, State
from exegete.training.settings import TrainingSettings
from exegete.training.train import train_in_folder
from tests.small import pooling, small_task

SPEC = "bilstm:size=8,hidden=8"
FAST = TrainingSettings(epochs=6, patience=20, lr=0.02, metric="accuracy")


def fitted(epochs: int = 6, seed: int = 0) -> Fit:
    task = small_task()
    fit = Fit(build(SPEC, task, seed), task, FAST.model_copy(update={"epochs": epochs}), seed)
    fit.run()
    return fit


def test_a_small_model_learns_a_small_task() -> None:
    fit = fitted(20)
    assert (evaluate(fit.model, fit.task.split("test"))["accuracy"] or 0) > 0.9


def test_the_same_seed_gives_the_same_weights_and_another_does_not() -> None:
    first, again, other = fitted(2), fitted(2), fitted(2, seed=1)
    assert hash_tensors(first.model.state_dict()) == hash_tensors(again.model.state_dict())
    assert hash_tensors(first.model.state_dict()) != hash_tensors(other.model.state_dict())


def test_the_global_generator_is_left_alone() -> None:
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    fitted(1)
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("wild", [{"lr": 1e30}, {"lr": 1e38, "attention_lr": 1e38}, {"lr": 0.02, "attention_lr": 1e38}])
def test_the_settings_that_are_advised_train(wild: dict[str, float]) -> None:
    """Where the loss is no number, the sentence names settings; with them it is one."""
    task = small_task()
    settings = TrainingSettings(epochs=3, metric="accuracy", **wild)
    with pytest.raises(ExegeteError, match="for example") as refused:
        Fit(build(SPEC, task), task, settings, 0).run()
    advice = parse(f"set:{str(refused.value).partition('for example ')[2]}").settings
    advised = TrainingSettings.model_validate(settings.model_dump() | advice)
    Fit(build(SPEC, task), task, advised, 0).run()


class KilledError(Exception):
    """Stands for a kill between two epochs."""


@pytest.mark.parametrize("after", [1, 3])
def test_an_interrupted_training_ends_with_the_same_weights(tmp_path: Path, after: int) -> None:
    task = small_task()
    whole = train_in_folder(Fit(build(SPEC, task), task, FAST, 0), tmp_path / "whole", "key")

    def stop(label: str, done: int, total: int) -> None:
        if label == f"epoch {after + 1}":
            raise KilledError

    with pytest.raises(KilledError):
        train_in_folder(Fit(build(SPEC, task), task, FAST, 0), tmp_path / "cut", "key", stop)
    assert not (tmp_path / "cut").exists()
    state = load_state(tmp_path / "cut.partial", "key")
    assert state is not None
    assert state.epoch == after
    resumed = train_in_folder(Fit(build(SPEC, task), task, FAST, 0), tmp_path / "cut", "key")
    assert resumed.weights_hash == whole.weights_hash
    assert resumed.metrics == whole.metrics
    assert not (tmp_path / "cut.partial").exists()


def test_the_state_of_another_training_is_not_used(tmp_path: Path) -> None:
    task = small_task()
    fit = Fit(build(SPEC, task), task, FAST, 0)

    def keep(state: State) -> None:
        save_state(tmp_path, state, "mine")

    fit.run(keep)
    assert load_state(tmp_path, "other") is None
    assert load_state(tmp_path, "mine") is not None


def test_the_best_epoch_is_kept_and_patience_ends_training() -> None:
    task = small_task()
    fit = Fit(build(SPEC, task), task, TrainingSettings(epochs=30, patience=2, lr=0.02, metric="auc"), 0)
    state = fit.run()
    scores = [m["auc"] or 0 for m in state.history]
    assert state.best_epoch == scores.index(max(scores)) + 1
    assert state.epoch == state.best_epoch + 2 < 30
    assert evaluate(fit.model, task.split("dev"))["auc"] == max(scores)


def test_attention_has_its_own_group() -> None:
    task = small_task()
    fit = Fit(
        build(f"{SPEC},projection=entmax,learned=true", task),
        task,
        TrainingSettings(weight_decay=0.1, attention_lr=0.5),
        0,
    )
    rest, attention = fit.optimiser.param_groups
    assert isinstance(fit.model, PoolingClassifier)
    scorer = {id(p) for m in (fit.model.scorer, fit.model.project) for p in m.parameters()}
    assert {id(p) for p in attention["params"]} == scorer
    assert (attention["weight_decay"], attention["lr"], rest["weight_decay"], rest["lr"]) == (0.0, 0.5, 0.1, 1e-3)
    assert {id(p) for g in (rest, attention) for p in g["params"]} == {id(p) for p in fit.model.parameters()}


def test_fixed_embeddings_do_not_move() -> None:
    task = small_task()
    model = build(f"{SPEC},trainable=false", task)
    before = model.embedding.weight.clone()
    Fit(model, task, FAST, 0).run()
    assert torch.equal(before, model.embedding.weight)


def test_an_intervention_works_inside_training() -> None:
    task = small_task()

    def uniform(site: Site) -> torch.Tensor:
        return site.mask / site.mask.sum(-1, keepdim=True)

    model = pooling(SPEC, task)
    before = model.scorer.linear.weight.clone()
    Fit(model, task, FAST.model_copy(update={"epochs": 1}), 0, uniform).run()
    assert torch.equal(before, model.scorer.linear.weight)  # no gradient reaches a scorer whose weights are not used
    assert not torch.equal(predict(model, task.split("dev")), predict(model, task.split("dev"), uniform))


def test_a_loss_that_explodes_is_one_sentence() -> None:
    task = small_task()
    fit = Fit(build(SPEC, task), task, FAST, 0)
    with torch.no_grad():
        assert isinstance(fit.model, PoolingClassifier)
        fit.model.decoder.bias.fill_(torch.nan)
    with pytest.raises(ExegeteError, match="loss became nan in epoch 1: lower the learning rate"):
        fit.run()


def test_a_loss_that_explodes_in_the_last_step_is_one_sentence() -> None:
    task = small_task()
    one = Task("one", task.labels, {name: task.split("train")[:2] for name in ("train", "dev")}, "made up")
    fit = Fit(build(SPEC, one), one, TrainingSettings(epochs=1, lr=1e38, metric="accuracy"), 0)
    with pytest.raises(ExegeteError, match=r"loss became .* in epoch 1"):
        fit.run()


def test_the_state_of_another_training_is_not_overwritten(tmp_path: Path) -> None:
    task = small_task()
    fit = Fit(build(SPEC, task), task, FAST.model_copy(update={"epochs": 1}), 0)
    save_state(tmp_path / "model.partial", fit.run(), "another")
    with pytest.raises(ExegeteError, match="state of another training"):
        train_in_folder(Fit(build(SPEC, task), task, FAST, 0), tmp_path / "model", "key")


def test_a_folder_with_another_model_is_not_overwritten(tmp_path: Path) -> None:
    task = small_task()
    settings = FAST.model_copy(update={"epochs": 1})
    kept = train_in_folder(Fit(build(SPEC, task), task, settings, 0), tmp_path / "model", "one")
    assert (
        train_in_folder(Fit(build(SPEC, task), task, settings, 0), tmp_path / "model", "one").weights_hash
        == kept.weights_hash
    )
    with pytest.raises(ExegeteError, match="holds another model"):
        train_in_folder(Fit(build(SPEC, task), task, settings, 0), tmp_path / "model", "two")
    assert load_checkpoint(tmp_path / "model").weights_hash == kept.weights_hash


def test_short_texts_come_first() -> None:
    """Every epoch goes from the shortest to the longest; which texts of one length come together is drawn."""
    task = small_task()
    train = task.split("train")
    fit = Fit(build(SPEC, task), task, FAST.model_copy(update={"short_first": True, "batch": 4}), 0)
    one, other = fit._batches(train, 1), fit._batches(train, 2)
    for batches in (one, other):
        lengths = [len(train[i]) for batch in batches for i in batch]
        assert lengths == sorted(lengths)
        assert sorted(i for batch in batches for i in batch) == list(range(len(train)))
    assert one != other
    shuffled = Fit(build(SPEC, task), task, FAST.model_copy(update={"batch": 4}), 0)._batches(train, 1)
    assert shuffled != one
    assert sorted(shuffled) == sorted(one)
