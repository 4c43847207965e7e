"""LRP: hand a prediction's logit back, layer by layer, to the words (Arras et al. 2017, 2019).

A word's relevance is its part of the logit, for (> 0) or against (< 0) the class. The parts of all words, of start and
end symbols and of the initial states of recurrent encoders sum to the logit. The rules are those of
`exegete.importance.relevance`; a model that is `Relevant` runs its layers by them. Of a pair, the words of both texts
share the logit, and those of the explained one are shown.

A model of transformers is `Composed` of torch's functions, and these have rules of their own (`torch_rules`). Biases,
positions and other constants keep their part there; with it, all parts sum to the logit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

from exegete.base.errors import UsageError
from exegete.base.places import places
from exegete.importance.contract import Quantity, Scores, Target, cost, explained, on_words, predicted
from exegete.importance.derivative import copy_passes
from exegete.importance.relevance import RULES, Dials, RelevantLayers
from exegete.importance.torch_rules import GateRule, relevant
from exegete.models.capabilities import Composed, Relevant
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch

MIXED = 1e-3  # an error that is no rounding any more


class Relevance(NamedTuple):
    """The parts of the explained logits."""

    tokens: Tensor  # [batch, token]: words, and start and end symbols; 0 on padding
    initial: Tensor  # [batch, state]: what h (and c) of each direction absorb, or all constants of a transformer
    logit: Tensor  # [batch]
    label: Tensor  # [batch]

    @property
    def error(self) -> Tensor:
        """|Σ R − logit| / Σ|R|; 1 where nobody got any (a text without words)."""  # [batch]
        parts = torch.cat([self.tokens, self.initial], -1)
        size = parts.abs().sum(-1)
        return torch.where(size > 0, (parts.sum(-1) - self.logit).abs() / size, (self.logit != 0).double())


@dataclass(frozen=True)
class Lrp:
    """Layer-wise relevance propagation, rule ε.

    Gates (in LSTM and GRU, and attention) say how much passes and get nothing. With `bias`, the inputs of a layer share
    the relevance of its bias; without, that part is lost, and `Scores.error` says how much.
    """

    family: ClassVar[str] = "relevance"
    label: ClassVar[str] = "LRP"

    explains: ClassVar[tuple[Quantity, ...]] = ("logit",)
    epsilon: float = 0.001
    bias: bool = True
    attention: GateRule = "gates"  # of transformers: or half, which gives weights one half, and does not conserve

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < float("inf"):
            raise UsageError(f"importance 'lrp': epsilon is a number above 0, not {self.epsilon}")

    def refuses(self, model: Predictor) -> str | None:
        """Every layer needs a rule."""
        if isinstance(model, Composed):
            said = "lrp has no epsilon and no bias to set on a model of transformers: leave them out"
            return None if Lrp(attention=self.attention) == self else said
        if isinstance(model, Relevant) and set(model.layer_kinds) <= RULES.keys():
            halved = "lrp:attention=half is for models of transformers: weights are gates elsewhere, leave it out"
            return None if self.attention == "gates" else halved
        known = "bilstm, bigru, average, cnn, pair or hf"
        return f"lrp has no rules for the layers of {type(model).__name__}: use it on {known}"

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        """One pass forward and one backward, in float64 where the rules are those of layers."""
        if (reason := self.refuses(model)) is not None:
            raise UsageError(reason)
        if target is not None and target.of != "logit":
            raise UsageError(f"lrp explains the logit of a class, not its {target.of}: ask for of=logit")
        if isinstance(model, Composed):
            found = hand_back(model, batch, target, self.attention)
        else:
            assert isinstance(model, Relevant)
            found = relevance(model, batch, target, Dials(self.epsilon, self.bias))
        values, once = on_words(found.tokens, batch), cost(batch, forward=1, backward=1)
        return Scores(values, signed=True, target=target or Target(found.label), error=found.error, cost=once)


def relevance(model: Relevant, batch: Batch, target: Target | None, dials: Dials) -> Relevance:
    """The parts of every text's logit. Texts of one length go together, so that there is no padding."""
    width, order, parts = batch.tokens.shape[1], [], []
    for rows, texts in _of_equal_lengths(batch):
        found = _relevance(model, texts, None if target is None else target.at(rows), RelevantLayers(dials))
        order.append(rows)
        parts.append(found._replace(tokens=pad(found.tokens, (0, width - found.tokens.shape[1]))))
    back = torch.cat(order).argsort()
    return Relevance(*(torch.cat(columns)[back] for columns in zip(*parts, strict=True)))


def _of_equal_lengths(batch: Batch) -> Iterator[tuple[Tensor, Batch]]:
    """Which examples have texts of the same lengths, and these."""
    if not bool((batch.part > 0).any()):
        yield from copy_passes(batch, places(batch.ids))
        return
    lengths = torch.stack([(batch.part == text).sum(-1) for text in range(int(batch.part.max()) + 1)], -1)
    for alike in lengths.unique(dim=0):
        rows = (lengths == alike).all(-1).nonzero()[:, 0]
        yield rows, batch.rows(rows)


def _relevance(model: Relevant, texts: Batch, target: Target | None, layers: RelevantLayers) -> Relevance:
    """Forward in layers that carry relevance, and back from the logit of one class, or from two."""
    with torch.enable_grad():
        x = model.embed(texts).detach().double().requires_grad_()
        logits, initial = model.layered(texts, x, layers)
    target = target or predicted(logits)
    sign = one_hot(target.label, logits.shape[-1])
    if target.contrast is not None:
        sign = sign - one_hot(target.contrast, logits.shape[-1])
    start = logits.detach() * sign  # R of the output: the class's logit (minus that of the other), 0 elsewhere
    # The slope of this sum by the logits is what they begin with. (Given that as a tensor, torch imports sympy: 0.4 s.)
    with torch.enable_grad():
        begins = (logits * start).sum()
    # Not everything is always reached: a decoder that doesn't read the question leaves its words and states with 0.
    reached = torch.autograd.grad(begins, (x, *initial), materialize_grads=True)
    of_words, *absorbed = (part.sum(-1) for part in reached)
    of_initial = torch.cat([of_words.new_empty(0, len(of_words)), *absorbed]).mT  # [batch, state]
    return Relevance(of_words, of_initial, explained(logits.detach(), target), target.label)


def hand_back(model: Composed, batch: Batch, target: Target | None, attention: GateRule) -> Relevance:
    """Back from the logit to the words through torch's functions: gradient × input, by the rules of these.

    Where a model sorts the tokens of a batch by experts, the parts of constants can't be told apart by text: texts with
    parts that don't add up are asked again, alone.
    """
    found = _handed_back(model, batch, target, attention)
    if len(batch.ids) == 1 or attention == "half" or not bool((found.error > MIXED).any()):
        return found
    alone = [
        _handed_back(model, batch.rows(row), None if target is None else target.at(row), attention)
        for row in places(batch.ids).split(1)
    ]
    return found._replace(initial=torch.cat([each.initial for each in alone]))


def _handed_back(model: Composed, batch: Batch, target: Target | None, attention: GateRule) -> Relevance:
    embedded = model.embed(batch).detach().requires_grad_()
    with torch.enable_grad(), relevant(model.parts(), attention, len(batch.ids)) as rules:
        logits = model.logits(batch, embedded=embedded)
    target = target or predicted(logits)
    (slope,) = torch.autograd.grad(explained(logits, target).sum(), embedded)
    of_words = (slope.double() * embedded.detach()).sum(-1)
    return Relevance(of_words, rules.absorbed[:, None].to(of_words), explained(logits.detach(), target), target.label)
