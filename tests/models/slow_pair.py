"""The pair model once more, word by word and in float64, from its parameters by name: what tests compare with."""

import math

import torch
from torch import Tensor

from exegete.models.ours.pair import Pair
from exegete.tasks.example import Example

LABELS = ("x", "y", "z")


def weights_of(model: Pair) -> dict[str, Tensor]:
    return {name: value.detach().double() for name, value in model.named_parameters()}


def lstm_step(w: dict[str, Tensor], way: str, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    gates = w[f"weight_ih_l0{way}"] @ x + w[f"bias_ih_l0{way}"] + w[f"weight_hh_l0{way}"] @ h + w[f"bias_hh_l0{way}"]
    n = len(h)
    i, f, g, o = (gates[k * n : (k + 1) * n] for k in range(4))
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def gru_step(w: dict[str, Tensor], way: str, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    of_word = w[f"weight_ih_l0{way}"] @ x + w[f"bias_ih_l0{way}"]
    of_state = w[f"weight_hh_l0{way}"] @ h + w[f"bias_hh_l0{way}"]
    n = len(h)
    r, z = (torch.sigmoid(of_word[k * n : (k + 1) * n] + of_state[k * n : (k + 1) * n]) for k in range(2))
    new = torch.tanh(of_word[2 * n :] + r * of_state[2 * n :])
    return (1 - z) * new + z * h, c


Ends = dict[str, tuple[Tensor, Tensor]]


def recurrent(model: Pair, w: dict[str, Tensor], xs: list[Tensor], start: Ends | None) -> tuple[list[Tensor], Ends]:
    """States of every word and where both ways end; without words that is zero."""
    step, hidden = (lstm_step if model.settings.encoder == "bilstm" else gru_step), model.settings.hidden
    nothing = torch.zeros(hidden, dtype=torch.float64)
    sides, ends = [], {}
    for way in ("", "_reverse"):
        h, c = start[way] if start is not None else (nothing, nothing)
        read = []
        for x in xs if way == "" else reversed(xs):
            h, c = step(w, way, x, h, c)
            read.append(h)
        sides.append(read if way == "" else read[::-1])
        ends[way] = (h, c) if xs else (nothing, nothing)
    return [torch.cat(both) for both in zip(*sides, strict=True)], ends


def word_by_word(model: Pair, w: dict[str, Tensor], xs: list[Tensor]) -> list[Tensor]:
    if model.settings.encoder == "average":
        return [torch.tanh(w["linear.weight"] @ x + w["linear.bias"]) for x in xs]
    states = []
    for t in range(len(xs)):
        parts = []
        for number, width in enumerate((1, 3, 5, 7)):
            total = w[f"convolutions.{number}.bias"].clone()
            for k in range(width):
                if 0 <= (at := t + k - width // 2) < len(xs):
                    total += w[f"convolutions.{number}.weight"][:, :, k] @ xs[at]
            parts.append(total.clamp(min=0))
        states.append(torch.cat(parts))
    return states


def read(model: Pair, w: dict[str, Tensor], texts: list[list[Tensor]]) -> tuple[list[Tensor], Tensor]:
    """States of the passage, wrappers included, and the question's last state, from embedded texts."""
    settings, wrap = model.settings, model.vocabulary.wrap
    kind = {"bilstm": ".lstm", "bigru": ".gru"}.get(settings.encoder, "")
    own, asked = (
        {name.removeprefix(f"{part}{kind}."): value for name, value in w.items() if name.startswith(f"{part}{kind}.")}
        for part in ("encoder", "question_encoder")
    )
    if kind:
        states, end = recurrent(model, own, texts[0], None)
        _, last = recurrent(model, asked, texts[1], end if settings.encoding == "conditional" else None)
        return states, torch.cat([last[""][0], last["_reverse"][0]])
    inside = word_by_word(model, asked, texts[1])
    inside = inside[1:-1] if wrap else inside
    nothing = torch.zeros(model.encoder.out, dtype=torch.float64)
    mean = sum(inside, nothing) / max(1, len(inside))
    most = torch.stack([*inside, nothing]).amax(0)
    return word_by_word(model, own, texts[0]), mean if settings.encoder == "average" else most


def scores_of(model: Pair, w: dict[str, Tensor], states: list[Tensor], q: Tensor) -> list[float]:
    if model.settings.attention == "dot":
        return [float(h @ q) / math.sqrt(len(q)) for h in states]
    asked = w["scorer.question.weight"] @ q + w["scorer.question.bias"]
    inner = [torch.tanh(w["scorer.linear.weight"] @ h + w["scorer.linear.bias"] + asked) for h in states]
    return [float(w["scorer.outer.weight"][0] @ x) for x in inner]


def slow(model: Pair, example: Example, alpha: list[float] | None = None) -> tuple[list[float], list[float]]:
    """Logits and weights of one example, or its logits under given weights."""
    w, wrap = weights_of(model), model.vocabulary.wrap
    texts = [[2, *model.vocabulary.rows(text), 3] if wrap else model.vocabulary.rows(text) for text in example.texts]
    names = ("embedding.weight", "embedding.weight" if model.settings.shared else "question_embedding.weight")
    states, q = read(model, w, [[w[name][token] for token in text] for name, text in zip(names, texts, strict=True)])
    states = states[1:-1] if wrap else states
    if alpha is None:
        scores = torch.tensor([scores_of(model, w, states, q)], dtype=torch.float64)
        alpha = model.project(scores, torch.ones_like(scores).bool())[0].tolist() if states else []
    context = torch.zeros(model.encoder.out, dtype=torch.float64)
    for weight, h in zip(alpha, states, strict=True):
        context = context + weight * h
    inner = w["decoder.context.weight"] @ context + w["decoder.context.bias"]
    if model.settings.reads == "both":
        inner = inner + w["decoder.question.weight"] @ q + w["decoder.question.bias"]
    logits = (w["decoder.outer.weight"] @ torch.tanh(inner) + w["decoder.outer.bias"]).tolist()
    allowed = example.candidates or range(len(logits))
    return [z if c in allowed else -1e4 for c, z in enumerate(logits)], alpha


ODD = (
    Example(50, ((), ("a", "b")), 0),  # nothing to look at
    Example(51, (("a", "b"), ()), 1),  # nothing asked
    Example(52, (("new", "a"), ("b", "new")), 2),  # a word that training never showed
)
