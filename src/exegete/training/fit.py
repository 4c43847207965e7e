"""Fit: train a model, keep its best epoch, and be able to go on from any epoch with the same result."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any, Literal, NoReturn

import numpy as np
import torch
from torch import Tensor, nn

from exegete.base.errors import ExegeteError
from exegete.base.noise import stable_seed
from exegete.base.progress import Progress, silent
from exegete.interventions.contract import bound, renewed
from exegete.models.capabilities import Pretrained, Trainable
from exegete.models.contract import Intervention
from exegete.tasks.batching import batches_by_cost, batches_of_one_length, with_token_ids
from exegete.tasks.disk import column_of, some_of
from exegete.tasks.example import Example, Task
from exegete.tasks.open_words import OpenWords
from exegete.tasks.vocabulary import Vocabulary
from exegete.training.adam import Adam
from exegete.training.evaluation import evaluate, mean_loss
from exegete.training.metrics import Metrics
from exegete.training.objectives import Likelihood, Objective, class_weights
from exegete.training.settings import TrainingSettings

Optimiser = Adam | torch.optim.Optimizer
Moves = Literal["all", "attention"]  # what training may change

RATES, USUAL = ("lr", "head_lr", "attention_lr"), 1e-3  # learning rates, and what they mostly are


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
        self._all_steps = 0  # of all epochs; known once an epoch begins

    @cached_property
    def optimiser(self) -> Optimiser:
        """Made when training begins: torch takes a second to make its own, and most fits are found trained."""
        return _optimiser(self.model, self.settings, self.moves)

    def run(self, save: Callable[[State], None] | None = None, progress: Progress = silent) -> State:
        """Train until the last epoch or until patience ends; leave the best epoch's weights in the model."""
        while not self.done:
            with _only_attention(self.model) if self.moves == "attention" else nullcontext():
                self._epoch(progress)
            self._judge()
            if save is not None:
                save(self.state)
        _take(self.model, _named(self.state.tensors, "best"))
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
        _take(self.model, _named(state.tensors, "model"))
        _load_optimiser(self.optimiser, _named(state.tensors, "optimiser"))

    def _epoch(self, progress: Progress) -> None:
        train, settings, number = self._texts, self.settings, self.state.epoch + 1
        shuffle = stable_seed("epoch", self.seed, number)
        batches = self._batches(train, shuffle)
        self._all_steps = settings.epochs * len(batches)
        self.model.train()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(shuffle)  # whatever is random in a model depends on seed and epoch alone
            for done, members in enumerate(batches):
                self._step(some_of(train, np.array(members)), number)
                progress(f"epoch {number}", done + 1, len(batches))
        self.model.eval()
        self.state.epoch = number

    @cached_property
    def _texts(self) -> Sequence[Example]:
        """What is learnt from; of texts on disk that a vocabulary of ours reads, with their token ids.

        Rows of open words mean nothing to another process, so that they aren't written down.
        """
        train, reader = self.task.split("train"), self.model.reader
        if isinstance(reader, Vocabulary) and not isinstance(reader, OpenWords):
            return with_token_ids(train, reader)
        return train

    def _batches(self, examples: Sequence[Example], shuffle: int) -> list[list[int]]:
        size, budget = self.settings.batch, self.settings.budget
        if isinstance(self.model, Pretrained):
            lengths = self.model.lengths(examples)
        else:
            lengths = column_of(examples, "length").tolist()
        cut = (
            batches_by_cost(lengths, size, budget, shuffle)
            if isinstance(self.model, Pretrained)
            else batches_of_one_length(examples, size, budget, shuffle)
        )
        return sorted(cut, key=lambda batch: lengths[batch[0]]) if self.settings.short_first else list(cut)

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
        factor = rate_at(self.state.steps + 1, self._all_steps, self.settings)
        for group in self.optimiser.param_groups:
            group["lr"] = group["peak"] * factor

    def _refuse(self, loss: float | None, epoch: int) -> NoReturn:
        high = [name for name in RATES if (getattr(self.settings, name) or 0) > 10 * USUAL]
        lower = dict.fromkeys(high, USUAL) or {"lr": self.settings.lr / 10}
        settings = ",".join(f"{name}={value:g}" for name, value in lower.items())
        raise ExegeteError(f"the loss became {loss} in epoch {epoch}: lower the learning rate, for example {settings}")

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
            self.state.tensors |= _copies("best", _moving(self.model))
        self.state.tensors |= _copies("model", _moving(self.model)) | _copies(
            "optimiser", _optimiser_tensors(self.optimiser)
        )


def rate_at(t: int, total: int, settings: TrainingSettings) -> float:
    """The learning rate at step t, from 1, of `total`, as a share of its peak; w steps are for warming up.

    `root`: min(t/w, √(w/t)) (Vaswani et al. 2017, equation 3, with its peak at lr). `linear`: t/w, and then on a line
    that reaches 0 after the last step (Devlin et al. 2019, appendix A.2).
    """
    w = settings.warmup or round(settings.warmup_share * total)
    if settings.schedule == "linear":
        return t / w if t < w else max(0, total - t + 1) / max(1, total - max(1, w) + 1)
    return min(t / w, math.sqrt(w / t)) if w else 1.0


def _moving(model: Trainable) -> dict[str, Tensor]:
    """The tensors that training may change: all but those of frozen parameters."""
    still = {p.data_ptr() for p in model.parameters() if not p.requires_grad}
    return {name: tensor for name, tensor in model.state_dict().items() if tensor.data_ptr() not in still}


def _take(model: Trainable, moved: dict[str, Tensor]) -> None:
    """Give a model the tensors that training may change."""
    model.load_state_dict(model.state_dict() | moved)


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


def _optimiser(model: Trainable, settings: TrainingSettings, moves: Moves) -> Optimiser:
    """Attention (scorer and projection) has its own learning rate and decay, as in Jain & Wallace and Meister et al."""
    attention = list(model.attention_parameters())
    new = {id(p) for p in model.head_parameters()} if isinstance(model, Pretrained) else set()
    own = {id(p) for p in attention}
    rest = [p for p in model.parameters() if id(p) not in own and p.requires_grad] if moves == "all" else []
    groups = [
        _group(rest, settings.lr, settings.weight_decay),
        _group(attention, settings.attention_lr or settings.lr, settings.attention_decay),
    ]
    if settings.optimiser == "adam":
        return Adam(groups)
    apart = [part for group in groups for part in _apart(group, new, settings.head_lr)]
    return torch.optim.AdamW(apart, lr=settings.lr, fused=True)


def _group(parameters: list[nn.Parameter], lr: float, decay: float) -> dict[str, Any]:
    return {"params": parameters, "weight_decay": decay, "lr": lr, "peak": lr}


def _apart(group: dict[str, Any], new: set[int], head_lr: float | None) -> Iterator[dict[str, Any]]:
    """What has learnt and what is new; of each, vectors (biases and norms) decay by nothing."""
    for is_new, is_vector in product((False, True), repeat=2):
        some = [p for p in group["params"] if (id(p) in new, p.dim() < 2) == (is_new, is_vector)]
        if some:
            lr = head_lr if is_new and head_lr is not None else group["lr"]
            yield _group(some, lr, 0.0 if is_vector else group["weight_decay"])


def _optimiser_tensors(optimiser: Optimiser) -> dict[str, Tensor]:
    return {
        f"{index}.{name}": value
        for index, slots in optimiser.state_dict()["state"].items()
        for name, value in slots.items()
    }


def _load_optimiser(optimiser: Optimiser, tensors: dict[str, Tensor]) -> None:
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
