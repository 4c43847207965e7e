"""Layers of a BERT and a GPT-2 taken apart by hand from their weights: one text, float64, loops over words."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import gelu

Words = Sequence[list[int]]  # the pieces of every word


class Attended(NamedTuple):
    """An attention: Σ_h α_h v_h W_h + b."""

    weights: Tensor  # [head, query, key]
    values: Tensor  # [head, key, size / heads], with their bias
    out: Tensor  # [head, size / heads, size]
    bias: Tensor

    def output(self, values: Tensor) -> Tensor:
        return torch.einsum("hij,hjd,hde->ie", self.weights, values, self.out) + self.bias

    def gives(self, query: int, pieces: list[int]) -> Tensor:
        """Σ_h α_ij W_h v_j of the pieces of a word."""
        total = torch.zeros_like(self.bias)
        for j in pieces:
            for h in range(len(self.weights)):
                total = total + self.weights[h, query, j] * (self.values[h, j] @ self.out[h])
        return total


class Layer(NamedTuple):
    """A layer at a text."""

    below: Tensor
    attended: Attended
    rest: Callable[[Tensor], Tensor]  # the layer's output from that of its attention
    block: Tensor  # the state after attention and residual (and norm)
    first: Callable[[int, Tensor], Tensor]  # what goes into that sum at a query, through the block's norm
    second: Callable[[int, Tensor], Tensor]  # the same through the layer's last norm


def heads(x: Tensor, count: int) -> Tensor:
    split: Tensor = x.unflatten(-1, (count, -1))
    return split.transpose(0, 1)


def through(norm: Any, state: Tensor) -> Callable[[int, Tensor], Tensor]:
    """A layer norm without its bias that divides by the deviation of given states [token, size]."""

    def linear(query: int, vector: Tensor) -> Tensor:
        deviation = (state[query].var(unbiased=False) + norm.eps).sqrt()
        scaled: Tensor = norm.weight * (vector - vector.mean()) / deviation
        return scaled

    return linear


def bert(model: Any, ids: Tensor) -> list[Layer]:
    own, count = model.bert, model.config.num_attention_heads
    words, places = own.embeddings.word_embeddings.weight[ids], own.embeddings.position_embeddings.weight[: len(ids)]
    x = own.embeddings.LayerNorm(words + places + own.embeddings.token_type_embeddings.weight[0])
    found = []
    for layer in own.encoder.layer:
        at, dense = layer.attention.self, layer.attention.output.dense
        q, k, v = (heads(part(x), count) for part in (at.query, at.key, at.value))
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        attended = Attended(weights, v, dense.weight.T.unflatten(0, (count, -1)), dense.bias)

        def rest(mixed: Tensor, layer: Any = layer, x: Tensor = x) -> Tensor:
            middle = layer.attention.output.LayerNorm(mixed + x)
            out: Tensor = layer.output.LayerNorm(layer.output.dense(gelu(layer.intermediate.dense(middle))) + middle)
            return out

        total = attended.output(v) + x
        middle = layer.attention.output.LayerNorm(total)
        fed = layer.output.dense(gelu(layer.intermediate.dense(middle))) + middle
        norms = through(layer.attention.output.LayerNorm, total), through(layer.output.LayerNorm, fed)
        found.append(Layer(x, attended, rest, middle, *norms))
        x = rest(attended.output(v))
    return found


def gpt2(model: Any, ids: Tensor) -> list[Layer]:
    own, count = model.transformer, model.config.n_head
    x = own.wte.weight[ids] + own.wpe.weight[: len(ids)]
    found = []
    for layer in own.h:
        normed, dense = layer.ln_1(x), layer.attn.c_proj
        made = normed @ layer.attn.c_attn.weight + layer.attn.c_attn.bias
        q, k, v = (heads(part, count) for part in made.chunk(3, -1))
        ahead = torch.ones(len(ids), len(ids), dtype=torch.bool).triu(1)
        weights = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(ahead, -torch.inf).softmax(-1)
        attended = Attended(weights, v, dense.weight.unflatten(0, (count, -1)), dense.bias)

        def rest(mixed: Tensor, layer: Any = layer, x: Tensor = x) -> Tensor:
            middle = mixed + x
            inner = layer.ln_2(middle) @ layer.mlp.c_fc.weight + layer.mlp.c_fc.bias
            out: Tensor = gelu(inner, approximate="tanh") @ layer.mlp.c_proj.weight + layer.mlp.c_proj.bias + middle
            return out

        found.append(Layer(x, attended, rest, attended.output(v) + x, lambda _, v: v, lambda _, v: v))
        x = rest(attended.output(v))
    return found


def part(layer: Layer, query: int, pieces: list[int]) -> Tensor:
    """T_i of a word, with the state itself where it is one of its pieces."""
    total = layer.attended.gives(query, pieces)
    return layer.first(query, total + layer.below[query] if query in pieces else total)


def value_zeroing(layer: Layer, words: Words) -> Tensor:
    """1 − cos, [piece, word]."""
    own = layer.rest(layer.attended.output(layer.attended.values))
    columns = []
    for pieces in words:
        values = layer.attended.values.clone()
        values[:, pieces] = 0
        other = layer.rest(layer.attended.output(values))
        columns.append(1 - (own * other).sum(-1) / (own.norm(dim=-1) * other.norm(dim=-1)))
    return torch.stack(columns, -1)


def alti(layer: Layer, words: Words) -> Tensor:
    """max(0, ‖y‖₁ − ‖y − T‖₁)."""
    out = torch.zeros(len(layer.below), len(words), dtype=layer.below.dtype)
    for i, y in enumerate(layer.block):
        for w, pieces in enumerate(words):
            out[i, w] = max(0.0, float(y.abs().sum() - (y - part(layer, i, pieces)).abs().sum()))
    return out


def globenc(layer: Layer, words: Words) -> Tensor:
    """‖LN₂(LN₁(…))‖₂."""
    out = torch.zeros(len(layer.below), len(words), dtype=layer.below.dtype)
    for i in range(len(layer.below)):
        for w, pieces in enumerate(words):
            out[i, w] = layer.second(i, part(layer, i, pieces)).norm()
    return out


def contribution(layer: Layer, words: Words, by: str) -> Tensor:
    """‖Σ α f(x)‖₂, or its share in the direction of the sum."""
    out = torch.zeros(len(layer.below), len(words), dtype=layer.below.dtype)
    for i in range(len(layer.below)):
        gives = [layer.attended.gives(i, pieces) for pieces in words]
        total = torch.stack(gives).sum(0)
        for w, vector in enumerate(gives):
            out[i, w] = vector.norm() if by == "norm" else vector @ total / (total @ total)
    return out


def of_words(matrix: Tensor, words: Words) -> Tensor:
    """The mean over the query pieces of every word."""
    return torch.stack([matrix[pieces].mean(0) if pieces else torch.zeros_like(matrix[0]) for pieces in words])


def rolled(matrices: list[Tensor], query: int) -> Tensor:
    """The row of a query of the last layer, every layer's rows as shares, down to the words."""
    row = torch.zeros(len(matrices[0]), dtype=torch.float64)
    row[query] = 1.0
    for matrix in reversed(matrices):
        total = matrix.sum(-1, keepdim=True)
        row = row @ (matrix / total.where(total > 0, 1.0))
    return row
