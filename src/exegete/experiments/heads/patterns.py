"""Patterns: where a head looks, on the surface (Clark et al. 2019, section 3; Vig & Belinkov 2019, sections 4 and 5).

Per text the mean over all tokens that look of the share of their weight on

    first         the first token: CLS, or whatever a text starts with
    end           end symbols: SEP
    punctuation   words without any letter or digit
    same, previous, next    the token itself, the one before it, the one after it

and of the entropy of a row, 0 (one key) to 1 (all alike), and of its distance Σ_t α_t |t − q| in tokens. A row beside a
sink of the architecture is a share of its own sum. Entropy and distance are told twice: of all weights, and *without
sinks*, of words that look at words, the first token and symbols left out and the rest scaled to 1. A head that rests on
a symbol has low entropy whatever else it does, and its distance is that of the text's start.
"""

import unicodedata
from collections.abc import Sequence

import torch
from torch import Tensor

from exegete.interventions.contract import scaled
from exegete.interventions.silence import sinks_of
from exegete.measures.divergence import normalised_entropy
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example

SHARES = ("first", "end", "punctuation", "same", "previous", "next")
SPREAD = ("entropy", "distance")
WITHOUT = tuple(f"{name}_without_sinks" for name in SPREAD)
PATTERNS = (*SHARES, *SPREAD, *WITHOUT)


def patterns(weights: Tensor, reach: Tensor, batch: Batch, punctuation: Tensor) -> dict[str, Tensor]:
    """Weights and where they may lie, [batch, head, query, key], to [batch, head] for each; NaN where nothing looks."""
    there, sinks = batch.cost > 0, sinks_of(batch)
    place = there.cumsum(-1).double()  # a symbol that is spelled by nothing takes no place
    apart = place[:, None, :] - place[:, :, None]  # [batch, query, key]: how far ahead
    first = there & (place == 1)
    ends = there & (batch.sentence < 0) & ~first
    share = scaled(weights.double(), reach)
    looking = (share > 0).any(-1) & there[:, None]  # [batch, head, query]
    on = {"first": first, "end": ends, "punctuation": punctuation}
    steps = {"same": 0, "previous": -1, "next": 1}
    found = {name: _mean(_on(share, keys[:, None]), looking) for name, keys in on.items()}
    found |= {name: _mean(_on(share, apart == step), looking) for name, step in steps.items()}
    found |= _spread(share, reach & there[:, None, None], apart, looking)
    words = there & ~sinks
    among = reach & words[:, None, None] & words[:, None, :, None]
    own = scaled(weights.double(), among)
    without = _spread(own, among, apart, (own > 0).any(-1))
    return found | dict(zip(WITHOUT, without.values(), strict=True))


def _on(share: Tensor, keys: Tensor) -> Tensor:
    """The weight of every row on some keys [batch, query or 1, key]: [batch, head, query]."""
    return (share * keys[:, None]).sum(-1)


def _spread(share: Tensor, reach: Tensor, apart: Tensor, looking: Tensor) -> dict[str, Tensor]:
    """Entropy and distance, [batch, head]."""
    entropy = normalised_entropy(share.where(reach, torch.nan))
    return {
        "entropy": _mean(entropy, looking & ~entropy.isnan()),  # of a row that may look at one key it is undefined
        "distance": _mean((share * apart.abs()[:, None]).sum(-1), looking),
    }


def _mean(values: Tensor, looking: Tensor) -> Tensor:
    """Over the queries that look."""
    return values.where(looking, 0.0).sum(-1) / looking.sum(-1).where(looking.any(-1), torch.nan)


def punctuation_of(examples: Sequence[Example], batch: Batch) -> Tensor:
    """Words without any letter or digit, [batch, token]."""
    found = torch.zeros_like(batch.words)
    for row, example in enumerate(examples):
        found[row, batch.sentence[row] >= 0] = torch.tensor(
            [is_punctuation(word) for word in example.all_words], dtype=torch.bool, device=found.device
        )
    return found


def is_punctuation(word: str) -> bool:
    """Whether a word has neither letters nor digits.

    >>> [is_punctuation(word) for word in (",", "...", "n't", "2", "")]
    [True, True, False, False, False]
    """
    return bool(word) and all(unicodedata.category(letter)[0] in "PS" for letter in word)
