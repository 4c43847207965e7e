"""Own models: what you write so that Exegete can ask your own PyTorch module.

A file of yours has a function `make(words, labels)` that returns an `OwnPooling` or an `OwnModel`: a small adapter that
says how tokens are embedded, how a prediction is made of given embeddings, and where attention weights are made. Then
`own:file=my_model.py` is a model like any other.

`OwnPooling` is for a module whose one attention pools the states of the words, and whose decoder sees nothing else:

    h = states(e),  α = project(scores(h)),  c = Σ_t α_t h_t,  logits = decode(c)

It is encoded once and decoded under many weights. `OwnModel` is for all others: only `embed` and `forward` are given,
and `forward` calls `attend` wherever it makes attention weights. Where weights are rewritten, they are those of the
last call, the readout, and every weighting takes a whole pass (exegete.models.openings).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from torch import Tensor, nn

SITE = "attention"  # the one site of a model that pools


class Attend(Protocol):
    """Weights from scores, at a named place: what your `forward` calls instead of softmax."""

    def __call__(self, name: str, scores: Tensor, states: Tensor, allowed: Tensor | None = None) -> Tensor:
        """The weights to go on with, in the shape of the scores; 0 on padding.

        scores, before softmax: [batch, token] where one query pools the tokens, [batch, head, token] where several do,
        or [batch, head, token, token] where every token (third axis) looks at every token (last axis). states are what
        is attended to, [batch, token, size], one per token and before heads cut or project them: `attend` only keeps
        them beside the weights. Multiply the weights that it returns with your values yourself. allowed, if given, is
        True where a query may look, broadcastable to the scores; padding needs no mention.
        """


class OwnModel(nn.Module):
    """An adapter to a module of your own: override `embed` and `forward`.

    Texts are padded on the right, and every text that you see has at least one token. Leave softmax to `attend`.
    """

    vocabulary: Mapping[str, int] | Sequence[str] | None = None  # your own words and their rows; else those of the task
    unknown: str | None = None  # the word of your own vocabulary that stands for all others; found if it is <unk>
    labels: Sequence[str] | None = None  # the classes in the order of your logits; else in that of the task

    def embed(self, tokens: Tensor) -> Tensor:
        """Tokens [batch, token], rows of the vocabulary, to embeddings [batch, token, size], without positions."""
        raise NotImplementedError(f"{type(self).__name__} has no embed(tokens): say how tokens are embedded")

    def forward(self, embedded: Tensor, mask: Tensor, attend: Attend) -> Tensor:
        """Logits [batch, class] from embeddings [batch, token, size]; mask [batch, token] is True on words."""
        raise NotImplementedError(
            f"{type(self).__name__} has no forward(embedded, mask, attend): say how a prediction is made"
        )

    def attention_parameters(self) -> Iterable[nn.Parameter]:
        """What decides the weights and nothing else; of a model that pools, it is found if it isn't named here."""
        return ()


class OwnPooling(OwnModel):
    """An adapter to a module that pools: override `embed`, `states`, `scores` and `decode`."""

    def states(self, embedded: Tensor, mask: Tensor) -> Tensor:
        """What is pooled, [batch, token, size], from embeddings [batch, token, size] and mask [batch, token]."""
        raise NotImplementedError(f"{type(self).__name__} has no states(embedded, mask): say what attention pools")

    def scores(self, states: Tensor, mask: Tensor) -> Tensor:
        """Scores before softmax, [batch, token]."""
        raise NotImplementedError(f"{type(self).__name__} has no scores(states, mask): say what softmax is taken of")

    def decode(self, context: Tensor) -> Tensor:
        """Logits [batch, class] from the pooled states [batch, size]."""
        raise NotImplementedError(f"{type(self).__name__} has no decode(context): say what follows the pooling")

    def forward(self, embedded: Tensor, mask: Tensor, attend: Attend) -> Tensor:
        """Encode, score, pool, decode."""
        states = self.states(embedded, mask)
        weights = attend(SITE, self.scores(states, mask), states)
        return self.decode((weights[:, None] @ states)[:, 0])
