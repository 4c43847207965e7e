"""Recurrent translator: bidirectional GRU encoder, GRU decoder, attention at every step (Vashishth et al. 2019, 3.3).

    bahdanau   e_tj = v · tanh(W s_{t−1} + U h_j)  s_t = GRU(s_{t−1}, [y_{t−1}; c_t])  o_t = tanh(V [s_t; c_t; y_{t−1}])
    luong      e_tj = s_t · W h_j                  s_t = GRU(s_{t−1}, y_{t−1})         o_t = tanh(V [s_t; c_t])

with α_t = project(e_t), c_t = Σ_j α_tj h_j and logits E o_t + b (Bahdanau et al. 2015, sections 3.1 and A.1.2; Luong et
al. 2015, section 3.1, their "general" score, without input feeding, so that all steps of a known target run at once). E
are the embeddings of target words where they are tied (Press & Wolf 2017). The first state is tanh(S [h→_n; h←_1]), of
the encoder's final states. Start and end symbols are seen by the encoder and not attended to.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from exegete.models.capabilities import Encoded
from exegete.models.contract import Intervention, Site, Trace
from exegete.models.ours.encoders import BiGRU
from exegete.models.ours.module import KeptSites, Projecting
from exegete.models.ours.parts import TextPart, part_of
from exegete.models.ours.translator import SOURCE, Draft, Translator, example_numbers, last_step, read_by_decoder
from exegete.models.projections import PROJECTIONS, Projection
from exegete.tasks.batching import Batch

SITE = "attention"

# States [batch, step, hidden] and the number of the first among those that are run -> weights [batch, step, key].
StepAttention = Callable[[Tensor, int], Tensor]


class Steps(NamedTuple):
    """What a decoder did at some steps."""

    queries: Tensor  # [batch, step, hidden]: the states that attention was scored from
    weights: Tensor  # [batch, step, key]
    features: Tensor  # [batch, step, …]: what the output layer reads
    state: Tensor  # [batch, hidden]: the last


class _Ran(NamedTuple):
    """What became of a batch with known targets."""

    memory: dict[str, Tensor]  # as in `Draft`: of the sources, and the decoder's first state
    words: Tensor  # [batch, step, size]: what the decoder read
    steps: Steps


class RecurrentDecoder(nn.Module, ABC):
    """A state that reads target words, and what the output layer reads of it."""

    readout: nn.Linear

    @abstractmethod
    def run(self, words: Tensor, state: Tensor, states: Tensor, attend: StepAttention) -> Steps:
        """Read embedded words [batch, step, size], one after the other, from a state [batch, hidden] on.

        `states` [batch, key, 2 hidden] are those of the source.
        """

    @abstractmethod
    def finish(self, query: Tensor, word: Tensor, context: Tensor) -> Tensor:
        """The features of a step whose context [batch, draw, 2 hidden] is given: [batch, draw, …]."""


class Bahdanau(RecurrentDecoder):
    """The context enters the state."""

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.word = nn.Linear(size, 3 * hidden)  # the three gates of a GRU in one product each
        self.context = nn.Linear(2 * hidden, 3 * hidden, bias=False)
        self.state = nn.Linear(hidden, 3 * hidden)
        self.readout = nn.Linear(3 * hidden + size, size)

    def run(self, words: Tensor, state: Tensor, states: Tensor, attend: StepAttention) -> Steps:
        """Step by step: a state needs the context, which needs the state before."""
        inputs, queries, weights, contexts = self.word(words), [state], [], []
        for step in range(words.shape[1]):
            weights.append(attend(state[:, None], step))  # [batch, 1, key]
            contexts.append((weights[-1] @ states)[:, 0])
            state = self._next(state, inputs[:, step], contexts[-1])
            queries.append(state)
        after, context = torch.stack(queries[1:], 1), torch.stack(contexts, 1)
        features = torch.cat([after, context, words], -1)
        return Steps(torch.stack(queries[:-1], 1), torch.cat(weights, 1), features, state)

    def finish(self, query: Tensor, word: Tensor, context: Tensor) -> Tensor:
        """The new state, the context and the word."""
        state = self._next(query[:, None], _linear(self.word, word)[:, None], context)
        return torch.cat([state, context, word[:, None].expand(-1, context.shape[1], -1)], -1)

    def _next(self, state: Tensor, word: Tensor, context: Tensor) -> Tensor:
        """GRU (Cho et al. 2014): s' = (1 − z) n + z s, with n = tanh(x_n + r ⊙ U s)."""
        inward, inside = word + _linear(self.context, context), _linear(self.state, state)
        hidden = state.shape[-1]
        gates = (inward[..., : 2 * hidden] + inside[..., : 2 * hidden]).sigmoid()
        reset, keep = gates.chunk(2, -1)
        new = (inward[..., 2 * hidden :] + reset * inside[..., 2 * hidden :]).tanh()
        return new + keep * (state - new)


class Luong(RecurrentDecoder):
    """The context doesn't enter the state."""

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.gru = nn.GRU(size, hidden, batch_first=True)
        self.readout = nn.Linear(3 * hidden, size)

    def run(self, words: Tensor, state: Tensor, states: Tensor, attend: StepAttention) -> Steps:
        """All states, then all weights."""
        queries, last = self.gru(words, state[None].contiguous())
        weights = attend(queries, 0)
        return Steps(queries, weights, torch.cat([queries, weights @ states], -1), last[0])

    def finish(self, query: Tensor, word: Tensor, context: Tensor) -> Tensor:
        """The state and the context; the word is in the state."""
        del word
        return torch.cat([query[:, None].expand(-1, context.shape[1], -1), context], -1)


class AdditiveScore(nn.Module):
    """e_tj = v · tanh(W s_t + U h_j), written as 2v · σ(2x) − Σ v: the same function, and faster on CPUs."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.key = nn.Linear(2 * hidden, hidden)
        self.query = nn.Linear(hidden, hidden, bias=False)
        self.outer = nn.Linear(hidden, 1, bias=False)

    def keys(self, states: Tensor) -> Tensor:
        """2 U h_j, the same at every step: [batch, key, hidden]."""
        keys: Tensor = 2 * self.key(states)
        return keys

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """[batch, step, hidden] and [batch, key, hidden] -> [batch, step, key]."""
        v = self.outer.weight[0]
        bent = (2 * self.query(queries)[:, :, None] + keys[:, None]).sigmoid()  # [batch, step, key, hidden]
        scores: Tensor = bent @ (2 * v) - v.sum()
        return scores


class GeneralScore(nn.Module):
    """e_tj = s_t · W h_j."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.key = nn.Linear(2 * hidden, hidden, bias=False)

    def keys(self, states: Tensor) -> Tensor:
        """W h_j: [batch, key, hidden]."""
        keys: Tensor = self.key(states)
        return keys

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """[batch, step, hidden] and [batch, key, hidden] -> [batch, step, key]."""
        return queries @ keys.mT


class RecurrentTranslator(Projecting, Translator):
    """One site, `attention`: a query per step, a key per token of the source."""

    def _make_layers(self) -> None:
        hidden, additive = self.settings.hidden, self.settings.attention == "bahdanau"
        self.encoder = BiGRU(self.size, hidden, self.settings.layers, self.settings.dropout)
        self.first = nn.Linear(2 * hidden, hidden)
        self.scorer = AdditiveScore(hidden) if additive else GeneralScore(hidden)
        self.project: Projection = PROJECTIONS[self.settings.projection].load()(**self.settings.projection_settings)
        self.decoder = Bahdanau(self.size, hidden) if additive else Luong(self.size, hidden)
        self.dropout = nn.Dropout(self.settings.dropout)

    @property
    def sites(self) -> tuple[str, ...]:
        """The one attention."""
        return (SITE,)

    def attention_parameters(self) -> Iterator[nn.Parameter]:
        """What decides the weights and nothing else: scorer and projection."""
        yield from self.scorer.parameters()
        yield from self.project.parameters()

    def _ran(
        self, batch: Batch, embedded: Tensor | None, intervene: Intervention | None, keep: KeptSites
    ) -> tuple[Trace, Tensor]:
        del keep
        memory, _, steps = self._run(batch, embedded, intervene)
        owner = {SITE: part_of(batch, SOURCE).owner}
        return Trace(steps.features, {SITE: steps.weights[:, None]}, {SITE: memory["states"]}, owner), steps.features

    def _run(self, batch: Batch, embedded: Tensor | None, intervene: Intervention | None) -> _Ran:
        """Read the sources, and all that the decoder reads of the targets."""
        embedded = self.embed(batch) if embedded is None else embedded
        writing, target = self.begin(batch, embedded=embedded, intervene=intervene), read_by_decoder(batch)
        words, memory = self.dropout(target.take(embedded)), writing.memory
        attend = self._attend(writing, target)
        return _Ran(memory, words, self.decoder.run(words, memory["state"], memory["states"], attend))

    def begin(self, batch: Batch, *, embedded: Tensor | None = None, intervene: Intervention | None = None) -> Draft:
        """Read the sources; nothing is written yet."""
        source = part_of(batch, SOURCE)
        embedded = source.take(self.embed(batch) if embedded is None else embedded)
        read, (end,) = self.encoder.read(self.dropout(embedded), source.present)
        state = self.first(torch.cat([end[-2], end[-1]], -1)).tanh()  # both directions of the last layer
        states = self.dropout(read)  # [batch, key, 2 hidden]
        keys = self.scorer.keys(states)
        return Draft(batch, 0, {"states": states, "keys": keys, "words": source.words, "state": state}, intervene)

    def advance(self, writing: Draft, tokens: Tensor) -> tuple[Tensor, Draft]:
        """One step of every target, as `trace` does them."""
        memory, words = writing.memory, self.dropout(self.target_embedding(tokens))[:, None]
        steps = self.decoder.run(words, memory["state"], memory["states"], self._attend(writing))
        written = replace(writing, step=writing.step + 1, memory={**memory, "state": steps.state})
        return self._logits(steps.features)[:, 0], written

    def _attend(self, writing: Draft, target: TextPart | None = None) -> StepAttention:
        """Weights of steps after those that are written, perhaps rewritten; without a target every step is real."""
        words, keys = writing.memory["words"], writing.memory["keys"]

        def attend(queries: Tensor, first: int) -> Tensor:
            scores = self.scorer(queries, keys)[:, None]  # [batch, 1, step, key]
            mask = words[:, None, None].expand_as(scores)
            if target is not None:
                mask = mask & target.present[:, None, first : first + scores.shape[2], None]
            weights: Tensor = self.project(scores, mask)
            if writing.intervene is not None:
                site = Site(SITE, scores, weights, mask, self.project, writing.batch, writing.step + first)
                weights = writing.intervene(site)
            return weights[:, 0]

        return attend

    def _logits(self, read: Tensor) -> Tensor:
        """[..., feature] -> [..., word]."""
        return self._written(self.dropout(_linear(self.decoder.readout, read).tanh()))

    def encode(self, batch: Batch, *, embedded: Tensor | None = None, intervene: Intervention | None = None) -> Encoded:
        """The last step of every target, up to its attention; `intervene` acts on the steps before it.

        `query` is the state that the scores come from, beside the word that was read last.
        """
        memory, words, steps = self._run(batch, embedded, intervene)
        rows, step = example_numbers(batch), last_step(batch)
        query = steps.queries[rows, step]
        scores = self.scorer(query[:, None], memory["keys"])[:, 0]
        return Encoded(memory["states"], scores, memory["words"], None, torch.cat([query, words[rows, step]], -1))

    def decode(self, encoded: Encoded, weights: Tensor) -> Tensor:
        """The rest of that step, in the precision of the states: weights [batch, draw, key] -> [batch, draw, word]."""
        assert encoded.query is not None
        dtype = encoded.states.dtype
        query, word = encoded.query.to(dtype).split([self.settings.hidden, self.size], -1)
        return self._logits(self.decoder.finish(query, word, weights.to(dtype) @ encoded.states))


def _linear(layer: nn.Linear, x: Tensor) -> Tensor:
    """A layer in the precision of what it is given."""
    return linear(x, layer.weight.to(x.dtype), None if layer.bias is None else layer.bias.to(x.dtype))
