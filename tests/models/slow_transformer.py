"""The Transformer of Vaswani et al. (2017), sections 3.1 to 3.5, in loops over heads, queries and keys."""

import math

import torch
from torch import Tensor, nn

from exegete.models.ours.self_attention import DecoderLayer, EncoderLayer, MultiHead, Residual
from exegete.models.ours.transformer_translator import TransformerTranslator
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import END, START


def slow_norm(norm: nn.LayerNorm, x: Tensor) -> Tensor:
    return (x - x.mean()) / (x.var(unbiased=False) + norm.eps).sqrt() * norm.weight + norm.bias


def slow_attention(part: MultiHead, queries: list[Tensor], keys: list[Tensor], causal: bool) -> list[Tensor]:
    """Equation 1, head by head and query by query; softmax only."""
    size = len(queries[0]) // part.heads
    found = []
    for i, x in enumerate(queries):
        seen = keys[: i + 1] if causal else keys
        heads = []
        for head in range(part.heads):
            own = slice(head * size, (head + 1) * size)
            q = part.query(x)[own]
            parts = [math.exp(float(q @ part.key(k)[own]) / math.sqrt(size)) for k in seen]
            total = sum(parts)
            heads.append(
                sum((p / total * part.value(k)[own] for p, k in zip(parts, seen, strict=True)), torch.zeros(size))
            )
        found.append(part.out(torch.cat(heads)))
    return found


def slow_residual(around: Residual, xs: list[Tensor], inside: list[Tensor]) -> list[Tensor]:
    total = [x + y for x, y in zip(xs, inside, strict=True)]
    return total if around.first else [slow_norm(around.norm, x) for x in total]


def entered(around: Residual, xs: list[Tensor]) -> list[Tensor]:
    return [slow_norm(around.norm, x) for x in xs] if around.first else xs


def slow_placed(table: nn.Embedding, rows: list[int]) -> list[Tensor]:
    size = table.weight.shape[1]
    found = []
    for place, row in enumerate(rows):
        angles = [place / 10_000 ** (2 * (i // 2) / size) for i in range(size)]
        wave = [math.cos(a) if i % 2 else math.sin(a) for i, a in enumerate(angles)]
        found.append(table.weight[row] * math.sqrt(size) + torch.tensor(wave))
    return found


def slow_feed_forward(layer: EncoderLayer | DecoderLayer, xs: list[Tensor]) -> list[Tensor]:
    first, second = layer.feed_forward[0], layer.feed_forward[3]
    given = entered(layer.around_feed_forward, xs)
    return slow_residual(layer.around_feed_forward, xs, [second(first(x).clamp(min=0)) for x in given])


def slow_logits(model: TransformerTranslator, example: Example) -> Tensor:
    """Sections 3.1 to 3.5 for one sentence: [step, word]."""
    rows = model.vocabulary.rows
    xs = slow_placed(model.embedding, [START, *rows(example.texts[0]), END])
    for layer in model.encoder.layers:
        assert isinstance(layer, EncoderLayer)
        given = entered(layer.around_attention, xs)
        xs = slow_residual(layer.around_attention, xs, slow_attention(layer.attention, given, given, False))
        xs = slow_feed_forward(layer, xs)
    xs = [slow_norm(model.encoder.leave, x) if isinstance(model.encoder.leave, nn.LayerNorm) else x for x in xs]
    ys = slow_placed(model.target_embedding, [START, *rows(example.texts[1])])
    for layer in model.decoder.each:
        given = entered(layer.around_own, ys)
        ys = slow_residual(layer.around_own, ys, slow_attention(layer.own, given, given, True))
        given = entered(layer.around_cross, ys)
        ys = slow_residual(layer.around_cross, ys, slow_attention(layer.cross, given, xs, False))
        ys = slow_feed_forward(layer, ys)
    ys = [slow_norm(model.decoder.leave, y) if isinstance(model.decoder.leave, nn.LayerNorm) else y for y in ys]
    weight = model.target_embedding.weight if model.settings.tied else model.get_parameter("output.weight")
    return torch.stack([weight @ y + model.bias for y in ys])
