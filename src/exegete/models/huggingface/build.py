"""Make: from a name to a model of transformers, with its own head or with one of ours, proven."""

import copy
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

from safetensors.torch import load_file

from exegete.base.errors import UsageError
from exegete.base.names import Spec, parse, vary
from exegete.models.huggingface.causal import Causal, LanguageModel, PromptClassifier
from exegete.models.huggingface.classifier import OwnHead
from exegete.models.huggingface.heads import OurHead, PooledHead, reorder_head
from exegete.models.huggingface.labels import class_order, output_names, outputs_of
from exegete.models.huggingface.load import LoadedParts, check_tokenizer, load_parts
from exegete.models.huggingface.model import HEAD, HuggingFace, check_lengths
from exegete.models.huggingface.prompts import (
    FilledPrompt,
    Prompt,
    default_prompt,
    filled,
    read_prompt,
    with_shots,
)
from exegete.models.huggingface.proof import proven
from exegete.models.huggingface.source import (
    CLASSIFIER,
    LANGUAGE_MODEL,
    OTHER_HEADS,
    ModelFiles,
    check_model_files,
    find_model_files,
    head_of,
    in_folder,
    predicts_words,
    settings_of,
)
from exegete.tasks.example import Task


def build_from_spec(spec: str, labels: tuple[str, ...] = (), prompt: Prompt | None = None) -> HuggingFace:
    """The model that a name stands for; its classes are its own unless a task's are given.

    A language model without classes predicts the next piece; with them it is asked in words, by `prompt`.
    """
    if settings_of(spec).wrapped in _held:
        return _made_of_held(spec, labels)
    source = find_model_files(spec)
    if head_of(source, settings_of(spec)) == "lm":
        return _language_model(spec, source, labels, prompt)
    return _made(spec, source, labels, kept=bool(source.ours) and settings_of(spec).head is None)


def build_for_task(spec: str, task: Task) -> HuggingFace:
    """The model that a name stands for, with the classes of a task of one text or two, none of them too long."""
    if _is_language_model(spec):
        model: HuggingFace = _asked_in_words(spec, task)
        check_lengths(model, task)
        return model
    asked = vary(spec, pair="true") if task.kind == "pair" else spec
    model = build_from_spec(asked, task.labels)
    check_lengths(model, task)
    return model


def _is_language_model(spec: str) -> bool:
    if (name := settings_of(spec).wrapped) in _held:
        return isinstance(_held[name], Causal)
    return predicts_words(spec)


def _asked_in_words(spec: str, task: Task) -> HuggingFace:
    """A language model with a prompt for the classes of a task: its own, or one that names them."""
    if task.kind == "pair":
        raise UsageError(
            f"'{task.name}' has two texts, and a language model is asked about one: write both as one text, or take a "
            "classifier"
        )
    written = settings_of(spec).prompt
    prompt = with_shots(read_prompt(written), task) if written else None
    return build_from_spec(spec, task.labels, prompt)


_held: dict[str, OwnHead | Causal] = {}  # models of this process that their files don't make again


def hold_model(model: Any) -> str:
    """Keep a classifier or a language model in this process, and the name by which `build_from_spec` finds it here."""
    assert isinstance(model, OwnHead | Causal)
    name = model.fingerprint()
    _held[name] = model
    return vary(model.spec, wrapped=name)


def _made_of_held(spec: str, labels: tuple[str, ...]) -> HuggingFace:
    settings = settings_of(spec)
    model = _held[settings.wrapped]
    if isinstance(model, Causal):
        return model.relabelled(labels) if labels and labels != model.labels else model
    order = class_order(model.labels, labels or model.labels, settings.labels, model.who)
    parts = LoadedParts(copy.deepcopy(model.base), model.tokenizer, model.place)
    own = tuple(model.order[place] for place in order)
    return with_proof(OwnHead(spec, parts, labels or model.labels, own, model.column))


def restore_saved(folder: Path, facts: dict[str, Any]) -> HuggingFace:
    """What `save` wrote, with the facts that lie beside it."""
    source = in_folder(str(folder), folder)
    if head_of(source, settings_of(facts["model"])) == "lm":
        known = facts.get("prompt")
        return _language_model(facts["model"], source, tuple(facts["labels"]) if known else ())
    return _made(facts["model"], source, tuple(facts["labels"]), kept=True)


def wrap_classifier(
    base: Any,
    tokenizer: Any,
    labels: Sequence[str] = (),
    label: str = "",
    truncate: bool = False,
    prompt: Prompt | str | Path | None = None,
) -> HuggingFace:
    """A classifier or a language model of transformers in memory, and its tokenizer, as they are now: a copy is taken.

    `labels` names its classes in the order of its outputs; of a model that gives several at once, `label` is asked. A
    language model is asked for the next piece, or by `prompt` for one of the classes that it answers with.
    """
    base = getattr(base, "_orig_mod", base)  # torch.compile: what it runs, as it would compile every look at attention
    if hasattr(base, "merge_and_unload"):  # PEFT: an adapter beside its model
        base = copy.deepcopy(base).merge_and_unload()
    name = type(base).__name__
    _check_module(base, name)
    base = copy.deepcopy(base)
    if has_language_head(base):
        how = prompt if prompt is None or isinstance(prompt, Prompt) else read_prompt(str(prompt))
        return _wrapped_language_model(base, tokenizer, tuple(labels), label, truncate, how)
    if prompt is not None:
        raise UsageError(f"{name} has no language-model head, which a prompt needs: leave the prompt out")
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


def has_language_head(base: Any) -> bool:
    """Whether a model of transformers predicts the next word, by what it is made of."""
    return any(kind.__name__.endswith(LANGUAGE_MODEL) for kind in type(base).__mro__)


def _wrapped_language_model(
    base: Any, tokenizer: Any, labels: tuple[str, ...], label: str, truncate: bool, prompt: Prompt | None
) -> HuggingFace:
    name = type(base).__name__
    if label or (truncate and prompt is None):
        raise UsageError(f"{name} predicts the next word: leave label and truncate out")
    precision = str(base.dtype).removeprefix("torch.")
    known = {} if precision in ("float32", "float64") else {"dtype": precision}
    spec = str(Spec(f"hf:{name}", known | ({"truncate": "true"} if truncate else {})))
    config = base.config.to_dict() | {
        "architectures": [f"{name}{'' if name.endswith(LANGUAGE_MODEL) else 'ForCausalLM'}"]
    }
    check_model_files(ModelFiles(name, "", Path(), config, {}), settings_of(spec))
    check_tokenizer(tokenizer, name)
    return asked_model(spec, LoadedParts(base.eval(), tokenizer, ""), labels, prompt)


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


def _language_model(
    spec: str, source: ModelFiles, labels: tuple[str, ...], prompt: Prompt | None = None
) -> HuggingFace:
    """A language model as it is, or asked for classes in words: by a prompt, or by the one that it was kept with."""
    settings = settings_of(spec)
    parts = load_parts(source, settings, "lm")
    prompt = prompt or (read_prompt(settings.prompt) if settings.prompt and "prompt" not in source.ours else None)
    return asked_model(spec, parts, labels, prompt, source.ours.get("prompt"), tuple(source.ours.get("labels", ())))


def asked_model(
    spec: str,
    parts: LoadedParts,
    labels: tuple[str, ...] = (),
    prompt: Prompt | None = None,
    kept: Mapping[str, Any] | None = None,
    theirs: tuple[str, ...] = (),
) -> Causal:
    """The next piece, or classes by a prompt, or by one that was `kept`, filled in, for the classes `theirs`."""
    who = parse(spec).name
    if kept is not None and prompt is None:
        own = PromptClassifier(spec, parts, theirs, FilledPrompt.read(kept))
        model = with_proof(own).calibrated()
        return model.relabelled(labels) if labels and labels != theirs else model
    if prompt is None and not labels:
        return with_proof(LanguageModel(spec, parts))
    labels = labels or tuple(prompt.answers if prompt else ())
    if not labels:
        raise UsageError(
            f"the prompt of {who} names no answers, and there is no task whose classes they are: write [answers] "
            "in its file, or give a Prompt with answers"
        )
    full = filled(prompt or default_prompt(labels), labels, parts.tokenizer, who, settings_of(spec).labels)
    return with_proof(PromptClassifier(spec, parts, labels, full)).calibrated()


def _with_our_head(spec: str, parts: LoadedParts, labels: tuple[str, ...], kept: ModelFiles | None) -> HuggingFace:
    kind = PooledHead if settings_of(spec).head == "attention" else OurHead
    model = kind(spec, parts, labels, trained=kept is not None)
    if kept is not None:
        theirs = tuple(kept.ours["labels"])
        order = class_order(theirs, labels, settings_of(spec).labels, kept.name)
        model.load_state_dict(model.state_dict() | reorder_head(load_file(kept.folder / HEAD), order))
    return model


Proven = TypeVar("Proven", bound=HuggingFace)


def with_proof(model: Proven) -> Proven:
    """A model at rest that has shown that its attention is read and rewritten; a language model without its prompt."""
    model.eval()
    with model.without_prompt() if isinstance(model, Causal) else nullcontext():
        model.proof = proven(model)
    return model
