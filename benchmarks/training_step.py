"""Training: batches of one length with fused Adam against packed sequences with plain Adam (AMSGrad, batch 32)."""

import sys
from collections.abc import Sequence

import torch

from common import below, seconds, task
from exegete.base.noise import uniform
from exegete.models.build import build
from exegete.models.ours.module import Model
from exegete.tasks.batching import Batch, batches_of_one_length
from exegete.tasks.example import Example, Task
from exegete.training.fit import Fit, Optimiser
from exegete.training.settings import TrainingSettings

BAR = 1.5


def literature_batches(examples: Sequence[Example]) -> list[list[int]]:
    """Sort by length with a tenth of the longest as noise, cut into 32s (Jain & Wallace's batching)."""
    longest = max(map(len, examples))
    noise = ((uniform(0, torch.arange(len(examples))) * 2 - 1) * 0.1 * longest).tolist()
    order = sorted(range(len(examples)), key=lambda i: len(examples[i]) + noise[i])
    return [order[start : start + 32] for start in range(0, len(order), 32)]


def step(model: Model, optimiser: Optimiser, batch: Batch) -> None:
    loss = torch.nn.functional.cross_entropy(model.trace(batch).logits, batch.label)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


def epoch(data: Task, fused: bool, model: Model, optimiser: Optimiser) -> None:
    train = data.split("train")
    cut = list(batches_of_one_length(train, 32, 16_384, shuffle=0)) if fused else literature_batches(train)
    for members in cut:
        step(model, optimiser, model.collate([train[i] for i in members]))


def main() -> None:
    data = task()
    slow_model, model = (build("bilstm:size=300", data) for _ in range(2))
    fit = Fit(model, data, TrainingSettings(), 0)
    plain = torch.optim.Adam(slow_model.parameters(), lr=1e-3, weight_decay=1e-5, amsgrad=True)
    fast = seconds(lambda: epoch(data, True, model, fit.optimiser), 2)
    slow = seconds(lambda: epoch(data, False, slow_model, plain), 2)
    print(f"training, one epoch of {data.name}: packed, plain Adam {slow:.1f} s")
    print(f"  one length, fused  {fast:5.1f} s  {slow / fast:.1f}x  (bar {BAR}x)")
    if below(slow / fast, BAR):
        sys.exit("training: below the bar")


if __name__ == "__main__":
    main()
