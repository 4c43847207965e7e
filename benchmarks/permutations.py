"""100 permutations of the weights of every test text: W h_t once and one product for all, against whole states.

The literature's way: 32 texts a batch, padded; for every permutation each row is shuffled on its own, the attention
scores are computed once more (as the reference code does), and weights multiply whole states. Both sides start from
encoded texts, what encoding takes is said beside. The draws differ; with ours put in, its medians must be ours.
"""

import sys
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from common import SMALL, below, seconds
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.pooling import Pooled, open_pooled
from exegete.experiments.permutation.experiment import Permutation
from exegete.interventions.permute import permuted
from exegete.models.ours.classifier import Classifier
from exegete.training.evaluation import predict
from trained import Read, decoded, read, trained

BAR = 25.0
DRAWS = 100
CLOSE = 0.02 if SMALL else 0.005  # of the mean over texts of the median over draws, which differ

Shuffle = Callable[[Read, int], Tensor]  # a batch and the number of a draw to weights [batch, key]


def shuffled(batch: Read, _: int) -> Tensor:
    """Row by row."""
    weights = batch.weights.numpy().copy()
    for row, n in enumerate(batch.mask.sum(-1).tolist()):
        weights[row, :n] = weights[row, np.random.permutation(n)]
    return torch.from_numpy(weights)


@torch.no_grad()
def literature(model: Classifier, batches: Sequence[Read], shuffle: Shuffle = shuffled) -> dict[int, float]:
    """Median |Δp| of every text."""
    found: dict[int, float] = {}
    for batch in batches:
        change = []
        for draw in range(DRAWS):
            model.project(model.scorer(batch.states), batch.mask)
            change.append((decoded(model, shuffle(batch, draw), batch.states) - batch.p).abs().numpy())
        medians = np.median(np.stack(change), axis=0)
        found |= dict(zip(batch.members, medians.tolist(), strict=True))
    return found


def ours(subject: Subject, pools: Sequence[Pooled]) -> dict[int, float | None]:
    """All that the experiment says of every text, of which median TVD is one column."""
    rows = Permutation(draws=DRAWS).measured(subject, pools)
    return dict(enumerate(rows["median_tvd"].to_list()))


def as_ours(batch: Read, draw: int) -> Tensor:
    """Our draws in the literature's hands."""
    return permuted(batch.weights.double(), batch.mask, batch.batch.ids, 0, DRAWS)[:, draw].float()


def main() -> None:
    model, data = trained()
    examples = tuple(data.split("test"))
    subject = Subject(model, data, examples, predict(model, examples).argmax(-1), {}, 0.0)
    batches, pools = list(read(model, examples)), list(open_pooled(model, examples))
    fast = seconds(lambda: ours(subject, pools), 3)
    slow = seconds(lambda: literature(model, batches), 1)
    encoding = seconds(lambda: list(open_pooled(model, examples)))
    theirs_encoding = seconds(lambda: list(read(model, examples)))
    mine = ours(subject, pools)
    defined = {i: value for i, value in mine.items() if value is not None}
    theirs = literature(model, batches)
    same = literature(model, batches[len(batches) // 3 :][:2], as_ours)
    apart = max(abs(value - defined[i]) for i, value in same.items() if i in defined)
    mean, other = (sum(of[i] for i in defined) / len(defined) for of in (defined, theirs))
    ratio, whole = slow / fast, (slow + theirs_encoding) / (fast + encoding)
    print(f"{DRAWS} permutations, {data.name} test ({len(examples):,} texts): literature {slow:.2f} s")
    print(f"  exegete           {fast:6.3f} s  {ratio:6.1f}x  (bar {BAR:.0f}x)")
    print(f"  mean over texts of median TVD {mean:.4f}, literature {other:.4f}")
    print(f"  with the same draws medians differ by at most {apart:.0e}")
    print(f"  with encoding     {fast + encoding:6.3f} s  {whole:6.1f}x  (no bar: encoding is the same LSTM)")
    if below(ratio, BAR) or apart > 1e-5 or abs(mean - other) > CLOSE:
        sys.exit("permutations: below the bar, or other results")


if __name__ == "__main__":
    main()
