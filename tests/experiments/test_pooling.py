"""Texts opened together: of about one length where one query goes on, and each as if it were alone."""

import torch

from exegete.experiments.common.pooling import open_pooled
from exegete.experiments.common.removal import remove_in_order
from exegete.interventions.permute import permuted_together
from exegete.tasks.example import Example
from tests.models.tiny import bert, in_memory

WORDS = ("an", "unbelievably", "charming", "movie", "of", "plot", "bad", "dull", "ok", "terrific", "a")
LENGTHS = (3, 11, 5, 2, 9, 4, 1)


def test_texts_of_several_lengths_are_opened_together_as_if_alone() -> None:
    model = in_memory(*bert())
    examples = [Example(i, (WORDS[:length],), 0) for i, length in enumerate(LENGTHS)]
    costs = [int(model.collate([e]).cost.sum()) for e in examples]
    found = list(open_pooled(model, examples))
    assert sorted(i for part in found for i in part.members) == list(range(len(LENGTHS)))
    assert len(found) < len(LENGTHS) // 2
    for part in found:
        assert max(costs[i] for i in part.members) <= 2 * min(costs[i] for i in part.members)
        order = part.key_weights.masked_fill(~part.opened.removable, -1).argsort(dim=-1, descending=True)
        gone = remove_in_order(part, order)
        drawn = permuted_together(part.weights, part.opened.movable, part.ids, 0, 3)
        logits = part.decode(drawn.where(part.opened.movable[:, None, None], part.weights[:, None]))
        for row, i in enumerate(part.members):
            (alone,) = open_pooled(model, [examples[i]])
            keys = alone.mask.shape[-1]
            own = permuted_together(alone.weights, alone.opened.movable, alone.ids, 0, 3)
            own = own.where(alone.opened.movable[:, None, None], alone.weights[:, None])
            assert torch.allclose(part.logits[row], alone.logits[0], atol=1e-6)
            assert torch.allclose(logits[row], alone.decode(own)[0], atol=1e-6)
            real = order[row][part.opened.removable[row].gather(0, order[row])]
            rest = torch.tensor([key for key in range(keys) if key not in real.tolist()], dtype=torch.int64)
            one_by_one = remove_in_order(alone, torch.cat([real, rest])[None])[0]
            assert torch.allclose(gone[row, : len(real) + 1], one_by_one[: len(real) + 1], atol=1e-6)
