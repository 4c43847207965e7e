"""Leave-one-out over a test set: deletion by reuse against the literature, in one thread and on two warm workers."""

import sys
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from common import below, seconds, task, trained
from exegete.base.progress import Progress
from exegete.models.ours.classifier import Classifier
from exegete.models.ours.deletion import without_each_word
from exegete.models.ours.encoders import BiLSTM
from exegete.runs.engine.local import LocalEngine
from exegete.tasks.batching import batches_of_one_length
from exegete.tasks.example import Example

BAR, BOTH = 3.0, 5.0


@torch.no_grad()
def literature(model: Classifier, examples: Sequence[Example]) -> dict[int, Tensor]:
    """Batches of 32 by length; for every position, delete that column, pack, run the LSTM again."""
    found: dict[int, Tensor] = {}
    order = sorted(range(len(examples)), key=lambda i: len(examples[i]))
    for start in range(0, len(order), 32):
        members = order[start : start + 32]
        batch = model.collate([examples[i] for i in members])
        columns = [_without(model, batch.tokens, batch.lengths, t) for t in range(batch.tokens.shape[1])]
        logits = torch.stack(columns, 1)
        found |= {i: logits[row, : len(examples[i])] for row, i in enumerate(members)}
    return found


def _without(model: Classifier, tokens: Tensor, lengths: Tensor, t: int) -> Tensor:
    if tokens.shape[1] == 1:
        return model.two_sided(model.decoder.bias).expand(len(tokens), -1)
    assert isinstance(model.encoder, BiLSTM)
    rest = torch.cat([tokens[:, :t], tokens[:, t + 1 :]], 1)
    packed = pack_padded_sequence(
        model.embedding(rest), (lengths - 1).clamp(min=1), batch_first=True, enforce_sorted=False
    )
    states = pad_packed_sequence(model.encoder.lstm(packed)[0], batch_first=True, total_length=rest.shape[1])[0]
    mask = torch.arange(rest.shape[1]) < (lengths - 1)[:, None]
    context = (model.project(model.scorer(states), mask)[:, None] @ states)[:, 0]
    return model.two_sided(model.decoder(context))


def ours(model: Classifier, examples: Sequence[Example]) -> dict[int, Tensor]:
    found: dict[int, Tensor] = {}
    for members in batches_of_one_length(examples, size=256, budget=8192):
        logits = without_each_word(model, model.collate([examples[i] for i in members]))
        found |= {i: logits[row] for row, i in enumerate(members)}
    return found


def on_worker(model: Classifier, examples: Sequence[Example], _: Progress) -> list[list[list[float]]]:
    found = ours(model, examples)
    return [found[i].tolist() for i in range(len(examples))]


def main() -> None:
    data = task()
    model, examples = trained(data), data.split("test")
    a, b = ours(model, examples), literature(model, examples)
    apart = max(float((a[i] - b[i]).abs().max()) for i in a)
    fast, slow = seconds(lambda: ours(model, examples), 3), seconds(lambda: literature(model, examples), 2)
    by_length = sorted(examples, key=len)
    halves = [by_length[0::2], by_length[1::2]]
    with LocalEngine(2) as engine:
        job = partial(on_worker, model)
        list(engine.map(job, [half[:8] for half in halves]))  # warm
        both = seconds(lambda: list(engine.map(job, halves)), 3)
    print(f"leave-one-out, {data.name} test ({len(examples):,} texts): literature {slow:.2f} s")
    print(f"  one thread        {fast:6.2f} s  {slow / fast:5.1f}x  (bar {BAR:.0f}x)   logits apart by {apart:.1e}")
    print(f"  two warm workers  {both:6.2f} s  {slow / both:5.1f}x  (bar {BOTH:.0f}x)")
    if below(slow / fast, BAR) or below(slow / both, BOTH) or apart > 1e-4:
        sys.exit("leave-one-out: below the bar, or other results")


if __name__ == "__main__":
    import leave_one_out  # by its name: workers don't import the script that starts them

    leave_one_out.main()
