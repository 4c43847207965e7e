"""LRP through a BERT and a LLaMA by hand: forward from their weights, then every layer's relevance as shares of sums.

No gradient is taken: an output z = Σ_i z_i + b that has received R gives summand i the share z_i / z · R, and keeps
what is left for its constant. One text, without padding, in float64.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import gelu, silu


def linear(x: Tensor, map_: Any, received: Tensor) -> Tensor:
    """z_j = Σ_i w_ji x_i + b_j."""
    z = x @ map_.weight.T + (0 if map_.bias is None else map_.bias)
    shares = x[..., None, :] * map_.weight / z[..., None]  # [token, out, in]
    return torch.einsum("toi,to->ti", shares, received)


def summed(a: Tensor, b: Tensor, received: Tensor) -> tuple[Tensor, Tensor]:
    """z = a + b; a constant may be one of them."""
    return a / (a + b) * received, b / (a + b) * received


def layer_norm(x: Tensor, norm: Any, received: Tensor) -> Tensor:
    """y_j = γ_j Σ_k (δ_jk − 1/n) x_k / σ + β_j, with σ a constant: a linear map, written out."""
    n = x.shape[-1]
    out = torch.zeros_like(x)
    for t in range(len(x)):
        deviation = (x[t].var(unbiased=False) + norm.eps).sqrt()
        matrix = norm.weight[:, None] * (torch.eye(n, dtype=x.dtype) - 1 / n) / deviation
        y = matrix @ x[t] + norm.bias
        out[t] = (matrix * x[t] / y[:, None] * received[t][:, None]).sum(0)
    return out


def attended(weights: Tensor, values: Tensor, received: Tensor) -> Tensor:
    """c_id = Σ_j α_ij v_jd, weights as gates."""
    context = weights @ values
    return torch.einsum("ij,jd,id->jd", weights, values, received / context)


def heads(x: Tensor, count: int) -> Tensor:
    """[token, size] to [head, token, size / head]."""
    split: Tensor = x.unflatten(-1, (count, -1))
    return split.transpose(0, 1)


def bert(model: Any, ids: Tensor, label: int) -> tuple[Tensor, Tensor]:
    """Relevance of every piece [token], and the logit."""
    bert, config = model.bert, model.config
    words, rest = bert.embeddings.word_embeddings.weight[ids], bert.embeddings.position_embeddings.weight[: len(ids)]
    rest = rest + bert.embeddings.token_type_embeddings.weight[0]
    x = bert.embeddings.LayerNorm(words + rest)
    steps = []
    for layer in bert.encoder.layer:
        own = layer.attention.self
        q, k, v = (heads(part(x), config.num_attention_heads) for part in (own.query, own.key, own.value))
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        context = (weights @ v).transpose(0, 1).flatten(1)
        mixed = layer.attention.output.dense(context)
        middle = layer.attention.output.LayerNorm(mixed + x)
        inner = gelu(layer.intermediate.dense(middle))
        fed = layer.output.dense(inner)
        steps.append((layer, x, weights, v, context, mixed, middle, inner, fed))
        x = layer.output.LayerNorm(fed + middle)
    pooled = torch.tanh(bert.pooler.dense(x[:1]))
    logits = model.classifier(pooled)
    start = torch.zeros_like(logits)
    start[0, label] = logits[0, label]
    received = torch.zeros_like(x)
    received[:1] = linear(x[:1], bert.pooler.dense, linear(pooled, model.classifier, start))
    for layer, x, weights, v, context, mixed, middle, inner, fed in reversed(steps):
        of_fed, of_middle = summed(fed, middle, layer_norm(fed + middle, layer.output.LayerNorm, received))
        of_inner = linear(inner, layer.output.dense, of_fed)
        of_middle = of_middle + linear(middle, layer.intermediate.dense, of_inner)
        norm = layer.attention.output.LayerNorm
        of_mixed, of_x = summed(mixed, x, layer_norm(mixed + x, norm, of_middle))
        of_context = heads(linear(context, layer.attention.output.dense, of_mixed), len(weights))
        of_values = torch.stack([attended(*each) for each in zip(weights, v, of_context, strict=True)])
        received = of_x + linear(x, layer.attention.self.value, of_values.transpose(0, 1).flatten(1))
    of_words, _ = summed(words, rest, layer_norm(words + rest, bert.embeddings.LayerNorm, received))
    return of_words.sum(-1), logits[0, label]


def rms(x: Tensor, norm: Any) -> Tensor:
    scale: Tensor = norm.weight / (x.square().mean(-1, keepdim=True) + norm.variance_epsilon).sqrt()
    return x * scale


def llama(model: Any, ids: Tensor, label: int, weights_of: list[Tensor]) -> tuple[Tensor, Tensor]:
    """The same; its weights [head, query, key] of every layer are given, so that its positions need no code here.

    An RMS norm multiplies every number by a constant, and hands on what it got.
    """
    body, groups = model.model, model.config.num_attention_heads // model.config.num_key_value_heads
    x = words = body.embed_tokens.weight[ids]
    steps = []
    for layer, weights in zip(body.layers, weights_of, strict=True):
        normed = rms(x, layer.input_layernorm)
        v = heads(layer.self_attn.v_proj(normed), len(weights) // groups).repeat_interleave(groups, 0)
        context = (weights @ v).transpose(0, 1).flatten(1)
        mixed = layer.self_attn.o_proj(context)
        middle = x + mixed
        second = rms(middle, layer.post_attention_layernorm)
        gate, up = silu(layer.mlp.gate_proj(second)), layer.mlp.up_proj(second)
        fed = layer.mlp.down_proj(gate * up)
        steps.append((layer, x, weights, normed, v, context, mixed, middle, second, gate * up, fed))
        x = middle + fed
    last = rms(x, body.norm)[-1:]
    logits = model.score(last)
    start = torch.zeros_like(logits)
    start[0, label] = logits[0, label]
    received = torch.zeros_like(words)
    received[-1:] = linear(last, model.score, start)
    for layer, x, weights, normed, v, context, mixed, middle, second, product, fed in reversed(steps):
        of_fed, of_middle = summed(fed, middle, received)
        half = linear(product, layer.mlp.down_proj, of_fed) / 2
        of_second = linear(second, layer.mlp.gate_proj, half) + linear(second, layer.mlp.up_proj, half)
        of_mixed, of_x = summed(mixed, x, of_middle + of_second)
        of_context = heads(linear(context, layer.self_attn.o_proj, of_mixed), len(weights))
        each = [attended(*one) for one in zip(weights, v, of_context, strict=True)]
        of_values = torch.stack(each).unflatten(0, (-1, groups)).sum(1).transpose(0, 1).flatten(1)
        received = of_x + linear(normed, layer.self_attn.v_proj, of_values)
    return received.sum(-1), logits[0, label]
