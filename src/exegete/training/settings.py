"""Settings of a training (Jain & Wallace 2019; of pretrained models, Devlin et al. 2019, appendix A.3)."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from exegete.models.settings import HUB


class TrainingSettings(BaseModel):
    """Adam with AMSGrad or AdamW, attention in a group of its own, the best epoch kept by a measure on dev."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    epochs: int = Field(8, ge=1)
    patience: int = Field(3, ge=1)  # stop after so many epochs without a better dev score
    metric: Literal["auc", "accuracy", "loss"] = "auc"  # on dev; loss is what training minimises
    batch: int = Field(32, ge=1)  # examples, all of one length
    budget: int = Field(16_384, ge=1)  # words that a batch may hold
    optimiser: Literal["adam", "adamw"] = "adam"  # adamw: decay apart from the gradient, none of biases and norms
    lr: float = Field(1e-3, gt=0)
    head_lr: float | None = Field(None, gt=0)  # of a pretrained model: of what is new in it; the same lr unless given
    weight_decay: float = Field(1e-5, ge=0)  # adam: L2, added to the gradient, as in its first version
    attention_lr: float | None = Field(None, gt=0)  # the same lr unless given
    attention_decay: float = Field(0.0, ge=0)
    clip: float | None = Field(None, gt=0)  # the largest norm of a gradient
    warmup: int = Field(0, ge=0)  # steps in which the learning rate grows to lr; afterwards it falls
    warmup_share: float = Field(0.0, ge=0, lt=1)  # the same as a share of all steps
    schedule: Literal["root", "linear"] = "root"  # falls as 1/√step after warming up; or on a line, to 0 at the end
    smoothing: float = Field(0.0, ge=0, lt=1)  # of the gold labels
    class_weights: bool = False  # weigh classes by the inverse of their frequency in train
    short_first: bool = False  # every epoch goes from the shortest texts to the longest


# How a pretrained transformer is trained further: it has learnt already, and forgets under large steps.
FINE_TUNING: dict[str, Any] = {
    "epochs": 2,
    "patience": 2,
    "optimiser": "adamw",
    "lr": 1e-4,
    "head_lr": 1e-3,
    "weight_decay": 0.01,
    "attention_decay": 0.01,
    "clip": 1.0,
    "warmup_share": 0.06,
    "schedule": "linear",
}

# What differs by default where a task is not a classification of one text: no AUC of many answers, none of words.
BY_KIND: dict[str, dict[str, Any]] = {
    "pair": {"metric": "accuracy"},
    "translation": {"metric": "loss", "batch": 64, "clip": 1.0, "smoothing": 0.1},
}


def by_default(kind: str, model: str) -> dict[str, Any]:
    """What differs for a kind of task and a model, by its name."""
    return BY_KIND.get(kind, {}) | (FINE_TUNING if model.startswith(HUB) else {})
