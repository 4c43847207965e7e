"""The contract of a model: attention has one shape everywhere, [batch, head, query, key].

So a pooling layer (1 head, 1 query), a translator (1 head, a query per output step) and a BERT layer (12 heads, a
query per token) take the same interventions and give the same tables.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.nn.functional import pad

from exegete.base.errors import UsageError, unknown
from exegete.base.places import places
from exegete.models.projections import Projection
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example
from exegete.tasks.reader import Reader


class Site(NamedTuple):
    """What an intervention sees: everything that one attention computes."""

    name: str
    scores: Tensor  # [batch, head, query, key], before projection
    weights: Tensor  # [batch, head, query, key]; rows of real queries sum to 1 over real keys (not `gates`), else 0
    mask: Tensor  # broadcastable to the same, True on real keys of real queries
    project: Projection  # so that "mask some scores and project again" is possible
    batch: Batch
    first_query: int = 0  # the step, where a decoder runs one query at a time
    query_owner: Tensor | None = None  # [batch, query]: the word that a query belongs to, where queries are pieces


Intervention = Callable[[Site], Tensor]  # a site's weights, rewritten; never any weight outside the mask


@runtime_checkable
class Placed(Protocol):
    """An intervention that names where it acts: no other site need be shown to it."""

    def __call__(self, site: Site) -> Tensor:
        """Weights rewritten."""

    def acts_at(self, site: str) -> bool:
        """Whether weights of a site may be rewritten."""


class Trace(NamedTuple):
    """What a model computed for a batch."""

    logits: Tensor  # [batch, class]; of a translation [batch, step, word]
    attention: dict[str, Tensor]  # by site that was kept: [batch, head, query, key]
    states: dict[str, Tensor]  # by site: [batch, key, size], what the site attends over
    owner: dict[str, Tensor]  # by site: [batch, token] -> the key that a token belongs to, or -1

    def only(self, keep: Collection[str] | None) -> "Trace":
        """What belongs to some sites; None: to all. A site that isn't there is refused."""
        if keep is None:
            return self
        for name in keep:
            if name not in self.attention:
                raise unknown("site", name, tuple(self.attention))
        attention, states, owner = ({k: v for k, v in by.items() if k in keep} for by in self[1:])
        return Trace(self.logits, attention, states, owner)

    def read(self, readout: "Readout") -> Tensor:
        """The weights of the prediction at the last site of its readout: [batch, head, key].

        Of every query: the mean over those that look at anything; others are padding.
        """
        weights = self.attention[readout.sites[-1]]
        if readout.query == "only":
            return weights[:, :, 0]
        looking = (weights > 0).any(-1).any(1)  # [batch, query]
        if readout.query == "every":
            return weights.sum(2) / looking.sum(-1).clamp(min=1)[:, None, None]
        return query_rows(weights, readout.place(looking))

    def rows(self, readout: "Readout") -> Tensor:
        """The rows that the prediction hangs on, as heads: [batch, head · query, key]; of every query, all of them."""
        if readout.query in ("first", "last"):
            return self.read(readout)
        return self.attention[readout.sites[-1]].flatten(1, 2)

    def word_weights(self, readout: "Readout", batch: Batch) -> Tensor | None:
        """The weights of the explained words, [batch, token], the mean over heads of what is read; 0 elsewhere.

        None where its keys are not these words one by one: sentences, or the words of another text.
        """
        if not torch.equal(self.owner[readout.sites[-1]], torch.where(batch.words, places(batch.tokens), -1)):
            return None
        weights = self.read(readout).mean(1)  # [batch, key]
        return pad(weights, (0, batch.tokens.shape[1] - weights.shape[1])).where(batch.words, 0.0)


Query = Literal["only", "first", "last", "every"]


class Readout(NamedTuple):
    """The attention of a prediction: where it is read, which is what people mean by "the attention" of a model."""

    sites: tuple[str, ...]  # words upwards (a hierarchical model has two); the last is what gets rewritten
    query: Query = "only"  # which of its queries: only, first, last (the last real one) or every
    gated: bool = False  # rows may sum to less than 1

    def place(self, looking: Tensor) -> Tensor:
        """The first or the last query that looks at anything, [batch], of [batch, query]."""
        queries = places(looking)
        return looking.byte().argmax(-1) if self.query == "first" else (looking * queries).amax(-1)

    def reads(self, site: Site) -> Tensor:
        """The query of a site that the prediction is read from, [batch, query]: a piece, where queries are pieces."""
        looking = site.mask.expand_as(site.weights).any(-1).any(1)
        return (places(looking) == self.place(looking)[:, None]) & looking


def query_rows(weights: Tensor, place: Tensor) -> Tensor:
    """The weights of one query per text: [batch, head, query, key] to [batch, head, key]."""
    return weights[places(weights, 0), :, place]


ReplacedBy = Literal["zero", "unknown", "padding", "mean"]  # what can stand in the place of a word


@runtime_checkable
class Predictor(Protocol):
    """What every room may know of a model. Whoever needs more asks for a capability, never for a class."""

    @property
    def spec(self) -> str:
        """Its name with settings."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes."""

    @property
    def sites(self) -> tuple[str, ...]:
        """Names of the places where attention weights are computed."""

    @property
    def readout(self) -> Readout | None:
        """Where the attention of a prediction is read; None: nothing attends."""

    @property
    def reader(self) -> Reader:
        """What it reads words with: batches of another reader are refused."""

    @property
    def device(self) -> torch.device:
        """Where it computes."""

    def fingerprint(self) -> str:
        """Of weights, reader and name: all that decides what it predicts."""

    def collate(self, examples: Sequence[Example]) -> Batch:
        """Examples as a batch of its own reader, on its device."""

    def embed(self, batch: Batch) -> Tensor:
        """[batch, token, size], before positions are added."""

    def replaced(self, batch: Batch, words: Tensor, by: ReplacedBy) -> Tensor:
        """Embeddings with some words [batch, token] replaced, each keeping its width.

        By `zero`, the zero vector; by `mean`, the mean embedding of the words that it knows; by `unknown`, the unknown
        word, which is our mask token; by `padding`, the padding symbol as if it were a word.
        """

    def logits(self, batch: Batch, *, embedded: Tensor | None = None, intervene: Intervention | None = None) -> Tensor:
        """[batch, class], and nothing kept; of a translation [batch, step, word]."""

    def trace(
        self,
        batch: Batch,
        *,
        embedded: Tensor | None = None,
        intervene: Intervention | None = None,
        keep: Collection[str] | None = None,
    ) -> Trace:
        """Predict, with everything that importances and measures need of the sites to keep; None: of all."""


def refuse_foreign(batch: Batch, reader: Reader) -> None:
    """Refuse a batch whose rows are another reader's: they would be read as other words."""
    if batch.reader is not reader and batch.reader != reader:
        raise UsageError(
            "this batch was read with another model's vocabulary, and its rows are other words here: collate the "
            "examples with the model that is asked, as model.collate(examples) does"
        )
