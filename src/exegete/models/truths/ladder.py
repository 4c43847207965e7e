"""Ladder: a classifier whose attention is faithful by construction, unfaithful by construction, or in between.

Every word leans to or away from a class and votes accordingly: r_tc = tanh(w_c · e_t + a_c), s_tc = sign(r_tc). Every
word has a gate of its own, and a null key (the start symbol), whose value is 0, takes the mass that is left:

    g_t = σ(score(e_t) + d),   α_t = g_t / max(room, Σ_s g_s),   α_null = 1 − Σ_t α_t
    logits = m Σ_t (share · α_t s_t + (1 − share) · u_t r_t) + b,   u_t = 1 / max(room, n) for n words

The first part is what attention pools: values m s_t of equal magnitude, under its weights. The second is the same with
all gates open, whatever the weights are, and with leanings in place of votes (by equal votes of all words, relevant or
not, hardly anything can be told).

*share = 1 is faithful.* Claim: moving the weight of word t to the null key, and, while Σ_s g_s ≤ room, deleting word t
from the text, lowers the logit of class c by exactly m α_t s_tc. Proof. (Weight.) Logits are linear in the weights,
word t loses α_t of m s_t, and the null key's gain counts 0. (Deletion.) Gate and vote of a word depend on its embedding
alone, so those of all others stay. Gates are positive, so without g_t their sum is within room too: the denominator is
room before and after, all other α_s stay, and the sum loses the term of t. ∎ So |leave-one-out| is m times attention,
and ranks the words of every text as attention does: τ-b is 1. With more open gates than room, words compete for weight,
and only the first half of the claim is left.

*share = 0 is unfaithful.* Gates are computed, but no intervention on the weights changes anything. Deleting word t of
at most `room` costs m r_tc / room. Training gives the scorer no gradient: it stays as it was drawn, and knows nothing
of r. `settle` gives its weights the spread of trained ones.

*In between*, both parts and both effects are mixed as `share` says: `effects` are the truth of every rung.

Training sees a vote as if it were its leaning: forward the sign, backward the derivative of tanh (the straight-through
estimator, Bengio et al. 2013). Gradients of words are of that kind too: by its vote a word counts as if votes were
smooth, and only by its gate as it is.
"""

import math
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, softplus

from exegete.models.capabilities import Encoded
from exegete.models.ours.attention import SCORERS, Additive
from exegete.models.ours.classifier import PoolingClassifier
from exegete.models.projections import Projection
from exegete.models.settings import LadderSettings
from exegete.tasks.batching import Batch
from exegete.tasks.vocabulary import SPECIAL, START, Vocabulary

NULL = 1e9  # the score that marks the null key: no word gets near it
FIRST = 0.5  # what a word with an open gate adds to a logit before training, m / room


class WordVotes(NamedTuple):
    """What single words say, by class; 0 where no word is."""

    votes: Tensor  # [batch, token, output]: m s
    leanings: Tensor  # [batch, token, output]: m r


class Ladder(PoolingClassifier):
    """Words vote; attention decides a given share of how much each counts."""

    settings: LadderSettings
    encoder: "Votes"  # type: ignore[assignment]  # single words, no encoder of texts
    project: "NullKey"

    def __init__(self, spec: str, vocabulary: Vocabulary, labels: tuple[str, ...], size: int | None = None) -> None:
        super().__init__(spec, replace(vocabulary, wrap=True), labels, size)

    def _make_layers(self) -> None:
        self.encoder = Votes(self.size, self.outputs, self.settings.room)
        self.scorer = SCORERS[self.settings.attention](self.size)
        self.project = NullKey(self.settings.room)
        self.decoder = nn.Linear(self.outputs, self.outputs)  # a logit is the sum of its votes: only the bias is learnt
        with torch.no_grad():
            # One output z is shown as [−z/2, z/2]: twice the vote makes values of m for either class.
            self.decoder.weight.copy_(torch.eye(self.outputs) * (2 if self.one_output else 1))
        self.decoder.weight.requires_grad_(False)

    @torch.no_grad()
    def settle(self) -> None:
        """Spread the scores of an attention that will not learn, over the vocabulary: mean −spread, deviation spread.

        As drawn, gates would all be near ½, and flat weights are easily told from trained ones.
        """
        scores = self.scorer(self.embedding.weight[len(SPECIAL) :])
        deviation = float(scores.std()) if len(scores) > 1 else 0.0
        if self.settings.share == 0 and deviation > 0:
            scale = self.settings.spread / deviation
            (self.scorer.outer if isinstance(self.scorer, Additive) else self.scorer.linear).weight.mul_(scale)
            self.project.bias.fill_(-self.settings.spread - scale * float(scores.mean()))

    def encode(self, batch: Batch, *, embedded: Tensor | None = None) -> Encoded:
        """What single words say; keys are words and the null key, which is the first start symbol.

        A word's state is its vote m s; its value, which the weight multiplies, is share · m s. The null key's value is
        0, and its state is what all words add whatever the weights are.
        """
        embedded = self.embed(batch) if embedded is None else embedded
        null = (batch.tokens == START) & ~batch.words & (batch.part == 0)
        said = self.encoder(embedded, batch.words)
        states = torch.where(null[..., None], self._open(batch, said).sum(1, keepdim=True), said.votes)
        values = self._by_class(states.masked_fill(null[..., None], 0)) * self.settings.share
        return Encoded(states, self.scorer(embedded).masked_fill(null, NULL), batch.words | null, values)

    def decode(self, encoded: Encoded, weights: Tensor) -> Tensor:
        """Σ_t weight_t · share · m s_t, and what doesn't depend on weights, for every draw of them."""
        assert encoded.values is not None
        always = (encoded.states * self.null_keys(encoded)[..., None]).sum(1, keepdim=True)  # [batch, 1, output]
        constant = self._by_class(always) + self.two_sided(self.decoder.bias)
        return weights @ encoded.values.to(weights.dtype) + constant.to(weights.dtype)  # [batch, draw, class]

    def null_keys(self, encoded: Encoded) -> Tensor:
        """The key that takes the mass that is left, [batch, key]."""
        return encoded.scores == NULL

    @torch.no_grad()
    def effects(self, batch: Batch) -> Tensor:
        """The truth: what deleting each word takes from every logit, where no words compete for weight.

        m (share · α_t s_t + (1 − share) · u_t r_t); 0 where no word is.
        """  # [batch, token, class]
        encoded, said = self.encode(batch), self.encoder(self.embed(batch), batch.words)
        assert encoded.values is not None
        weights: Tensor = self.project(encoded.scores, encoded.mask)[..., None]
        return weights * encoded.values + self._by_class(self._open(batch, said))

    def _open(self, batch: Batch, said: WordVotes) -> Tensor:
        """(1 − share) · u_t m r_t: what every word adds with all gates open."""  # [batch, token, output]
        room = batch.lengths.clamp(min=self.settings.room)[:, None, None]
        return (1 - self.settings.share) * said.leanings / room

    def _by_class(self, outputs: Tensor) -> Tensor:
        return self.two_sided(outputs @ self.decoder.weight.T.to(outputs.dtype))


class Votes(nn.Module):
    """Embedded words to what they say."""

    def __init__(self, size: int, outputs: int, room: int) -> None:
        super().__init__()
        self.linear = nn.Linear(size, outputs)
        self.raw = nn.Parameter(torch.tensor(math.log(math.expm1(FIRST))))
        self.room = room

    @property
    def strength(self) -> Tensor:
        """m > 0, which all words share: room times what a word with an open gate adds to a logit."""
        return self.room * softplus(self.raw)

    def forward(self, embedded: Tensor, words: Tensor) -> WordVotes:
        """Forward the sign, backward the derivative of tanh: what is added to the sign is 0."""
        leanings = self.linear(embedded).tanh()
        signs = torch.where(leanings.detach() < 0, -1.0, 1.0).to(leanings.dtype)
        scale = self.strength * words[..., None]
        return WordVotes(scale * (signs + (leanings - leanings.detach())), scale * leanings)


class NullKey(Projection):
    """α_t = g_t / max(room, Σ g) with g_t = σ(z_t + d), and the rest of the mass on the key whose score is `NULL`.

    Weights sum to 1 over the mask. Where the mask hides the null key, words share all the mass: g_t / Σ g.
    """

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room
        self.bias = nn.Parameter(torch.tensor(0.0))  # d: softmax needs none, gates do

    def forward(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Gates of the words, then what is left."""
        mask = mask.expand_as(scores)
        null = mask & (scores == NULL)
        words = mask & ~null
        gates = (scores + self.bias).sigmoid().masked_fill(~words, 0.0)
        weights = gates / gates.sum(-1, keepdim=True).clamp(min=self.room)
        rest = (1 - weights.sum(-1, keepdim=True)).clamp(min=0)
        alone = logsigmoid(scores + self.bias).masked_fill(~words, -NULL).softmax(-1).masked_fill(~words, 0.0)
        return torch.where(null.any(-1, keepdim=True), torch.where(null, rest, weights), alone)
