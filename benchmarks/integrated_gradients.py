"""Integrated gradients over a test set, complete to 1 %, against captum's with its default 50 steps, same batches."""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import torch
from captum.attr import IntegratedGradients as Captum
from torch import Tensor

from common import below, seconds, task, trained
from exegete.importance.integrated_gradients import FLOOR, IntegratedGradients
from exegete.models.ours.classifier import Classifier
from exegete.tasks.batching import Batch, batches_of_one_length
from exegete.tasks.example import Example

BAR, EQUAL = 2.0, 1.3
STEPS = 50  # captum's default


class Side(NamedTuple):
    """One way to do it: how long it took, and how far from complete every text is."""

    seconds: float
    error: Tensor  # [text]

    def __str__(self) -> str:
        worst, mean = float(self.error.max()), float(self.error.mean())
        return f"{self.seconds:7.2f} s   error at most {worst:.1e}, mean {mean:.1e}"


def batches(model: Classifier, examples: Sequence[Example]) -> list[Batch]:
    """Of one length, so that both sides are spared packing; 32 texts, which both run fastest."""
    cut = batches_of_one_length(examples, size=32, budget=8192)
    return [model.collate([examples[i] for i in members]) for members in cut]


def theirs(model: Classifier, batch: Batch, steps: int) -> Tensor:
    """Relative completeness error of captum's shares."""
    embedded = model.embed(batch).detach()
    zero = torch.zeros_like(embedded)
    n = len(batch.ids)

    def predict(copies: Tensor) -> Tensor:
        rows = torch.arange(n).repeat(len(copies) // n)
        return model.trace(batch.rows(rows), embedded=copies).logits

    with torch.no_grad():
        f, g = predict(embedded).double(), predict(zero).double()
    label = f.argmax(-1)
    shares: Tensor = Captum(predict).attribute(embedded, zero, label, n_steps=steps, method="gausslegendre")
    gain = (f - g).gather(1, label[:, None])[:, 0]
    return (shares.double().sum((1, 2)) - gain).abs() / gain.abs().clamp(min=FLOOR)


def ours(model: Classifier, batch: Batch) -> Tensor:
    error = IntegratedGradients()(model, batch).error
    assert error is not None
    return error


def measured(work: Callable[[Batch], Tensor], all_of: Iterable[Batch], repeat: int) -> Side:
    """All batches, the fastest of some runs."""
    error = torch.empty(0)

    def run() -> None:
        nonlocal error
        error = torch.cat([work(batch) for batch in all_of])

    return Side(seconds(run, repeat), error)


def enough(model: Classifier, all_of: Sequence[Batch], error: float) -> int:
    """The fewest steps with which captum's largest error is not above ours."""
    steps = range(1, STEPS + 1)
    return next((n for n in steps if all(float(theirs(model, b, n).max()) <= error for b in all_of)), STEPS)


def main(most: int = 300) -> None:
    data = task()
    model, examples = trained(data), data.split("test")[:most]
    all_of = batches(model, examples)
    mine = measured(lambda batch: ours(model, batch), all_of, 3)
    captum = measured(lambda batch: theirs(model, batch, STEPS), all_of, 2)
    n = enough(model, all_of, float(mine.error.max()))
    equal = measured(lambda batch: theirs(model, batch, n), all_of, 2)
    ratio = captum.seconds / mine.seconds
    print(f"integrated gradients, {data.name} test ({len(examples):,} texts), error relative to f(x) − f(b)")
    print(f"  exegete           {mine}")
    print(f"  captum, {STEPS} steps  {captum}   {ratio:5.1f}x  (bar {BAR:.0f}x)")
    print(f"  captum, {n:2} steps  {equal}   {equal.seconds / mine.seconds:5.1f}x  (as complete as ours; bar {EQUAL}x)")
    if below(ratio, BAR) or below(equal.seconds / mine.seconds, EQUAL) or float(mine.error.max()) > 0.01:
        sys.exit("integrated gradients: below the bar")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
