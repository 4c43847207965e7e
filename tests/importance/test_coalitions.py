"""The design of coalitions: complete where it can be, unbiased where it is drawn, the same in any batch."""

from itertools import pairwise
from math import comb

import pytest
import torch

from exegete.importance.coalitions import coalitions
from tests.importance.additive import batch_of_ids
from tests.small import SPECS, batch_of, small_model, texts


def subsets(kept: torch.Tensor) -> list[tuple[bool, ...]]:
    return [tuple(row) for row in kept.tolist()]


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_all_subsets_once_where_the_budget_allows(n: int) -> None:
    kept, share = coalitions(batch_of_ids([list(range(4, 4 + n))]), 2**n - 2 + 5, 0)
    used = share[0] > 0
    found = subsets(kept[0, used])
    assert len(found) == len(set(found)) == 2**n - 2
    assert all(0 < sum(z) < n for z in found)
    assert share[0, used].tolist() == pytest.approx([1 / comb(n, sum(z)) for z in found])


@pytest.mark.parametrize("samples", [2, 9])
def test_a_text_of_one_word_has_no_coalitions(samples: int) -> None:
    assert (coalitions(batch_of_ids([[4]]), samples, 0).share == 0).all()


def test_single_words_first_then_pairs_of_complements() -> None:
    n, samples = 8, 61
    kept, share = coalitions(batch_of_ids([list(range(4, 12))]), samples, 0)
    found = subsets(kept[0])
    assert sorted(sum(z) for z in found[: 2 * n]) == [1] * n + [n - 1] * n
    assert len(set(found[: 2 * n])) == 2 * n
    drawn = found[2 * n : 60]
    assert all(2 <= sum(z) <= n - 2 for z in drawn)
    assert all(a != b for z, other in list(pairwise(drawn))[::2] for a, b in zip(z, other, strict=True))
    assert share[0, 60] == 0  # an odd one has no partner
    assert (share[0, :60] > 0).all()


@pytest.mark.parametrize("samples", [10, 20, 40])
def test_sums_over_the_design_are_unbiased(samples: int) -> None:
    """Σ share · m(|z|) · g(z) against the same sum over all subsets, for a g that is neither symmetric nor additive."""
    n, texts_drawn = 6, 2500
    value = torch.tensor([0.5, -1.0, 2.0, 0.3, -0.7, 1.1]).double()

    def weighed(kept: torch.Tensor) -> torch.Tensor:
        total = kept.double() @ value
        return (total**2 + kept[..., 0] * kept[..., 3]) * (1 + kept.sum(-1)) ** 2

    kept, share = coalitions(batch_of_ids([list(range(4, 10))] * texts_drawn), samples, 3)
    sums = (share * weighed(kept)).sum(-1)
    every = torch.tensor([[bool(z >> t & 1) for t in range(n)] for z in range(1, 2**n - 1)])
    truth = float((weighed(every) / torch.tensor([comb(n, int(k)) for k in every.sum(-1)])).sum())
    spread = float(sums.std() / texts_drawn**0.5)
    assert 0 < spread < 0.05 * truth
    assert float(sums.mean()) == pytest.approx(truth, abs=4 * spread)


def test_draws_belong_to_example_and_word() -> None:
    examples = texts(9, longest=14)
    model, wrapped = (small_model(SPECS[0], examples, wrap) for wrap in (False, True))
    batch, other = batch_of(model, examples), batch_of(wrapped, examples[4:7])
    kept, share = coalitions(batch, 50, 0)
    few, few_share = coalitions(other, 50, 0)
    for i in range(3):
        assert torch.equal(kept[4 + i][:, batch.words[4 + i]], few[i][:, other.words[i]])
        torch.testing.assert_close(share[4 + i], few_share[i])
    assert not (kept & ~batch.words[:, None]).any()
    longer = batch.lengths >= 6
    assert torch.equal(coalitions(batch, 100, 0).kept[longer, :50], kept[longer])  # a smaller budget comes first
    assert not torch.equal(coalitions(batch, 50, 1).kept, kept)
