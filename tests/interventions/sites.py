"""Sites by hand: scores, heads and queries as a test wants them."""

from collections.abc import Sequence

import torch
from torch import Tensor

from exegete.models.contract import Site
from exegete.models.projections import Projection, Softmax, Sparsemax
from exegete.tasks.batching import Batch
from exegete.tasks.vocabulary import Vocabulary

PROJECTIONS: tuple[Projection, ...] = (Softmax(), Sparsemax())


def batch_of_words(words: Tensor, ids: Sequence[int]) -> Batch:
    """A batch of texts without much in them: True where there is a word."""
    flat = torch.where(words, 0, -1)
    tokens = words.long().cumsum(-1) + 3
    return Batch(
        torch.tensor(ids),
        torch.where(words, tokens, 0),
        words,
        words,
        flat,
        flat,
        torch.zeros(len(ids)).long(),
        Vocabulary(()),
    )


def site_of(
    scores: Tensor, words: Tensor, ids: Sequence[int], project: Projection | None = None, queries: Tensor | None = None
) -> Site:
    """Scores [batch, head, query, key]; a word is a key for every real query (all are, unless given)."""
    project = project or Softmax()
    mask = words[:, None, None]
    if queries is not None:
        mask = mask & queries[:, None, :, None]
    weights = project(scores, mask)
    return Site("attention", scores, weights, mask, project, batch_of_words(words, ids))


def random_site(seed: int, project: Projection, heads: int = 2, queries: int = 3, keys: int = 6) -> Site:
    """Three texts: all keys, some, none; one query of the second text is padding."""
    draw = torch.Generator().manual_seed(seed)
    scores = 2 * torch.randn(3, heads, queries, keys, generator=draw)
    words = torch.rand(3, keys, generator=draw) < 0.6
    words[0], words[2] = True, False
    real = torch.ones(3, queries).bool()
    real[1, -1] = False
    return site_of(scores, words, [4, 7, 9], project, real)
