"""Fit: train a model, keep its best epoch, and be able to go on from any epoch with the same result."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NoReturn

import torch
from torch import Tensor

from exegete.base.errors import ExegeteError
from exegete.base.noise import stable_seed
from exegete.base.progress import Progress, silent
from exegete.interventions.contract import bound, renewed
from exegete.models.capabilities import Trainable
from exegete.models.contract import Intervention
from exegete.tasks.batching import batches_of_one_length
from exegete.tasks.example import Example, Task
from exegete.training.evaluation import evaluate, mean_loss
from exegete.training.metrics import Metrics
from exegete.training.objectives import Likelihood, Objective, class_weights
from exegete.training.settings import TrainingSettings

Moves = Literal["all", "attention"]  # what training may change


@dataclass
class State:
    """Where a training stands after an epoch: all that is needed to go on, and nothing else."""

    epoch: int = 0
    steps: int = 0
    best_epoch: int = 0
    best_score: float = -math.inf
    history: list[Metrics] = field(default_factory=list)
    tensors: dict[str, Tensor] = field(default_factory=dict)  # model.*, best.*, optimiser.*


class Fit:
    """One training: a model, its optimiser, and where it stands."""

    def __init__(
        self,
        model: Trainable,
        task: Task,
        settings: TrainingSettings,
        seed: int,
        intervene: Intervention | None = None,
        objective: Objective | None = None,
        moves: Moves = "all",
    ) -> None:
        self.model, self.task, self.settings, self.seed = model, task, settings, seed
        self.intervene = None if intervene is None else bound(intervene, model)
        self.objective, self.moves = objective or _likelihood(task, settings), moves
        self.state = State()

    @cached_property
    def optimiser(self) -> torch.optim.Adam:
        """Made when training begins: torch takes a second to make its first one, and most fits are found trained."""
        return _optimiser(self.model, self.settings, self.moves)

    def run(self, save: Callable[[State], None] | None = None, progress: Progress = silent) -> State:
        """Train until the last epoch or until patience ends; leave the best epoch's weights in the model."""
        while not self.done:
            with _only_attention(self.model) if self.moves == "attention" else nullcontext():
                self._epoch(progress)
            self._judge()
            if save is not None:
                save(self.state)
        self.model.load_state_dict(_named(self.state.tensors, "best"))
        self.model.eval()
        return self.state

    @property
    def done(self) -> bool:
        """Whether there is nothing left to train."""
        return (
            self.state.epoch >= self.settings.epochs
            or self.state.epoch - self.state.best_epoch >= self.settings.patience
        )

    def resume(self, state: State) -> None:
        """Go on from a saved state."""
        self.state = state
        self.model.load_state_dict(_named(state.tensors, "model"))
        _load_optimiser(self.optimiser, _named(state.tensors, "optimiser"))

    def _epoch(self, progress: Progress) -> None:
        train, settings, number = self.task.split("train"), self.settings, self.state.epoch + 1
        shuffle = stable_seed("epoch", self.seed, number)
        batches = list(batches_of_one_length(train, settings.batch, settings.budget, shuffle))
        self.model.train()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(shuffle)  # whatever is random in a model depends on seed and epoch alone
            for done, members in enumerate(batches):
                self._step([train[i] for i in members], number)
                progress(f"epoch {number}", done + 1, len(batches))
        self.model.eval()
        self.state.epoch = number

    def _step(self, examples: Sequence[Example], epoch: int) -> None:
        batch = self.model.collate(examples)
        at = renewed(self.intervene, epoch)
        loss = self.objective(self.model.trace(batch, intervene=at), batch) + self.model.penalty()
        if not bool(loss.isfinite()):
            self._refuse(loss.item(), epoch)
        self.optimiser.zero_grad()
        loss.backward()
        if self.settings.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        self._set_rates()
        self.optimiser.step()
        self.state.steps += 1

    def _set_rates(self) -> None:
        """lr · min(t/w, √(w/t)) at step t with w steps of warming up (Vaswani et al. 2017, equation 3, peak at lr)."""
        settings = self.settings
        t, w = self.state.steps + 1, settings.warmup
        factor = min(t / w, math.sqrt(w / t)) if w else 1.0
        rates = (settings.lr, settings.attention_lr or settings.lr)
        for group, rate in zip(self.optimiser.param_groups, rates, strict=True):
            group["lr"] = rate * factor

    def _refuse(self, loss: float | None, epoch: int) -> NoReturn:
        lower = f"lr={self.settings.lr / 10:g}"
        raise ExegeteError(f"the loss became {loss} in epoch {epoch}: lower the learning rate, for example {lower}")

    def _judge(self) -> None:
        """Score the epoch on dev and remember it if it is the best so far."""
        dev = self.task.split("dev")
        metrics = evaluate(self.model, dev, self.intervene)
        if not math.isfinite(metrics["loss"] or 0.0):
            self._refuse(metrics["loss"], self.state.epoch)
        if self.settings.metric == "loss":
            metrics["objective"] = mean_loss(self.model, dev, self.objective, self.intervene)
        score = -(metrics["objective"] or 0.0) if self.settings.metric == "loss" else metrics[self.settings.metric]
        if score is None and self.task.kind == "translation":
            raise ExegeteError(f"{self.settings.metric} is of classes, and a translation has none: choose metric=loss")
        if score is None:
            raise ExegeteError(
                f"{self.settings.metric} is undefined on dev: it needs examples of two classes; add some, or choose "
                "metric=accuracy"
            )
        self.state.history.append(metrics)
        if score > self.state.best_score:
            self.state.best_score, self.state.best_epoch = score, self.state.epoch
            self.state.tensors |= _copies("best", self.model.state_dict())
        self.state.tensors |= _copies("model", self.model.state_dict()) | _copies(
            "optimiser", _optimiser_tensors(self.optimiser)
        )


def _likelihood(task: Task, settings: TrainingSettings) -> Likelihood:
    if settings.class_weights and not task.labels:
        raise ExegeteError("class_weights are for classes, and a translation has none: leave them out")
    weights = class_weights(task.split("train"), len(task.labels)) if settings.class_weights else None
    return Likelihood(weights, settings.smoothing)


@contextmanager
def _only_attention(model: Trainable) -> Iterator[None]:
    """Inside, only what decides the weights has gradients: what doesn't move needs none, and they are dear."""
    own = {id(p) for p in model.attention_parameters()}
    still = [p for p in model.parameters() if id(p) not in own and p.requires_grad]
    for p in still:
        p.requires_grad_(False)
    try:
        yield
    finally:
        for p in still:
            p.requires_grad_(True)


def _optimiser(model: Trainable, settings: TrainingSettings, moves: Moves) -> torch.optim.Adam:
    """Attention (scorer and projection) has its own learning rate and decay, as in Jain & Wallace and Meister et al."""
    attention = list(model.attention_parameters())
    own = {id(p) for p in attention}
    rest = [p for p in model.parameters() if id(p) not in own and p.requires_grad] if moves == "all" else []
    groups: list[dict[str, Any]] = [
        {"params": rest, "weight_decay": settings.weight_decay},
        {"params": attention, "weight_decay": settings.attention_decay, "lr": settings.attention_lr or settings.lr},
    ]
    return torch.optim.Adam(groups, lr=settings.lr, amsgrad=True, fused=True)


def _optimiser_tensors(optimiser: torch.optim.Adam) -> dict[str, Tensor]:
    return {
        f"{index}.{name}": value
        for index, slots in optimiser.state_dict()["state"].items()
        for name, value in slots.items()
    }


def _load_optimiser(optimiser: torch.optim.Adam, tensors: dict[str, Tensor]) -> None:
    slots: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        index, _, slot = name.partition(".")
        slots.setdefault(int(index), {})[slot] = tensor
    optimiser.load_state_dict({"state": slots, "param_groups": optimiser.state_dict()["param_groups"]})


def _copies(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors as they are now, under a prefix."""
    return {f"{prefix}.{name}": tensor.detach().clone() for name, tensor in tensors.items()}


def _named(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors under a prefix, without it."""
    return {
        name.removeprefix(f"{prefix}."): tensor for name, tensor in tensors.items() if name.startswith(f"{prefix}.")
    }
