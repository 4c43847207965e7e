"""Contribution: a large weight on a small vector does little (Kobayashi et al. 2020, section 3).

    norm:       ‖Σ_h α_h,j f_h(x_j)‖₂,   f_h(x) = (x W_V + b_V) W_O
    alignment:  o · Σ_h α_h,j f_h(x_j) / ‖o‖²,   o = Σ_j Σ_h α_h,j f_h(x_j)

of the last layer, at the query that a prediction is read from (the mean over queries, where all are read). Heads are
added up before a length is taken, as the layer adds them. The lengths of large vectors may cancel; their alignment says
what share of the output each is, with a sign, and sums to 1 over words and symbols.

`attention_x_norm` has the length of the values instead, before the output map, each head with the mean weight.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from exegete.importance.contract import Scores, Target, cost, on_words, predicted
from exegete.importance.globenc import given_norms
from exegete.importance.mixing import Way, separate_layers, unseparated
from exegete.models.contract import Predictor
from exegete.models.separable import Copies
from exegete.tasks.batching import Batch


def alignment_share(copies: Copies) -> Tensor:
    """The share of what a word gives in the direction of what all give, [word, piece]."""
    whole, without, nothing = (each.double() for each in copies)
    output = whole - nothing
    return ((whole - without) * output).sum(-1) / output.square().sum(-1)


@dataclass(frozen=True)
class Contribution:
    """What the last attention adds to the state that is read, word by word."""

    family: ClassVar[str] = "attention"
    signed: ClassVar[bool] = False

    by: Literal["norm", "alignment"] = "norm"

    @property
    def _way(self) -> Way:
        return Way("contribution", "attention", given_norms if self.by == "norm" else alignment_share)

    def refuses(self, model: Predictor) -> str | None:
        """Only where an attention can be run without a word."""
        return unseparated(self._way, model)

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        """As many passes as a text has words; the scores are the same for every class."""
        found = separate_layers(self._way, model, batch)
        values = (found.graph.pool[:, None] @ found.graph.layers[-1])[:, 0]
        target = target or predicted(found.logits)
        return Scores(
            on_words(values, batch), signed=self.signed, target=target, cost=cost(batch, forward=found.passes)
        )
