"""Flow: how much can run from the words to the pool, if weights are the widths of pipes? (Abnar & Zuidema 2020)

The graph is that of rollout: a node per token and layer, an edge of capacity Ã_l ij from token i of layer l to token j
below it, and an edge of capacity α_i from the output to token i of the last layer. A word's score is the maximum flow
from the output to it, each word asked alone; so the scores of a text don't share anything out and don't sum to 1. With
one layer it is Σ_i min(α_i, Ã_ij). Rollout multiplies along a path; a flow is only as wide as its narrowest edge.

Where one state is read, such as that of a start symbol, all flow leaves through it, and most of it is the same for
every word. What differs is then little more than this state's own row of the lowest layer: on MiniLM both rank the
words of a text alike. `Scores.caution` says so.

A maximum flow per word makes it slow: the work of a text of T words and L layers grows as T³ L or faster.

The flows are exact on capacities that are whole multiples of 2⁻³⁰ (SciPy's Dinic algorithm takes integers). Rounding
moves a capacity by 2⁻³¹ at most, hence the narrowest cut, and the flow, by 2⁻³¹ per edge that it cuts: with 2 layers
and 20 tokens below 2·10⁻⁷.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.base.pauses import pause
from exegete.importance.contract import Scores, Target, cost, on_words, predicted
from exegete.importance.rollout import Graph, graph, without_layers
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch

SCALE = 2**30  # of capacities: all that leaves the output still fits into 32 bits

Capacities = NDArray[np.int32]


@dataclass(frozen=True)
class Flow:
    """The maximum flow between the pool and each word, through all layers."""

    family: ClassVar[str] = "attention"
    signed: ClassVar[bool] = False

    def refuses(self, model: Predictor) -> str | None:
        """Only where layers of self-attention are pooled is there something that flows."""
        return without_layers("flow", model)

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        """One forward pass, then a maximum flow per word; the scores are the same for every class."""
        if (reason := self.refuses(model)) is not None:
            raise UsageError(reason)
        with torch.no_grad():
            trace = model.trace(batch)
        values = flows(graph(model, trace), batch.present, batch.words)
        target = target or predicted(trace.logits)
        once = cost(batch, forward=1)
        return Scores(on_words(values, batch), signed=self.signed, target=target, cost=once, caution=_caution(model))


def _caution(model: Predictor) -> str | None:
    """What to know where a single state is read."""
    if model.readout is None or model.readout.query not in ("first", "last"):
        return None
    return (
        "flow from the one state that is read is almost the same for all words, and ranks them by little more than "
        "that state's row of the first layer: read rollout instead"
    )


def flows(whole: Graph, present: Tensor, sinks: Tensor) -> Tensor:
    """The maximum flow to every sink of every text, float64 [batch, token]; 0 elsewhere. Padding is left out."""
    values = torch.zeros_like(present, dtype=torch.float64)
    for text in range(len(present)):
        places = present[text].nonzero()[:, 0]
        pool = whole.pool[text, places].cpu().numpy()
        layers = [layer[text][places[:, None], places].cpu().numpy() for layer in whole.layers]
        for sink in sinks[text, places].nonzero()[:, 0].tolist():
            pause()
            values[text, places[sink]] = maximum(pool, layers, sink)
    return values


def maximum(pool: NDArray[np.float64], layers: list[NDArray[np.float64]], sink: int) -> float:
    """The maximum flow from the output to one token below all layers, of which the lowest comes first.

    Of the lowest layer only the edges into the sink matter.
    """
    from scipy.sparse import csr_array  # these take longer to import than all of ours, and few ask for flow
    from scipy.sparse.csgraph import maximum_flow

    tokens, above = len(pool), layers[:0:-1]  # from the top, without the lowest
    width = tokens * len(layers) + 2
    capacity = np.zeros((width, width), dtype=np.int32)
    capacity[0, 1 : 1 + tokens] = _whole(pool)
    for number, layer in enumerate(above):
        start = 1 + number * tokens
        capacity[start : start + tokens, start + tokens : start + 2 * tokens] = _whole(layer)
    capacity[-1 - tokens : -1, -1] = _whole(layers[0][:, sink])
    return float(maximum_flow(csr_array(capacity), 0, width - 1).flow_value) / SCALE


def _whole(capacity: NDArray[np.float64]) -> Capacities:
    """In whole multiples of 1 / SCALE."""
    return np.rint(capacity * SCALE).astype(np.int32)
