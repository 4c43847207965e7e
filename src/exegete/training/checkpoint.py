"""Checkpoint: a trained model as a folder, weights as safetensors and everything else as JSON; never pickle."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from exegete import __version__
from exegete.base.errors import ExegeteError
from exegete.base.files import is_file, read_json, whole_file, whole_folder, write_json
from exegete.base.names import parse
from exegete.models.build import place_model, restore_model
from exegete.models.capabilities import Saving, Trainable, Writing
from exegete.models.contract import Predictor
from exegete.models.ours.module import weights_hash
from exegete.models.settings import HUB, MODELS, OwnSettings
from exegete.tasks.catalogue import verbatim_spec
from exegete.tasks.class_names import name_classes
from exegete.training.fit import State

FORMAT = 1
WEIGHTS, FACTS = "model.safetensors", "checkpoint.json"
STATE = "training.safetensors"


@dataclass(frozen=True)
class Checkpoint:
    """A trained model and how it came to be."""

    model: Trainable
    task: str
    data_hash: str
    seed: int
    training: dict[str, Any]
    metrics: dict[str, Any]  # by split, with the history on dev
    tokenizer: str = "whitespace"
    lower: bool = False
    key: str = ""  # what determined it: settings, data, seed and code

    @property
    def classifier(self) -> Predictor:
        """The model, where a prediction is a class."""
        assert not isinstance(self.model, Writing)
        return self.model

    @property
    def weights_hash(self) -> str:
        """A fingerprint of the weights."""
        return weights_hash(self.model)


FIELDS = tuple(name for name in Checkpoint.__dataclass_fields__ if name != "model")


def is_checkpoint(folder: Path) -> bool:
    """Whether a folder holds a complete checkpoint."""
    return is_file(folder / FACTS)


def is_trained(model: str) -> bool:
    """Whether a model as written is trained already: a checkpoint, an own one with `trained=true`, a hub's classifier.

    There is one of it, whatever the seed, and nothing can be trained anew by its recipe.
    """
    if is_checkpoint(Path(model)):
        return True
    if parse(model).name.startswith(HUB):
        from exegete.models.huggingface.source import comes_trained

        return comes_trained(model)
    settings = MODELS.make(model) if parse(model).name == "own" else None
    return isinstance(settings, OwnSettings) and settings.trained


def is_of_hub(model: str) -> bool:
    """Whether a model as written is one of Hugging Face: by its name, or by what a checkpoint was made of."""
    if not is_checkpoint(Path(model)):
        return parse(model).name.startswith(HUB)
    facts = read_json(Path(model) / FACTS, "checkpoint")
    return isinstance(facts, dict) and str(facts.get("model")).startswith(HUB)


def is_language_model(model: str) -> bool:
    """Whether a model as written is a language model of Hugging Face: it is asked as it is, and never trained here."""
    if not is_of_hub(model):
        return False
    from exegete.models.huggingface.source import predicts_words

    return predicts_words(f"{HUB}{model}" if is_checkpoint(Path(model)) else model)


def as_read(task: str, model: str) -> str:
    """A task with its texts as a model reads them, unless its name says otherwise.

    A checkpoint is given them cut as those that it was trained on, another model of Hugging Face as people wrote them;
    all else is trained on what the task gives.
    """
    known = text_settings(model)
    return task if known is None else verbatim_spec(task, *known)


def text_settings(model: str) -> tuple[str, bool] | None:
    """The tokenizer of the texts that a model reads, and whether they are lower-cased; None: it learns from any."""
    folder = Path(parse(model).name.removeprefix(HUB) if model.startswith(HUB) else model)
    if is_checkpoint(folder):
        facts = read_json(folder / FACTS, "checkpoint")
        known = facts if isinstance(facts, dict) else {}
        return known.get("tokenizer", "whitespace"), known.get("lower", False)
    return ("whitespace", False) if model.startswith(HUB) else None


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write the whole folder, or nothing."""
    model = checkpoint.model
    facts = {name: getattr(checkpoint, name) for name in FIELDS} | {
        "format": FORMAT,
        "exegete": __version__,
        **model.state(),
        "weights_hash": checkpoint.weights_hash,
    }
    with whole_folder(folder, known=FACTS) as beside:
        if isinstance(model, Saving):
            model.save(beside)
        else:
            save_file({k: v.contiguous() for k, v in model.state_dict().items()}, beside / WEIGHTS)
            (beside / WEIGHTS).chmod(0o644)
        write_json(beside / FACTS, facts)


def load_checkpoint(folder: Path) -> Checkpoint:
    """Read a checkpoint; one that is missing, truncated or of another version is one sentence."""
    facts = read_json(folder / FACTS, "checkpoint")
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        made = facts.get("exegete", "an unknown version") if isinstance(facts, dict) else "an unknown version"
        raise ExegeteError(
            f"{folder} was written by exegete {made} in another format: train it again with this one ({__version__})"
        )
    try:
        _check_kinds(facts)
        labels = name_classes(facts["labels"], facts["task"])  # before 0.2 a film review was of class 0 or 1
        model = restore_model(folder, facts | {"labels": labels})
        if not isinstance(model, Saving):
            model.load_state_dict(_load_tensors(folder / WEIGHTS, "checkpoint"))
        checkpoint = Checkpoint(place_model(model.eval()), **{name: facts[name] for name in FIELDS})
    except (KeyError, TypeError, RuntimeError, OSError) as error:
        raise ExegeteError(
            f"the checkpoint at {folder} is damaged ({str(error).splitlines()[0]}): train it again"
        ) from None
    if model.reader.words != tuple(facts["words"]):  # an own model brings its words from a file of its own
        raise ExegeteError(f"the vocabulary of {model.spec} is not the one that {folder} was made with: put it back")
    if checkpoint.weights_hash != facts["weights_hash"]:
        raise ExegeteError(f"the weights at {folder / WEIGHTS} are not those that were saved: train the model again")
    return checkpoint


def _check_kinds(facts: Mapping[str, Any]) -> None:
    """What would be taken for something else: a string has letters as a list has words."""
    for name, kind in {"model": str, "task": str, "wrap": bool}.items():
        if not isinstance(facts[name], kind):
            raise TypeError(f"'{name}' is no {'name' if kind is str else 'truth value'}")
    for name in ("words", "labels"):
        if not isinstance(facts[name], list) or not all(isinstance(word, str) for word in facts[name]):
            raise TypeError(f"'{name}' is no list of words")


def _load_tensors(path: Path, what: str) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise ExegeteError(
            f"the {what} at {path.parent} is damaged: {path.name} can't be read ({error}); remove it and train again"
        ) from None


def save_state(folder: Path, state: State, key: str) -> None:
    """Keep a training's state after an epoch: one file, facts in its header, so that no kill can part them."""
    facts = {name: getattr(state, name) for name in ("epoch", "steps", "best_epoch", "best_score", "history")}
    with whole_file(folder / STATE) as beside:
        save_file(state.tensors, beside, metadata={"facts": json.dumps(facts), "key": key})


def load_state(folder: Path, key: str) -> State | None:
    """The state that a training with this key left behind, or None."""
    path = folder / STATE
    if not path.is_file():
        return None
    tensors = _load_tensors(path, "training state")
    with safe_open(path, framework="pt") as file:
        header = file.metadata() or {}
    return State(**json.loads(header["facts"]), tensors=tensors) if header.get("key") == key else None
