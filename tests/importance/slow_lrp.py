"""LRP once more, number by number in plain Python, from the formulas of Arras et al.: what the tests compare with.

Everything rests on `shares`. Each encoder has a forward pass that remembers and a backward pass that hands down.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from exegete.models.ours.classifier import PoolingClassifier
from exegete.tasks.batching import Batch

Row = list[float]
Rows = list[Row]


def shares(summands: Row, bias: float, relevance: float, epsilon: float = 0.001, delta: float = 1.0) -> Row:
    """R_{i←j} = (z_i + (ε sgn z + δ b) / N) / (z + ε sgn z) · R, sgn 0 = +1."""
    z, n = sum(summands) + bias, len(summands)
    stabiliser = epsilon if z >= 0 else -epsilon
    return [(z_i + (stabiliser + delta * bias) / n) / (z + stabiliser) * relevance for z_i in summands]


def linear_down(weight: Rows, x: Row, bias: Row, relevance: Row, **dials: float) -> Row:
    """Every output in turn hands its relevance to the inputs."""
    out = [0.0] * len(x)
    for w, b, r in zip(weight, bias, relevance, strict=True):
        for i, share in enumerate(shares([w_i * x_i for w_i, x_i in zip(w, x, strict=True)], b, r, **dials)):
            out[i] += share
    return out


def dot(a: Row, b: Row) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


class Slow(NamedTuple):
    """States of the tokens, and how their relevance goes down to [token, size], then to what initial states absorb."""

    states: Rows
    down: Callable[[Rows], tuple[Rows, Row]]


def average(model: PoolingClassifier, xs: Rows, dials: dict[str, float]) -> Slow:
    linear: Any = model.encoder.linear
    W, b = linear.weight.tolist(), linear.bias.tolist()
    act = math.tanh if model.settings.model_dump()["activation"] == "tanh" else lambda z: max(z, 0.0)
    states = [[act(dot(w, x) + b_j) for w, b_j in zip(W, b, strict=True)] for x in xs]
    return Slow(states, lambda R: ([linear_down(W, x, b, r, **dials) for x, r in zip(xs, R, strict=True)], []))


def cnn(model: PoolingClassifier, xs: Rows, dials: dict[str, float]) -> Slow:
    parts: Any = model.encoder.convolutions
    filters = [
        (f.tolist(), b.item(), part.kernel_size[0] // 2)
        for part in parts
        for f, b in zip(part.weight, part.bias, strict=True)
    ]  # every filter is [size][width]

    def inputs(t: int, half: int) -> list[tuple[int, int, int]]:
        """Token, unit and tap of what the window around t sees of the text."""
        return [(t + o, d, o + half) for o in range(-half, half + 1) if 0 <= t + o < len(xs) for d in range(len(xs[0]))]

    def summands(t: int, f: Rows, half: int) -> Row:
        return [f[d][tap] * xs[s][d] for s, d, tap in inputs(t, half)]

    states = [[max(sum(summands(t, f, half)) + b, 0.0) for f, b, half in filters] for t in range(len(xs))]

    def down(R: Rows) -> tuple[Rows, Row]:
        out = [[0.0] * len(xs[0]) for _ in xs]
        for t, row in enumerate(R):
            for (f, b, half), r in zip(filters, row, strict=True):
                given = shares(summands(t, f, half), b, r, **dials)
                for (s, d, _), share in zip(inputs(t, half), given, strict=True):
                    out[s][d] += share
        return out, []

    return Slow(states, down)


def _gates(layer: Any, suffix: str, names: str) -> dict[str, Any]:
    """W, U, b and b' of every gate."""
    n, tables = layer.hidden_size, ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    whole = [getattr(layer, f"{table}_l0{suffix}").tolist() for table in tables]
    return {name: tuple(w[k * n : (k + 1) * n] for w in whole) for k, name in enumerate(names)}


def lstm_way(layer: Any, suffix: str, xs: Rows, dials: dict[str, float]) -> Slow:
    gates, n = _gates(layer, suffix, "ifgo"), layer.hidden_size
    h, c, memory, states = [0.0] * n, [0.0] * n, [], []
    for x in xs:
        pre = {k: [dot(W[j], x) + dot(U[j], h) + b[j] + b_[j] for j in range(n)] for k, (W, U, b, b_) in gates.items()}
        i, f, o = ([sigmoid(z) for z in pre[k]] for k in "ifo")
        kept, new = [f[j] * c[j] for j in range(n)], [i[j] * math.tanh(pre["g"][j]) for j in range(n)]
        memory.append((x, h, new, kept))
        c = [a + b for a, b in zip(new, kept, strict=True)]
        h = [o[j] * math.tanh(c[j]) for j in range(n)]
        states.append(h)

    def down(R: Rows) -> tuple[Rows, Row]:
        W, U, b, b_ = gates["g"]
        of_h, of_c, out = [0.0] * n, [0.0] * n, [[0.0] * len(xs[0]) for _ in xs]
        for t in reversed(range(len(xs))):
            x, before, new, kept = memory[t]
            of_c = [of_c[j] + of_h[j] + R[t][j] for j in range(n)]  # all that h has goes to tanh c
            both = [shares([new[j], kept[j]], 0.0, of_c[j], **dials) for j in range(n)]
            of_c = [kept_share for _, kept_share in both]
            joined = [W[j] + U[j] for j in range(n)]
            given = linear_down(joined, x + before, [b[j] + b_[j] for j in range(n)], [g for g, _ in both], **dials)
            out[t], of_h = given[: len(x)], given[len(x) :]
        return out, [sum(of_h), sum(of_c)]

    return Slow(states, down)


def gru_way(layer: Any, suffix: str, xs: Rows, dials: dict[str, float]) -> Slow:
    gates, n = _gates(layer, suffix, "rzn"), layer.hidden_size
    h, memory, states = [0.0] * n, [], []
    for x in xs:
        r, z = (
            [sigmoid(dot(W[j], x) + b[j] + dot(U[j], h) + b_[j]) for j in range(n)]
            for W, U, b, b_ in (gates["r"], gates["z"])
        )
        W, U, b, b_ = gates["n"]
        new = [math.tanh(dot(W[j], x) + b[j] + r[j] * (dot(U[j], h) + b_[j])) for j in range(n)]
        memory.append((x, h, r, [(1 - z[j]) * new[j] for j in range(n)], [z[j] * h[j] for j in range(n)]))
        h = [(1 - z[j]) * new[j] + z[j] * h[j] for j in range(n)]
        states.append(h)

    def down(R: Rows) -> tuple[Rows, Row]:
        W, U, b, b_ = gates["n"]
        of_h, out = [0.0] * n, [[0.0] * len(xs[0]) for _ in xs]
        for t in reversed(range(len(xs))):
            x, before, r, new, kept = memory[t]
            both = [shares([new[j], kept[j]], 0.0, of_h[j] + R[t][j], **dials) for j in range(n)]
            joined = [W[j] + [r[j] * u for u in U[j]] for j in range(n)]
            bias = [b[j] + r[j] * b_[j] for j in range(n)]
            given = linear_down(joined, x + before, bias, [signal for signal, _ in both], **dials)
            out[t] = given[: len(x)]
            of_h = [a + k for a, (_, k) in zip(given[len(x) :], both, strict=True)]
        return out, [sum(of_h)]

    return Slow(states, down)


def both_ways(model: PoolingClassifier, xs: Rows, dials: dict[str, float]) -> Slow:
    encoder: Any = model.encoder
    layer, way = (encoder.lstm, lstm_way) if model.name == "bilstm" else (encoder.gru, gru_way)
    right, left = way(layer, "", xs, dials), way(layer, "_reverse", xs[::-1], dials)
    n = layer.hidden_size

    def down(R: Rows) -> tuple[Rows, Row]:
        a, start = right.down([r[:n] for r in R])
        b, end = left.down([r[n:] for r in R][::-1])
        total = [[p + q for p, q in zip(u, v, strict=True)] for u, v in zip(a, b[::-1], strict=True)]
        return total, [part for pair in zip(start, end, strict=True) for part in pair]

    return Slow([a + b for a, b in zip(right.states, left.states[::-1], strict=True)], down)


ENCODERS = {"bilstm": both_ways, "bigru": both_ways, "average": average, "cnn": cnn}


def attention(model: PoolingClassifier, states: Rows, words: list[bool]) -> Row:
    """softmax(v · tanh(A h + a)) over the words."""
    scorer: Any = model.scorer
    A, a, v = scorer.linear.weight.tolist(), scorer.linear.bias.tolist(), scorer.outer.weight[0].tolist()
    scores = [dot(v, [math.tanh(dot(w, h) + b) for w, b in zip(A, a, strict=True)]) for h in states]
    grown = [math.exp(s) if word else 0.0 for s, word in zip(scores, words, strict=True)]
    return [g / sum(grown) for g in grown]


def relevance(model: PoolingClassifier, batch: Batch, label: int, **dials: float) -> tuple[Row, Row, float]:
    """Relevance of every token, what initial states absorb (h right, h left, c right, c left), and the logit."""
    words: list[bool] = batch.words[0].tolist()
    slow = ENCODERS[model.name](model, model.embed(batch)[0].tolist(), dials)
    alpha = attention(model, slow.states, words)
    context = [sum(a * h[d] for a, h in zip(alpha, slow.states, strict=True)) for d in range(len(slow.states[0]))]
    side = (-0.5 if label == 0 else 0.5) if model.one_output else 1.0
    row = 0 if model.one_output else label
    w, b = [side * x for x in model.decoder.weight[row].tolist()], side * model.decoder.bias[row].item()
    logit = dot(w, context) + b
    of_context = linear_down([w], context, [b], [logit], **dials)
    of_states = [[0.0] * len(context) for _ in words]
    attended = [t for t, word in enumerate(words) if word]
    for d, r in enumerate(of_context):
        summands = [alpha[t] * slow.states[t][d] for t in attended]
        for t, share in zip(attended, shares(summands, 0.0, r, **dials), strict=True):
            of_states[t][d] = share
    of_words, absorbed = slow.down(of_states)
    return [sum(row) for row in of_words], absorbed, logit
