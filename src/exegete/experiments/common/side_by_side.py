"""Side by side: what a model and its companions make of the same texts, their weights and their predictions."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import polars as pl
import torch
from torch import Tensor

from exegete.experiments.common.contract import Subject
from exegete.experiments.common.pooling import Pooled
from exegete.interventions.permute import permuted_together
from exegete.measures.divergence import jsd
from exegete.models.contract import Intervention, Predictor
from exegete.models.openings import unopened
from exegete.tasks.batching import batches_of_one_length
from exegete.tasks.example import Example
from exegete.training.adversary import last_site, readout_of, real_keys
from exegete.training.recipe import Companion

DRAWS = 10  # permutations of a text's weights, whose mean divergence is a reference


class TextsAsSeen(NamedTuple):
    """Some texts as a model sees them."""

    weights: Tensor  # [example, head, key], float64, of the readout (`weights_of_words`); NaN beyond a text's keys
    logits: Tensor  # [example, class], float64

    @property
    def keys(self) -> Tensor:
        """How many keys every text has: [example]."""
        return (~self.key_weights.isnan()).sum(-1)

    @property
    def key_weights(self) -> Tensor:
        """The mean over heads, the weight of a key: [example, key]."""
        return self.weights.nanmean(1)

    @property
    def compared(self) -> Tensor:
        """Whether a text has a divergence: several keys, and weight on some of them: [example]."""
        return (self.keys > 1) & (self.weights.nansum((1, 2)) > 0)

    @property
    def probabilities(self) -> Tensor:
        """[example, class]."""
        return self.logits.softmax(-1)

    @property
    def answers(self) -> Tensor:
        """The predicted class of every text: [example]."""
        return self.logits.argmax(-1)


def comparison_refusal(model: Predictor) -> str | None:
    """Why the weights of a model can't be compared with others as distributions; None if they can."""
    if (reason := unopened(model)) is not None:
        return reason
    gated = model.readout is not None and model.readout.gated
    return "it compares attention as a distribution over words, and gates don't sum to 1" if gated else None


def see_texts(model: Predictor, examples: Sequence[Example], intervene: Intervention | None = None) -> TextsAsSeen:
    """Weights and logits of every text, under what rewrites the model's attention, if anything does.

    Weights are those of the words (`weights_of_words`).
    """
    site = last_site(model)
    rows: list[Tensor] = [torch.empty(0, 0)] * len(examples)
    logits = torch.empty(len(examples), len(model.labels), dtype=torch.float64)
    for members in batches_of_one_length(examples, size=512, budget=32_768):
        with torch.no_grad():
            trace = model.trace(model.collate([examples[i] for i in members]), intervene=intervene)
        logits[members] = trace.logits.double()
        weights = trace.rows(readout_of(model)).double()  # [batch, head · query, key]: as `opened` has them
        for place, heads, real in zip(members, weights, real_keys(trace, site), strict=True):
            rows[place] = weights_of_words(heads, real)[:, real]
    return TextsAsSeen(_side_by_side(rows), logits)


def _side_by_side(rows: Sequence[Tensor]) -> Tensor:
    """Weights [head, key] of texts of any number of either: [example, head, key], NaN beyond."""
    heads, keys = (max((row.shape[side] for row in rows), default=0) for side in (0, 1))
    found = torch.full((len(rows), heads, keys), torch.nan, dtype=torch.float64)
    for text, row in zip(found, rows, strict=True):
        text[: row.shape[0], : row.shape[1]] = row
    return found


def weights_of_words(weights: Tensor, real: Tensor) -> Tensor:
    """Weights as those of words: what a null key takes (`ladder`) is left out, and the rest is divided by its sum.

    Both [..., key]; 0 on all keys that no word belongs to. A rationale model may have weight on no word of a text at
    all: nothing to divide, and zeros stay.
    """
    kept = weights.double().where(real, 0.0)
    total = kept.sum(-1, keepdim=True)
    return kept / total.where(total > 0, 1.0)


def word_keys(model: Predictor, pool: Pooled, examples: Sequence[Example]) -> Tensor:
    """Which keys of a pool some word belongs to, [batch, key]: those whose weights `see_texts` has."""
    with torch.no_grad():
        trace = model.trace(model.collate([examples[i] for i in pool.members]))
    return real_keys(trace, last_site(model))


def companion_sees(companion: Companion, examples: Sequence[Example]) -> TextsAsSeen:
    """Weights and logits of a companion, under what its attention is ever after."""
    return see_texts(companion.model, examples, companion.intervene)


def distance(one: TextsAsSeen, other: TextsAsSeen) -> Tensor:
    """JSD of the weights of every text, the mean over heads, float64 [example].

    NaN for one key, whose weight can be nothing but 1, and where either model has no weight on any word. Models with
    other numbers of heads are compared by the mean weights of keys.
    """
    alike = one.weights.shape == other.weights.shape
    far = jsd(one.weights, other.weights).nanmean(-1) if alike else jsd(one.key_weights, other.key_weights)
    return far.where(one.compared & other.compared, torch.nan)


def permuted_distance(one: TextsAsSeen, other: TextsAsSeen, ids: Tensor, seed: int, draws: int = DRAWS) -> Tensor:
    """JSD of weights where the other's are permuted over a text's keys: `permuted_jsd`, [example]."""
    ours, theirs = (found.weights.nan_to_num(0.0) for found in (one, other))
    there = ~one.weights.isnan().all(-1)  # [example, head]: of texts with a query per word, not all have as many
    found = permuted_jsd(ours, theirs, ~one.key_weights.isnan(), ids, seed, draws, there)
    return found.where(one.compared & other.compared, torch.nan)


def permuted_jsd(
    ours: Tensor,
    theirs: Tensor,
    real: Tensor,
    ids: Tensor,
    seed: int,
    draws: int = DRAWS,
    there: Tensor | None = None,
) -> Tensor:
    """JSD(α, α' permuted over the real keys), the mean over heads and draws: [text, head, key] -> [text].

    The reference of a divergence: what weights of these shapes have when nothing else is common to them. Weights are 0
    outside the mask [text, key]; NaN for a single key. Heads that are not `there` [text, head] don't count.
    """
    shuffled = permuted_together(theirs, real, ids, seed, draws)  # [text, draw, head, key]
    far = jsd(ours[:, None].expand_as(shuffled), shuffled)  # [text, draw, head]
    far = far if there is None else far.where(there[:, None], torch.nan)
    return far.nanmean(-1).mean(-1).where(real.sum(-1) > 1, torch.nan)


def text_facts(subject: Subject, base: TextsAsSeen) -> dict[str, Any]:
    """What every row says of its text; n counts what attention weighs: words, or a hierarchical model's sentences."""
    return subject.facts() | {"n": base.keys.tolist()}


def float_column(values: Tensor) -> pl.Series:
    """A column of floats; what is undefined is null."""
    return pl.Series(values.double().cpu().numpy()).fill_nan(None)
