"""Objects: what people have in memory (a task, a trained or wrapped model, scores), as names that a run can rebuild.

A run knows its tasks and models by name. An object is deposited in the run's folder under its content's hash, and the
name is that of the deposit: a parquet file (`file:RUN/inputs/texts-HASH.parquet`), a checkpoint folder. A model that
was trained here keeps its own name, and its weights lie where the run looks before it trains: so more of its kind can
be trained beside it. A wrapped module can't be made again elsewhere; it is asked in this process, as it is.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import polars as pl
import torch
from torch import nn

from exegete.base.arguments import show_value
from exegete.base.errors import ExegeteError, UsageError
from exegete.base.memo import key_of
from exegete.base.names import Spec, parse, vary
from exegete.base.parquet import write_parquet
from exegete.base.progress import Progress, silent
from exegete.models.capabilities import Writing
from exegete.models.own.adapter import OwnModel
from exegete.models.own.registry import hold_adapter
from exegete.models.settings import FROM_THE_HUB, HUB
from exegete.runs.engine import engine_of
from exegete.runs.engine.contract import Engine
from exegete.runs.study import Study
from exegete.runs.training import INPUTS, evaluate_checkpoint, fitting, train_model
from exegete.tasks.catalogue import load_task, verbatim_spec
from exegete.tasks.example import Task
from exegete.tasks.files import name_of_texts
from exegete.tasks.memory import MemoryTask, task_of_lists
from exegete.training.checkpoint import (
    Checkpoint,
    is_checkpoint,
    is_trained,
    load_checkpoint,
    save_checkpoint,
    text_settings,
)
from exegete.training.pretrained import GivenModel, hold_pretrained, load_pretrained, wrap_pretrained

if TYPE_CHECKING:
    from exegete.models.huggingface.prompts import Prompt


@dataclass(frozen=True)
class Loaded(Checkpoint):
    """A model that was read from a folder, which is its name."""

    folder: Path = Path()


@dataclass(frozen=True)
class Trained(Checkpoint):
    """A model that was trained here by its name: more of its kind can be."""


@dataclass(frozen=True)
class Wrapped:
    """A module of the user's own with its adapter, held in this process; a task gives it words and classes."""

    spec: str
    task: Task | None = field(default=None, repr=False)


SEEN, PROOF, SAME = 200, 32, 1e-4  # texts of a split that are looked at, those that are compared, and how closely
AnyModel = str | Path | Checkpoint | Wrapped
AnyTask = str | Task | Sequence[str]  # a list: texts without labels


def load_object(folder: str | Path, prompt: "Prompt | str | Path | None" = None) -> Loaded | GivenModel:
    """Read a checkpoint folder, or a model of the hub by its name; a language model with its prompt, if given."""
    if prompt is not None:
        folder = prompted(str(folder), prompt)
    if isinstance(folder, str) and folder.startswith(HUB):
        return load_pretrained(folder)
    if not isinstance(folder, str | Path) or not Path(folder).is_dir():
        train = f"train one with `exegete train … --out {folder}`"
        raise ExegeteError(f"there is no checkpoint folder {folder}: {train}; {FROM_THE_HUB}")
    return Loaded(**vars(load_checkpoint(Path(folder))), folder=Path(folder))


def prompted(model: str, prompt: "Prompt | str | Path") -> str:
    """The name of a language model of Hugging Face that is asked for classes by a prompt."""
    from exegete.models.huggingface.prompts import Prompt, spelled_template

    if not model.startswith(HUB):
        raise UsageError(
            f"a prompt is for a language model of Hugging Face, hf:NAME, and not for '{model}': leave it out"
        )
    return vary(model, prompt=prompt.spelled() if isinstance(prompt, Prompt) else spelled_template(str(prompt)))


class ClassifierOptions(NamedTuple):
    """What is said of a classifier of transformers beside itself."""

    tokenizer: Any = None
    labels: Sequence[str] = ()  # its classes in the order of its outputs; those of its config, unless given
    label: str = ""  # of one that gives several labels at once: the one that is asked about
    truncate: bool = False  # texts are cut to what it reads
    prompt: "Prompt | None" = None  # how a language model is asked for a class


PLAIN = ClassifierOptions()


def wrap_module(
    module: Any, adapter: Any = None, task: AnyTask | None = None, said: ClassifierOptions = PLAIN
) -> Wrapped | GivenModel:
    """Hold a module with its adapter, a class (made with the module) or an object; or a transformers' classifier."""
    if is_pipeline(module):
        if "TextClassificationPipeline" not in {kind.__name__ for kind in type(module).__mro__}:
            raise UsageError(
                f"a {type(module).__name__} does something else than give a text one of its model's classes: if you "
                "mean the model, give exegete.wrap(pipeline.model, tokenizer=pipeline.tokenizer)"
            )
        cuts = bool(getattr(module, "_preprocess_params", {}).get("truncation", False))
        tokenizer = module.tokenizer if said.tokenizer is None else said.tokenizer
        module, said = module.model, said._replace(tokenizer=tokenizer, truncate=said.truncate or cuts)
    if said.tokenizer is not None:
        return _wrapped_pretrained(module, adapter, task, said)
    if said != PLAIN:
        raise UsageError("labels, label, truncate and prompt are for a model of transformers: give its tokenizer, too")
    own = adapter(module) if isinstance(adapter, type) and issubclass(adapter, OwnModel) else adapter or module
    if not isinstance(own, OwnModel):
        what = f"{type(module).__name__} needs an adapter" if adapter is None else f"{adapter!r:.60} is no adapter"
        raise UsageError(
            f"{what}: write a subclass of exegete.OwnPooling or exegete.OwnModel and give it as adapter=; of a model "
            "of transformers, give its tokenizer as tokenizer="
        )
    spec = str(Spec("own", {"wrapped": hold_adapter(own), "trained": "true"}))
    return Wrapped(spec, None if task is None else task_itself(task))


def is_pipeline(thing: object) -> bool:
    """Whether something is a pipeline of transformers: a model with its tokenizer."""
    kinds = {kind.__name__ for kind in type(thing).__mro__ if kind.__module__.startswith("transformers.")}
    return "Pipeline" in kinds


def _wrapped_pretrained(module: Any, adapter: Any, task: AnyTask | None, said: ClassifierOptions) -> GivenModel:
    if adapter is not None:
        raise UsageError("give an adapter, or the tokenizer of a model of transformers, not both")
    found = wrap_pretrained(module, *said)
    return found if task is None else found.relabelled(task_itself(task).labels)


def train_by_name(
    model: str, task: AnyTask, seed: int, training: str, out: Path | None, progress: Progress = silent
) -> Trained:
    """Train by name; without a folder, in memory."""
    if not isinstance(model, str):
        raise UsageError(
            f"a model is trained by its name with settings, as 'bilstm:hidden=64', not from {describe_object(model)}"
        )
    if out is not None:
        return Trained(**vars(train_model(task_for(model, task), model, seed, training, out, progress)[0]))
    with TemporaryDirectory() as folder:
        return train_by_name(model, task, seed, training, Path(folder) / "checkpoint", progress)


def model_itself(model: Any) -> Any:
    """A model as all else takes it: a pipeline of transformers is wrapped."""
    return wrap_module(model) if is_pipeline(model) else model


def checkpoint_of(model: AnyModel, task: AnyTask | None = None, progress: Progress = silent) -> Checkpoint:
    """A model that can be asked, of any kind; one that is only named is trained on the task."""
    model = model_itself(model)
    if isinstance(model, Checkpoint):
        return model
    if isinstance(model, str | Path) and (is_checkpoint(Path(model)) or task is None or _comes_trained(model)):
        return load_object(model)
    if isinstance(model, Wrapped):
        task, model = task or model.task, model.spec
    if task is None:
        raise UsageError("a wrapped module has no words or classes yet: name them with exegete.wrap(…, task=task)")
    return train_by_name(name_of_model(model, task, Path()), task, 0, "", None, progress)


def _comes_trained(model: str | Path) -> bool:
    return str(model).startswith(HUB) and is_trained(str(model))


def checkpoint_for(model: AnyModel, task: Task, progress: Progress = silent) -> Checkpoint:
    """The checkpoint of a model, where it fits the task."""
    found = checkpoint_of(model, task, progress)
    if found.data_hash == task.hash:
        return found
    return evaluate_checkpoint(fitting(found, task, Path(getattr(found, "folder", "the model"))), task)


def task_itself(task: AnyTask) -> Task:
    """A task, read if it is only named, made if it is a list of texts."""
    if is_texts(task):
        return task_of_lists({"text": task}, "texts", {})
    return load_task(name_of_task(task, Path())) if not isinstance(task, Task) else task


def is_texts(task: object) -> TypeGuard[Sequence[str]]:
    """Whether something is a list of texts, of which nobody said their classes."""
    return isinstance(task, list | tuple) and len(task) > 0 and all(isinstance(text, str) for text in task)


def task_for(model: AnyModel, task: AnyTask) -> Task:
    """A task, read if it is only named; its texts as a model reads them, where they can be read again."""
    read: tuple[str, bool] | None = None
    task = task_itself(task) if is_texts(task) else task
    if isinstance(model, Checkpoint):
        read = model.tokenizer, model.lower
    elif isinstance(model, str | Path):
        read = text_settings(str(model))
    if read is not None and isinstance(task, MemoryTask):
        return task.as_written(*read)
    return task_itself(verbatim_spec(task, *read) if read is not None and isinstance(task, str) else task)


def model_named(name: str) -> str | None:
    """The model that a command's argument names: of the hub, of one's own, or a folder that holds one; else None."""
    folder = Path(name).expanduser()
    if name.startswith((HUB, "own:")) or is_checkpoint(folder):
        return name
    return f"{HUB}{name}" if (folder / "config.json").is_file() else None


def task_of_texts(model: str, texts: str | None) -> str:
    """The task of a command's second argument: a file of texts, or a task by its name."""
    if texts is None:
        raise UsageError(f"give the texts to ask {model} about: exegete audit {model} reviews.csv")
    path = Path(texts).expanduser()
    return name_of_texts(path) if path.is_file() else texts


def name_of_task(task: object, run: Path) -> str:
    """The name by which a run in this folder finds a task again."""
    if is_texts(task):
        task = task_itself(task)
    if isinstance(task, MemoryTask):
        return task.deposited(run / INPUTS)
    if isinstance(task, str):
        return task
    if isinstance(task, Task):
        return task.name
    raise UsageError(f"a task is a name, or what exegete.task(…) gives, not {describe_object(task)}")


def name_of_model(model: object, task: AnyTask, run: Path) -> str:
    """The name by which a run in this folder finds a model again."""
    check_model(model)
    if isinstance(model, str | Path):
        return str(model)
    if isinstance(model, Wrapped | Loaded):
        return model.spec if isinstance(model, Wrapped) else str(model.folder)
    assert isinstance(model, Checkpoint)
    if isinstance(model, GivenModel) and not model.in_memory:
        return model.spec
    by_name = is_by_name(model, task)
    place, other = _deposited(model, by_name, task, run / INPUTS)
    if isinstance(model, GivenModel):  # there its classes are matched to those of a task, as the hub's are
        return hold_pretrained(model.model) if other else str(Spec(f"{HUB}{place}", parse(model.spec).settings))
    if other:
        raise ExegeteError(f"{model.model.spec} can't be handed to a run: {other}")
    return model.model.spec if by_name else str(place)


def check_model(model: object) -> None:
    """A model is a name, a folder, or an object of ours."""
    if isinstance(model, nn.Module) and hasattr(model, "config"):
        raise UsageError(
            f"{type(model).__name__} needs its tokenizer: give exegete.wrap(model, tokenizer=tokenizer), or a pipeline"
        )
    if isinstance(model, nn.Module):
        raise UsageError(f"{type(model).__name__} needs an adapter: give exegete.wrap(module, adapter=…) instead")
    if not isinstance(model, AnyModel):
        raise UsageError(
            f"a model is a name, a checkpoint folder, or what load, train or wrap give, not {describe_object(model)}"
        )


def is_by_name(model: object, task: AnyTask) -> bool:
    """Whether a model was trained here, on this task: then its name says all of it."""
    if not isinstance(model, Trained):
        return False
    if isinstance(task, Task):
        return model.data_hash == task.hash
    return isinstance(task, str) and model.task in (task, verbatim_spec(task, model.tokenizer, model.lower))


def _deposited(model: Checkpoint, by_name: bool, task: AnyTask, folder: Path) -> tuple[Path, str]:
    """Where a model lies in a run's folder, or why what is read from there is another one.

    Proof: the same logits of some of the user's own texts, those that are longest in words and in pieces among them.
    """
    content = key_of(spec=model.model.spec, at=model.model.fingerprint())
    place = folder / (f"train-{model.key}" if by_name else f"model-{content}")
    if is_checkpoint(place):
        return place, ""
    save_checkpoint(place, model)
    other = _otherwise(model, place, task_for(model, task))
    if other:
        shutil.rmtree(place)
    return place, other


def _otherwise(model: Checkpoint, place: Path, task: Task) -> str:
    """How the model of a folder predicts otherwise than the one that was written there; nothing where it doesn't."""
    if isinstance(model.model, Writing):  # its weights are compared when they are read, and its code is ours
        return ""
    examples = [example for split in ("test", "dev") for example in task.split(split)[:SEEN]]
    by_words = sorted(examples, key=lambda e: -len(e.all_words))
    by_pieces = sorted(examples, key=lambda e: -int(model.model.collate([e]).cost.sum()) / len(e.all_words))
    some = list({e.id: e for e in (*by_words[:8], *by_pieces[:8], *examples)}.values())[:PROOF]
    try:
        back = load_checkpoint(place).model
    except ExegeteError as error:
        return str(error)
    with torch.no_grad():
        one, other = (torch.cat([each.logits(each.collate([e])) for e in some]).float() for each in (model.model, back))
    apart = float((one - other).abs().max()) if one.shape == other.shape else torch.inf
    close = apart <= SAME * max(1.0, float(one.abs().max()))
    return "" if close else f"read again from its files, it predicts otherwise (logits differ by up to {apart:.2g})"


def name_of_scores(scores: Any, run: Path) -> str:
    """The file with scores of another tool: as named, or a frame's deposit."""
    if isinstance(scores, str | Path):
        return str(scores)
    if not hasattr(scores, "columns"):
        raise UsageError(f"scores are frames or files with example, token and score, not {describe_object(scores)}")
    frame = (
        scores if isinstance(scores, pl.DataFrame) else pl.DataFrame({c: scores[c].tolist() for c in scores.columns})
    )
    path = run / INPUTS / f"scores-{key_of(rows=frame.write_csv())}.parquet"
    if not path.is_file():
        write_parquet(path, frame)
    return str(path)


def describe_object(thing: object) -> str:
    """What something is, for errors."""
    return f"a {type(thing).__name__} ({show_value(thing)})"


def run_folder(out: str | Path | None, stem: str, *things: object) -> Path:
    """The run folder: as named, or of its own for these things."""
    if out is not None:
        return Path(out)
    return Path("runs") / f"{stem}_{key_of(things=[_content(thing) for thing in things])[:6]}"


def _content(thing: object) -> str:
    if isinstance(thing, Task):
        return f"{thing.name} {thing.hash}"
    return f"{thing.model.spec} {thing.weights_hash}" if isinstance(thing, Checkpoint) else repr(thing)


def engine_for(study: Study, engine: str | Engine | None = None, workers: int | None = None) -> Engine:
    """The engine that is named, here or in the study; what can't be made again elsewhere is done in this process."""
    held = any("wrapped" in parse(model).settings for model in study.models)
    typed = any(type(e).__module__ == "__main__" for e in study.built_experiments().values())
    named = engine or study.engine
    if not held and not typed:
        return engine_of(named, workers)
    if isinstance(named, str) and named != "local":
        what = "a wrapped module" if held else "an experiment of this script"
        raise UsageError(f"{what} lives in this process and can't be sent to {named}: put it into a file, or run here")
    return engine_of("local", 1)
