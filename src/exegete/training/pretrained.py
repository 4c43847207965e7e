"""Pretrained: a model that comes trained by its name, or from memory, as a checkpoint that nobody trained here."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from exegete.base.errors import UsageError
from exegete.models.build import place_model
from exegete.models.capabilities import Pretrained, Trainable
from exegete.models.huggingface.source import find_model_files
from exegete.training.checkpoint import FIELDS, Checkpoint, is_trained

if TYPE_CHECKING:
    from exegete.models.huggingface.prompts import Prompt


@dataclass(frozen=True)
class GivenModel(Checkpoint):
    """A model of transformers as it is: its name says all of it, or it was given in memory."""

    in_memory: bool = False

    @property
    def spec(self) -> str:
        """Its name with settings."""
        return self.model.spec

    def relabelled(self, labels: tuple[str, ...]) -> Self:
        """The model with these classes, matched to its own by name."""
        assert isinstance(self.model, Pretrained)
        return replace(self, model=self.model.relabelled(labels))


def load_pretrained(spec: str) -> GivenModel:
    """The classifier that `hf:NAME` stands for; of a folder of ours, with what it was trained on."""
    from exegete.models.huggingface.build import build_from_spec

    if not is_trained(spec):
        raise UsageError(
            f"{spec} has no trained classifier: train one with `exegete train --model {spec} --task TASK --out FOLDER`"
        )
    known = find_model_files(spec).ours
    return _as_it_is(place_model(build_from_spec(spec)), **({name: known[name] for name in FIELDS} if known else {}))


def wrap_pretrained(
    module: Any,
    tokenizer: Any,
    labels: Sequence[str] = (),
    label: str = "",
    truncate: bool = False,
    prompt: "Prompt | None" = None,
) -> GivenModel:
    """A classifier or language model of transformers in memory with its tokenizer, as they are now: a copy is taken."""
    from exegete.models.huggingface.build import wrap_classifier

    return _as_it_is(wrap_classifier(module, tokenizer, labels, label, truncate, prompt), in_memory=True)


def _as_it_is(model: Any, **facts: Any) -> GivenModel:
    unknown: dict[str, Any] = {"task": "", "data_hash": "", "seed": 0, "training": {}, "metrics": {}}
    return GivenModel(model, **(unknown | facts))


def hold_pretrained(model: Trainable) -> str:
    """The name of a model of transformers that lives in this process only."""
    from exegete.models.huggingface.build import hold_model

    return hold_model(model)
