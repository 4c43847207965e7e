"""Build: an untrained model for a task, from a name with settings and a seed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from exegete.base.device import CPU, in_use
from exegete.base.errors import UsageError
from exegete.base.names import parse
from exegete.base.noise import stable_seed
from exegete.models.capabilities import Writing
from exegete.models.ours.classifier import Classifier, TextClassifier
from exegete.models.ours.deletion import BiLSTMClassifier
from exegete.models.ours.hierarchical import Hierarchical
from exegete.models.ours.last_state import LastState
from exegete.models.ours.module import Model
from exegete.models.ours.pair import Pair
from exegete.models.ours.piece_transformer import PooledSpelled, ReadSpelled
from exegete.models.ours.rationale import RationaleClassifier
from exegete.models.ours.recurrent_translator import RecurrentTranslator
from exegete.models.ours.transformer import Transformer
from exegete.models.ours.transformer_translator import TransformerTranslator
from exegete.models.own.classifier import own_model
from exegete.models.settings import (
    HUB,
    KINDS,
    MODELS,
    BiLSTMSettings,
    ClassifierSettings,
    HierarchicalSettings,
    HuggingFaceSettings,
    LadderSettings,
    OwnSettings,
    PairSettings,
    RationaleSettings,
    SpelledSettings,
    TransformerSettings,
    TranslatorSettings,
    task_kinds,
)
from exegete.models.truths.ladder import Ladder
from exegete.tasks.example import Task
from exegete.tasks.vectors import load_vectors
from exegete.tasks.vocabulary import SPECIAL, Vocabulary, fit_vocabulary


def build(spec: str, task: Task, seed: int = 0) -> Model:
    """A model that predicts a class, as `build_model` makes it."""
    return _classifier(build_model(spec, task, seed))


def build_model(spec: str, task: Task, seed: int = 0) -> Model:
    """A model with random weights that depend on the seed alone; vectors where the settings name them."""
    return place_model(_built(spec, task, seed))


def place_model(model: Model) -> Model:
    """A model on the device that was asked for; where none was, it stays as it is."""
    device = in_use()
    return model if device.type == CPU else model.to(device)


def _built(spec: str, task: Task, seed: int) -> Model:
    settings = MODELS.make(spec)
    _check_kind(parse(spec).name, task)
    if not task.labelled and not _is_finished(spec, settings):
        raise UsageError(
            f"the texts of '{task.name}' have no labels, and {spec} would have to learn them: give labels, or ask a "
            "model that is trained (a checkpoint folder, a classifier of Hugging Face)"
        )
    if isinstance(settings, HuggingFaceSettings):
        return _pretrained(spec, task, seed)
    vocabulary = fit_vocabulary(task.split("train"), task.min_df, settings.wrap)
    vectors = load_vectors(settings.vectors, vocabulary.words) if settings.vectors else None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stable_seed("init", seed))
        model = make_model(spec, vocabulary, task.labels, vectors.size if vectors else None)
    if vectors:
        with torch.no_grad():
            for table in model.tables:
                table.weight[torch.from_numpy(vectors.found) + len(SPECIAL)] = torch.from_numpy(vectors.rows)
    if isinstance(model, Ladder):
        model.settle()
    return model


def _is_finished(spec: str, settings: Any) -> bool:
    """Whether a model comes trained by its name."""
    if isinstance(settings, HuggingFaceSettings):
        from exegete.models.huggingface.source import comes_trained

        return comes_trained(spec)
    return isinstance(settings, OwnSettings) and settings.trained


def _pretrained(spec: str, task: Task, seed: int) -> Model:
    """A model of transformers; only a head of ours depends on the seed."""
    from exegete.models.huggingface.build import build_for_task

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stable_seed("init", seed))
        return build_for_task(spec, task)


def restore_model(folder: Path, facts: dict[str, Any]) -> Model:
    """The model of a checkpoint folder, without its weights; a model of transformers has them already."""
    if parse(facts["model"]).name.startswith(HUB):
        from exegete.models.huggingface.build import restore_saved

        return restore_saved(folder, facts)
    vocabulary = Vocabulary(tuple(facts["words"]), facts["wrap"])
    return make_model(facts["model"], vocabulary, tuple(facts["labels"]), facts["size"])


def _check_kind(name: str, task: Task) -> None:
    """Refuse a model that is made for another kind of task."""
    if task.kind not in task_kinds(name):
        fitting = {kind: model for model, kinds in KINDS.items() if len(kinds) == 1 for kind in kinds}
        raise UsageError(
            f"model '{name}' is for {' and '.join(task_kinds(name))} tasks and '{task.name}' is a {task.kind} task: "
            f"use model {fitting.get(task.kind, 'bilstm')}"
        )


def make_classifier(spec: str, vocabulary: Vocabulary, labels: tuple[str, ...], size: int | None = None) -> Model:
    """A model that predicts a class, as `make_model` makes it."""
    return _classifier(make_model(spec, vocabulary, labels, size))


def _classifier(model: Model) -> Model:
    assert not isinstance(model, Writing), f"{model.spec} predicts no class"
    return model


def plain_classifier(spec: str, vocabulary: Vocabulary, labels: tuple[str, ...]) -> Classifier:
    """A classifier of one encoder and one attention, whose layers are known: for weights that are set by hand."""
    model = make_model(spec, vocabulary, labels)
    assert isinstance(model, Classifier), f"{spec} has other layers"
    return model


def make_model(spec: str, vocabulary: Vocabulary, labels: tuple[str, ...], size: int | None = None) -> Model:
    """The class that a name stands for, with weights from the global generator."""
    return _kind(MODELS.make(spec))(spec, vocabulary, labels, size)


_OWN_CLASS: dict[type[ClassifierSettings], type[TextClassifier]] = {
    BiLSTMSettings: BiLSTMClassifier,
    RationaleSettings: RationaleClassifier,
    HierarchicalSettings: Hierarchical,
    LadderSettings: Ladder,
    PairSettings: Pair,
    TransformerSettings: Transformer,
}


def _kind(settings: ClassifierSettings | OwnSettings | TranslatorSettings) -> Callable[..., Model]:
    if isinstance(settings, OwnSettings):
        return own_model
    if isinstance(settings, TranslatorSettings):
        return _translator(settings)
    if isinstance(settings, SpelledSettings):
        return PooledSpelled if settings.pool == "attention" else ReadSpelled
    return LastState if settings.attention == "none" else _OWN_CLASS.get(type(settings), Classifier)


def _translator(settings: TranslatorSettings) -> type[Model]:
    return TransformerTranslator if settings.architecture == "transformer" else RecurrentTranslator
