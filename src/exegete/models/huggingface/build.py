"""Make: from a name to a model of transformers, with its own head or with one of ours, proven."""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from exegete.base.errors import UsageError
from exegete.base.names import Spec, vary
from exegete.models.huggingface.classifier import OwnHead
from exegete.models.huggingface.heads import OurHead, PooledHead, reorder_head
from exegete.models.huggingface.labels import class_order, output_names, outputs_of
from exegete.models.huggingface.load import LoadedParts, check_tokenizer, load_parts
from exegete.models.huggingface.model import HEAD, HuggingFace, check_lengths
from exegete.models.huggingface.proof import proven
from exegete.models.huggingface.source import (
    CLASSIFIER,
    OTHER_HEADS,
    ModelFiles,
    check_model_files,
    find_model_files,
    head_of,
    in_folder,
    settings_of,
)
from exegete.tasks.example import Task


def build_from_spec(spec: str, labels: tuple[str, ...] = ()) -> HuggingFace:
    """The model that a name stands for; its classes are its own unless a task's are given."""
    if settings_of(spec).wrapped in _held:
        return _made_of_held(spec, labels)
    source = find_model_files(spec)
    return _made(spec, source, labels, kept=bool(source.ours) and settings_of(spec).head is None)


def build_for_task(spec: str, task: Task) -> HuggingFace:
    """The model that a name stands for, with the classes of a task of one text or two, none of them too long."""
    asked = vary(spec, pair="true") if task.kind == "pair" else spec
    model = build_from_spec(asked, task.labels)
    check_lengths(model, task)
    return model


_held: dict[str, OwnHead] = {}  # models of this process that their files don't make again


def hold_model(model: Any) -> str:
    """Keep a classifier in this process, and the name by which `build_from_spec` finds it here."""
    assert isinstance(model, OwnHead)
    name = model.fingerprint()
    _held[name] = model
    return vary(model.spec, wrapped=name)


def _made_of_held(spec: str, labels: tuple[str, ...]) -> HuggingFace:
    settings = settings_of(spec)
    model = _held[settings.wrapped]
    order = class_order(model.labels, labels or model.labels, settings.labels, model.who)
    parts = LoadedParts(copy.deepcopy(model.base), model.tokenizer, model.place)
    own = tuple(model.order[place] for place in order)
    return with_proof(OwnHead(spec, parts, labels or model.labels, own, model.column))


def restore_saved(folder: Path, facts: dict[str, Any]) -> HuggingFace:
    """What `save` wrote, with the facts that lie beside it."""
    return _made(facts["model"], in_folder(str(folder), folder), tuple(facts["labels"]), kept=True)


def wrap_classifier(
    base: Any, tokenizer: Any, labels: Sequence[str] = (), label: str = "", truncate: bool = False
) -> HuggingFace:
    """A classifier of transformers in memory, and its tokenizer, both as they are now: a copy is taken.

    `labels` names its classes in the order of its outputs; of a model that gives several at once, `label` is asked.
    """
    base = getattr(base, "_orig_mod", base)  # torch.compile: what it runs, as it would compile every look at attention
    if hasattr(base, "merge_and_unload"):  # PEFT: an adapter beside its model
        base = copy.deepcopy(base).merge_and_unload()
    name = type(base).__name__
    _check_module(base, name)
    base = copy.deepcopy(base)
    if labels:
        _rename(base.config, labels, name)
    config = base.config.to_dict() | {"architectures": [f"{name.removesuffix(CLASSIFIER)}{CLASSIFIER}"]}
    precision = str(base.dtype).removeprefix("torch.")
    asked = {"label": label, "truncate": "true" if truncate else "", "dtype": precision}
    known = {key: value for key, value in asked.items() if value and value not in ("float32", "float64")}
    spec = str(Spec(f"hf:{name}", known))
    check_model_files(ModelFiles(name, "", Path(), config, {}), settings_of(spec))
    check_tokenizer(tokenizer, name)
    classes, column = outputs_of(config, label, name)
    order = tuple(range(len(classes)))
    return with_proof(OwnHead(spec, LoadedParts(base, tokenizer, ""), classes, order, column))


def _check_module(base: Any, name: str) -> None:
    """Refuse, each in one sentence, what is no classifier of transformers."""
    if not hasattr(base, "config") or not hasattr(base, "get_input_embeddings"):
        raise UsageError(
            f"{name} is no model of transformers: give one that AutoModelForSequenceClassification makes, or write an "
            "adapter (exegete.OwnModel)"
        )
    other = next((said for ending, said in OTHER_HEADS.items() if name.endswith(ending)), None)
    if other is not None:
        raise UsageError(
            f"{name} {other}, and what is explained here is the class of a text: give a sequence classifier, or train "
            "a head on its states, as exegete train --model hf:FOLDER:head=mean does"
        )
    if any("quantized" in type(part).__module__ for part in base.modules()):
        raise UsageError(f"the layers of {name} are quantised, and gradients don't pass them: wrap it as it was before")


def _rename(config: Any, labels: Sequence[str], name: str) -> None:
    """Other names for a model's classes; of one output, for its two."""
    count = int(config.num_labels)
    if isinstance(labels, str) or len(labels) != max(2, count) or len(set(map(str, labels))) != len(labels):
        raise UsageError(f"{name} has {max(2, count)} classes: give labels= as many names, in their order, none twice")
    config.id2label = dict(enumerate(map(str, labels if count > 1 else labels[1:])))
    config.label2id = {label: place for place, label in config.id2label.items()}


def _made(spec: str, source: ModelFiles, labels: tuple[str, ...], kept: bool) -> HuggingFace:
    settings = settings_of(spec)
    head = head_of(source, settings)
    parts = load_parts(source, settings, head)
    if head == "own":
        theirs, column = outputs_of(source.config, settings.label, source.name)
        order = class_order(theirs, labels or theirs, settings.labels, source.name)
        return with_proof(OwnHead(spec, parts, labels or theirs, order, column))
    theirs = tuple(source.ours["labels"]) if kept else output_names(source.config)
    return with_proof(_with_our_head(vary(spec, head=head), parts, labels or theirs, source if kept else None))


def _with_our_head(spec: str, parts: LoadedParts, labels: tuple[str, ...], kept: ModelFiles | None) -> HuggingFace:
    kind = PooledHead if settings_of(spec).head == "attention" else OurHead
    model = kind(spec, parts, labels, trained=kept is not None)
    if kept is not None:
        theirs = tuple(kept.ours["labels"])
        order = class_order(theirs, labels, settings_of(spec).labels, kept.name)
        model.load_state_dict(model.state_dict() | reorder_head(load_file(kept.folder / HEAD), order))
    return model


def with_proof(model: HuggingFace) -> HuggingFace:
    """A model at rest that has shown that its attention is read and rewritten."""
    model.eval()
    model.proof = proven(model)
    return model
