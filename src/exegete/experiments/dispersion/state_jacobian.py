"""State Jacobian: which words is a hidden state made of? (Meister et al. 2021, equation 5)

    g_{h_p}(x_i) = ‖∂‖h_p‖₂ / ∂e_i‖₂ / Σ_k ‖∂‖h_p‖₂ / ∂e_k‖₂

One backward pass per state. Any encoder: a text runs as many copies as it has words, copy p is asked for h_p. A BiLSTM
needs less: what its forward half read up to p and its backward half from p on is computed once, and all states go back
through time side by side, each from its own place.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from exegete.base.places import places
from exegete.base.ties import levels
from exegete.models.capabilities import Pooling, Recurrent
from exegete.tasks.batching import Batch

TOKENS = 2048  # tokens that one pass holds: enough for fast products, few enough for the cache


def word_shares(model: Pooling, batch: Batch) -> Tensor:
    """g_{h_p}(x_i), float64 [text, p, i], of texts of one length; NaN for a state that no word moves."""
    texts, n = len(batch.ids), int(batch.words[0].sum())
    if bool((batch.lengths != n).any()):
        raise ValueError("word_shares takes texts of one length: batch them by length")
    if not n:
        return torch.zeros(texts, 0, 0, dtype=torch.float64, device=batch.ids.device)
    norms = gradient_norms(model, batch).double()  # [text, state, token]
    pairs = batch.words[:, :, None] & batch.words[:, None, :]
    kept = norms[pairs].view(texts, n, n)
    return kept / kept.sum(-1, keepdim=True)  # 0 / 0 is NaN


def gradient_norms(model: Pooling, batch: Batch) -> Tensor:
    """‖∂‖h_p‖₂ / ∂e_i‖₂ for every state p and token i, [text, state, token]; 0 for states that are no word's."""
    if isinstance(model, Recurrent) and not batch.ragged:
        return _by_time(model, batch)
    return _by_copies(model, batch)


def _by_copies(model: Pooling, batch: Batch) -> Tensor:
    """A copy of the text per state, by autograd."""
    texts, width = batch.tokens.shape
    norms = torch.zeros(texts, width, width, device=batch.tokens.device)
    text, state = batch.words.nonzero(as_tuple=True)
    for asks in places(text).split(max(1, TOKENS // width)):
        copies = batch.rows(text[asks])
        embedded = model.embed(copies).detach().requires_grad_()
        states = model.encode(copies, embedded=embedded).states
        lengths = torch.linalg.vector_norm(states[places(asks), state[asks]], dim=-1)
        (gradient,) = torch.autograd.grad(lengths.sum(), embedded)  # 0 at a state of length 0
        norms[text[asks], state[asks]] = gradient.norm(dim=-1)
    return norms


class _Half(NamedTuple):
    """One direction of a BiLSTM on some texts, in the order in which it reads."""

    gates: Tensor  # [position, text, 4, hidden]: i, f, g, o
    cells: Tensor  # [1 + position, text, hidden], the zero cell in front
    hidden: Tensor  # [position, text, hidden]
    inward: Tensor  # [4 hidden, size]: W_ih
    recurrent: Tensor  # [4 hidden, hidden]: W_hh


@torch.no_grad()
def _by_time(model: Recurrent, batch: Batch) -> Tensor:
    """Norms of gradients for a BiLSTM, without copies."""
    embedded, width = model.embed(batch), batch.tokens.shape[1]
    parts = embedded.split(max(1, TOKENS // (2 * width)))
    norms = torch.cat([_texts_by_time(model, part.transpose(0, 1)) for part in parts])  # [text, state, token]
    return norms.masked_fill(~batch.words[:, :, None], 0)


def _texts_by_time(model: Recurrent, embedded: Tensor) -> Tensor:
    """Norms [text, state, token] from embeddings [position, text, size].

    A word before h_p reaches it through the forward half alone, a word after it through the backward half alone; only
    word p itself goes both ways, and its two gradients are added before their norm is taken.
    """
    ahead, back = _half(model, embedded, ""), _half(model, embedded.flip(0), "_reverse")
    states = torch.cat([ahead.hidden, back.hidden.flip(0)], -1)
    length = states.norm(dim=-1, keepdim=True)
    unit = torch.where(length > 0, states / length, 0.0)  # ∂‖h‖ / ∂h
    along, against = unit.chunk(2, -1)
    earlier, own = _through_time(ahead, along)
    later, mine = _through_time(back, against.flip(0))
    norms = earlier + later.flip(0, 1)  # [state, token, text], nothing on the diagonal yet
    both = (own + mine.flip(0)).norm(dim=-1)  # [position, text]
    return (norms + torch.diag_embed(both.T).permute(1, 2, 0)).permute(2, 0, 1)


def _half(model: Recurrent, embedded: Tensor, suffix: str) -> _Half:
    """Read the texts, keeping what the way back needs."""
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    inward, recurrent, *biases = (getattr(model.lstm, f"{name}_l0{suffix}") for name in names)
    size = recurrent.shape[1]
    before = embedded @ inward.T + sum(biases)  # [position, text, 4 hidden]
    gates, cells, hidden = [], [embedded.new_zeros(embedded.shape[1], size)], []
    h = cells[0]
    for z in before:
        i, f, g, o = (z + h @ recurrent.T).chunk(4, -1)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        cells.append(f * cells[-1] + i * g)
        h = o * cells[-1].tanh()
        gates.append(torch.stack([i, f, g, o], 1))
        hidden.append(h)
    return _Half(torch.stack(gates), torch.stack(cells), torch.stack(hidden), inward, recurrent)


def _through_time(half: _Half, unit: Tensor) -> tuple[Tensor, Tensor]:
    """Back through one direction from every state at once, state p joining at its own step.

    Norms [state, token, text] of the tokens read before each state, and the gradients [token, text, size] by a state's
    own token.
    """
    steps, texts, size = unit.shape
    norms = unit.new_zeros(steps, steps, texts)
    own = unit.new_zeros(steps, texts, half.inward.shape[1])
    dh, dc = torch.zeros_like(unit), torch.zeros_like(unit)  # [state, text, hidden]: ∂‖h_p‖ by hidden state and cell
    for s in reversed(range(steps)):
        dh[s] = unit[s]
        by_hidden, by_cell, through = _slopes(half, s)
        h, c = dh[s:], dc[s:]
        c += h * through
        dz = c[:, :, None] * by_cell  # [state, text, 4, hidden]
        dz[:, :, 3] = h * by_hidden
        flat = dz.flatten(2).flatten(0, 1)  # [state · text, 4 hidden]
        gradient = (flat @ half.inward).view(steps - s, texts, -1)
        own[s] = gradient[0]
        norms[s + 1 :, s] = gradient[1:].norm(dim=-1)
        dh[s:] = (flat @ half.recurrent).view(steps - s, texts, size)
        dc[s:] *= half.gates[s, :, 1]
    return norms, own


def _slopes(half: _Half, s: int) -> tuple[Tensor, Tensor, Tensor]:
    """Derivatives at step s, the same for all states: of h by o's input, of c by all inputs (o: 0), of h by c."""
    i, f, g, o = half.gates[s].unbind(1)  # [text, hidden]
    bent = half.cells[s + 1].tanh()
    by_cell = torch.stack([g * i * (1 - i), half.cells[s] * f * (1 - f), i * (1 - g * g), torch.zeros_like(o)], 1)
    return bent * o * (1 - o), by_cell, o * (1 - bent * bent)


def own_word(shares: Tensor) -> tuple[Tensor, Tensor]:
    """The share of word p in its own state and its rank among the words (1: highest; ties share a rank): [text, p]."""
    own, level = shares.diagonal(dim1=1, dim2=2), levels(shares)  # [text, p], [text, p, word]
    mine = level.diagonal(dim1=1, dim2=2)[..., None]
    higher, equal = (level > mine).sum(-1).double(), (level == mine).sum(-1).double() - 1
    return own, (1 + higher + equal / 2).where(~own.isnan(), torch.nan)
