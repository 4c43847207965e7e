"""Pair: a passage, a question, and attention over the passage (Jain & Wallace 2019, section 2).

    h = encoder(e_p),  q = last state of question_encoder(e_q),  α = project(score(h, q)),  c = Σ_t α_t h_t
    logits = W₂ tanh(W_p c + W_q q)        `reads=both` (Jain & Wallace)
    logits = W₂ tanh(W_p c)                `reads=context` (Vashishth et al. 2019)

All layers have biases. The second decoder sees the question through the weights alone, so it can't answer without them;
the first can. With `encoding=conditional` the question's encoder starts where the passage's has ended, in both
directions (Rocktäschel et al. 2016); the states that are attended to stay those of the passage alone.

The decoder is not linear in α, but what is inside tanh is: W_p c = Σ_t α_t (W_p h_t), mapped once for many draws.

Where an example has its own candidates, all other classes have the logit −10⁴. Its softmax is exactly 0, as −∞ would
give. But −∞ minus −∞ is not a number, so that margins, differences and relevance of a class that is no candidate would
not be either; with a finite one they are 0, and so are gradients.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from exegete.models.capabilities import Encoded, Layered, LayersByKind
from exegete.models.ours.attention import ASKED, AskedAdditive, AskedDot
from exegete.models.ours.classifier import PoolingClassifier, make_encoder
from exegete.models.ours.encoder_layers import kinds_of_layers
from exegete.models.ours.encoders import BiGRU, BiLSTM, Memory, summarise_text
from exegete.models.ours.module import draw_normal, embeddings
from exegete.models.ours.pair_layers import run_pair
from exegete.models.ours.parts import PASSAGE, QUESTION, TextPart, part_of
from exegete.models.projections import PROJECTIONS, Projection
from exegete.models.settings import PairSettings
from exegete.tasks.batching import Batch

IMPOSSIBLE = -1e4  # the logit of a class that is no candidate


class Pair(PoolingClassifier):
    """`encoder` and `embedding` read the passage, `question_encoder` and `question_embedding` the question."""

    settings: PairSettings
    scorer: AskedAdditive | AskedDot  # type: ignore[assignment]
    decoder: "TwoLayers"  # type: ignore[assignment]

    def _make_layers(self) -> None:
        settings = self.settings
        self.question_embedding = None if settings.shared else embeddings(self.vocabulary, self.size)
        if self.question_embedding is not None:
            draw_normal(self.question_embedding, settings)
        self.encoder, self.question_encoder = (make_encoder(settings, self.size) for _ in range(2))
        self.scorer = ASKED[settings.attention](self.encoder.out)
        self.project: Projection = PROJECTIONS[settings.projection].load()(**settings.projection_settings)
        self.decoder = TwoLayers(self.encoder.out, self.outputs, settings.reads == "both")

    @property
    def tables(self) -> tuple[nn.Embedding, ...]:
        """The passage's and the question's, or one for both."""
        return (self.embedding,) if self.question_embedding is None else (self.embedding, self.question_embedding)

    def looked_up(self, batch: Batch) -> Tensor:
        """Each text by its own table: [batch, token, size]."""
        embedded: Tensor = self.embedding(batch.tokens)
        if self.question_embedding is None:
            return embedded
        return torch.where((batch.part == QUESTION)[..., None], self.question_embedding(batch.tokens), embedded)

    def encode(self, batch: Batch, *, embedded: Tensor | None = None) -> Encoded:
        """States and scores of the passage, and the question's last state, once."""
        flat = self.embed(batch) if embedded is None else embedded
        passage, question = part_of(batch, PASSAGE), part_of(batch, QUESTION)
        states, end = _read(self.encoder, flat, passage)
        conditional = self.settings.encoding == "conditional"
        read, _ = _read(self.question_encoder, flat, question, end if conditional else None)
        query = summarise_text(self.question_encoder, read, question.present, question.words)
        return Encoded(states, self.scorer(states, query), passage.words, None, query, batch.candidates)

    def decode(self, encoded: Encoded, weights: Tensor) -> Tensor:
        """W₂ tanh(W_p Σ_t α_t h_t + W_q q) for every draw of weights, in the precision of the states."""
        assert encoded.query is not None
        logits: Tensor = self.decoder(encoded.states, weights.to(encoded.states.dtype), encoded.query)
        return self.among(logits, encoded.candidates)  # [batch, draw, class]

    def among(self, logits: Tensor, candidates: Tensor | None) -> Tensor:
        """Logits [batch, ..., class] with those that are no candidates made impossible."""
        if candidates is None:
            return logits
        allowed = possible(candidates, logits.shape[-1]).view(len(logits), *[1] * (logits.dim() - 2), -1)
        return logits.masked_fill(~allowed, IMPOSSIBLE)

    @property
    def texts(self) -> tuple[str, str]:
        """The second asks about the first."""
        return "passage", "question"

    @property
    def layer_kinds(self) -> tuple[str, ...]:
        """Of both encoders and the decoder."""
        inner = "linear" if self.decoder.question is None else "joined"
        return *kinds_of_layers(self.encoder), *kinds_of_layers(self.question_encoder), "pool", inner, "tanh", "linear"

    def layered(self, batch: Batch, embedded: Tensor, layers: LayersByKind) -> Layered:
        """Both texts and the decoder over them."""
        return run_pair(self, batch, embedded, layers)

    def owner(self, batch: Batch) -> Tensor:
        """The key of a word of the passage, -1 for everything else, the question's words too: [batch, token]."""
        return part_of(batch, PASSAGE).owner


class TwoLayers(nn.Module):
    """W₂ tanh(W_p c + W_q q), or without the question; the inner size is half that of a state."""

    def __init__(self, size: int, classes: int, both: bool) -> None:
        super().__init__()
        inner = max(1, size // 2)
        self.context = nn.Linear(size, inner)
        self.question = nn.Linear(size, inner) if both else None
        self.outer = nn.Linear(inner, classes)

    def forward(self, states: Tensor, weights: Tensor, query: Tensor) -> Tensor:
        """[batch, key, size], [batch, draw, key] and [batch, size] -> [batch, draw, class], in their precision."""
        matrix, bias = _cast(self.context, states.dtype)
        if weights.shape[1] > states.shape[1]:  # more draws than keys: mapping the states is less to do
            inner = weights @ (states @ matrix.T) + bias
        else:
            inner = linear(weights @ states, matrix, bias)
        if self.question is not None:
            inner = inner + linear(query, *_cast(self.question, states.dtype))[:, None]
        return linear(inner.tanh(), *_cast(self.outer, states.dtype))


def _cast(layer: nn.Linear, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Weight and bias of a layer in another precision."""
    return layer.weight.to(dtype), layer.bias.to(dtype)


def _read(
    encoder: nn.Module, flat: Tensor, part: TextPart, start: Memory | None = None
) -> tuple[Tensor, Memory | None]:
    """States of one text, and where a recurrent encoder ends."""
    if isinstance(encoder, BiLSTM | BiGRU):
        return encoder.read(part.take(flat), part.present, start)
    return encoder(part.take(flat), part.present), None


def possible(candidates: Tensor, classes: int) -> Tensor:
    """Which classes an example may choose, bool [batch, class]; without any candidate of its own, all."""
    named = torch.zeros(len(candidates), classes + 1, dtype=torch.bool, device=candidates.device).scatter_(
        1, candidates + 1, True
    )[:, 1:]
    return named | ~named.any(-1, keepdim=True)
