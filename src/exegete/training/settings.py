"""Settings of a training (PROTOCOLS 1.1, 1.4)."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class TrainingSettings(BaseModel):
    """Adam with AMSGrad, attention in a group of its own, the best epoch kept by a measure on dev."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    epochs: int = Field(8, ge=1)
    patience: int = Field(3, ge=1)  # stop after so many epochs without a better dev score
    metric: Literal["auc", "accuracy", "loss"] = "auc"  # on dev; loss is what training minimises
    batch: int = Field(32, ge=1)  # examples, all of one length
    budget: int = Field(16_384, ge=1)  # words that a batch may hold
    lr: float = Field(1e-3, gt=0)
    weight_decay: float = Field(1e-5, ge=0)  # L2, added to the gradient, as in classical Adam
    attention_lr: float | None = Field(None, gt=0)  # the same lr unless given
    attention_decay: float = Field(0.0, ge=0)
    clip: float | None = Field(None, gt=0)  # the largest norm of a gradient
    warmup: int = Field(0, ge=0)  # steps in which the learning rate grows to lr; afterwards it falls as 1/√step
    smoothing: float = Field(0.0, ge=0, lt=1)  # of the gold labels
    class_weights: bool = False  # weigh classes by the inverse of their frequency in train


# What differs by default where a task is not a classification of one text: no AUC of many answers, none of words.
BY_KIND: dict[str, dict[str, Any]] = {
    "pair": {"metric": "accuracy"},
    "translation": {"metric": "loss", "batch": 64, "clip": 1.0, "smoothing": 0.1},
}
