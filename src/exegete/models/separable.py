"""Separable: models of layers whose states can be taken apart into what each word below gives to them."""

from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from torch import Tensor

from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch

Apart = Literal["values", "attention", "block", "layer"]


class Copies(NamedTuple):
    """States of one text in one layer: with all words, without some of them, and without any."""

    whole: Tensor  # [1, piece, size]
    without: Tensor  # [word, piece, size]
    nothing: Tensor  # [1, piece, size]


class Mixed(NamedTuple):
    """What the state of every word has from every word, layer by layer."""

    layers: Tensor  # [layer, batch, word, word]: of a state, from a word below; a mean over the pieces of the first
    passes: Tensor  # [batch]: how often a text ran


@runtime_checkable
class Separable(Predictor, Protocol):
    """A model of layers whose states can be taken apart into what each word of the layer below gives to them.

    - `values`: after the layer, where all that a word gives is its value, in every head: everything else follows.
    - `attention`: after the output map of the attention; what a word gives is Σ_h α_h W_O v_h.
    - `block`: after the attention's residual (and its norm, where that comes after); a state gives itself, too.
    - `layer`: after the layer, past the feed-forward layer by its residual.

    In the last two, norms divide by what they divide by when all words are there. So all but the first are linear:
    what words give, and what stays without any, sum to the state.
    """

    def inseparable(self, at: Apart) -> str | None:
        """Why its layers can't be taken apart there, as the rest of a sentence about it; None if they can."""

    def apart(self, batch: Batch, at: Apart, compare: Callable[[Copies], Tensor]) -> Mixed:
        """Compare the states of every layer [word, piece] with and without each word."""
