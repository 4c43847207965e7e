"""Make: from a name to a model of transformers, with its own head or with one of ours, proven."""

from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from exegete.base.errors import UsageError
from exegete.base.names import varied
from exegete.models.huggingface.classifier import OwnHead
from exegete.models.huggingface.heads import OurHead, PooledHead, reordered
from exegete.models.huggingface.labels import order_of
from exegete.models.huggingface.load import LoadedParts, check_tokenizer, loaded
from exegete.models.huggingface.model import HEAD, HuggingFace, check_lengths
from exegete.models.huggingface.proof import proven
from exegete.models.huggingface.source import CLASSIFIER, ModelFiles, check, found, head_of, in_folder, settings_of
from exegete.models.settings import HuggingFaceSettings
from exegete.tasks.example import Task


def made(spec: str, labels: tuple[str, ...] = ()) -> HuggingFace:
    """The model that a name stands for; its classes are its own unless a task's are given."""
    source = found(spec)
    return _made(spec, source, labels, kept=bool(source.ours) and settings_of(spec).head is None)


def made_for(spec: str, task: Task) -> HuggingFace:
    """The same for a task: its classes, one text or two, none of them too long."""
    asked = varied(spec, pair="true") if task.kind == "pair" else spec
    model = made(asked, task.labels)
    check_lengths(model, [example for split in task.splits.values() for example in split])
    return model


def restored(folder: Path, facts: dict[str, Any]) -> HuggingFace:
    """What `save` wrote, with the facts that lie beside it."""
    return _made(facts["model"], in_folder(str(folder), folder), tuple(facts["labels"]), kept=True)


def wrapped(base: Any, tokenizer: Any) -> HuggingFace:
    """A classifier of transformers in memory, and its tokenizer."""
    name = type(base).__name__
    if not hasattr(base, "config") or not name.endswith(CLASSIFIER):
        raise UsageError(
            f"{name} has no classifier that we know: give a model that AutoModelForSequenceClassification makes, or "
            "write an adapter (exegete.OwnModel)"
        )
    config = base.config.to_dict()
    check(ModelFiles(name, "", Path(), config | {"architectures": [name]}, {}), HuggingFaceSettings())
    check_tokenizer(tokenizer, name)
    labels = tuple(str(base.config.id2label[place]) for place in range(base.config.num_labels))
    order = tuple(range(len(labels)))
    return with_proof(OwnHead(f"hf:{name}", LoadedParts(base, tokenizer, ""), labels, order))


def _made(spec: str, source: ModelFiles, labels: tuple[str, ...], kept: bool) -> HuggingFace:
    settings = settings_of(spec)
    head = head_of(source, settings)
    parts = loaded(source, settings, head)
    theirs = tuple(source.ours["labels"]) if kept and head != "own" else source.classes
    if head == "own":
        order = order_of(theirs, labels or theirs, settings.labels, source.name)
        return with_proof(OwnHead(spec, parts, labels or theirs, order))
    return with_proof(_with_our_head(varied(spec, head=head), parts, labels or theirs, source if kept else None))


def _with_our_head(spec: str, parts: LoadedParts, labels: tuple[str, ...], kept: ModelFiles | None) -> HuggingFace:
    kind = PooledHead if settings_of(spec).head == "attention" else OurHead
    model = kind(spec, parts, labels, trained=kept is not None)
    if kept is not None:
        theirs = tuple(kept.ours["labels"])
        order = order_of(theirs, labels, settings_of(spec).labels, kept.name)
        model.load_state_dict(model.state_dict() | reordered(load_file(kept.folder / HEAD), order))
    return model


def with_proof(model: HuggingFace) -> HuggingFace:
    """A model at rest that has shown that its attention is read and rewritten."""
    model.eval()
    model.proof = proven(model)
    return model
