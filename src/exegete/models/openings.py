"""Openings: a batch run once, up to one site; then its logits under any weights there.

Whatever asks "and if attention had looked elsewhere?" starts here: permuted, removed, searched weights. A site is named
or it is the readout, the last one of a model, from which its prediction is made. There are two ways to the logits:

- *Decoder.* Where that site pools states for a decoder, the batch is encoded once and decoded many times, in float64:
  small differences are what is measured. With a linear decoder logits = Σ_t α_t v_t + b, and `values` v_t = W h_t is
  all that is needed of a text.
- *Pass.* Elsewhere the model runs once for every weighting, with an intervention that imposes it at this site; all
  other sites do what they do. A model that can go on from what lies below the site (`Resuming`) runs the rest, others
  run whole. It is exact for any model, as slow as that many predictions, and in the precision of the model's own
  parameters: differences of probabilities below 1e-6 are rounding.

Head is always an axis. Where every token has a query of its own (self-attention whose states are averaged afterwards),
the prediction reads all of these rows, so that each head of each query counts as a head here: own weights give the
model's own logits, one permutation moves the keys of all rows, a removed key is gone from all of them. A row that may
look at some of the keys only, as under a causal mask, keeps what it is given on these, scaled to the sum that it was
given on all. Where one query is read (that of a start symbol, say), only its row is chosen, and all others stay.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from exegete.base.errors import UsageError, unknown
from exegete.base.places import places
from exegete.models.capabilities import Begun, Encoded, Pooling, Resuming, SelfAttentive, Stepwise, Unpooled, Writing
from exegete.models.contract import Intervention, Predictor, Site, query_rows
from exegete.tasks.batching import Batch

TOKENS, WEIGHTS = 32_768, 1 << 22  # tokens and imposed weights that pass through a model together


@dataclass(frozen=True)
class Opened(ABC):
    """Texts of which only the weights of one site are left to choose."""

    ids: Tensor  # [batch]
    weights: Tensor  # [batch, head, key]: the model's own, float64
    mask: Tensor  # [batch, key]: True on real keys
    removable: Tensor  # [batch, key]: keys that may be removed, ranked and counted
    null: Tensor | None  # [batch, key]: keys of value 0 that take the weight that no word has; None: the model has none
    values: Tensor | None  # [batch, key, class]: v_t, where logits are linear in the weights of a single head

    @abstractmethod
    def logits(self, weights: Tensor) -> Tensor:
        """Weights [batch, draw, head, key] to logits [batch, draw, class], differentiable by the weights."""

    @abstractmethod
    def native(self) -> "Opened":
        """The batch in the precision of the model's own parameters: many steps in float64 would take twice as long."""

    def rows(self, weights: Tensor) -> Tensor:
        """Of all weights of the site [batch, head, query, key] those that are left to choose: [batch, head, key]."""
        return weights.flatten(1, 2)

    def whole(self, rows: Tensor, weights: Tensor) -> Tensor:
        """All weights of the site, with these rows in their place."""
        return rows.view_as(weights)

    @property
    def reach(self) -> Tensor:
        """Keys that every row may look at, [batch, head, key]: all real ones, unless it is said otherwise."""
        return self.mask[:, None].expand_as(self.weights)

    @property
    def movable(self) -> Tensor:
        """Keys whose weights may be exchanged, [batch, key]: what may go, and a null key. Start symbols keep theirs."""
        return self.removable if self.null is None else self.removable | self.null

    @property
    def own(self) -> Tensor:
        """Logits under the model's own weights: [batch, class]."""
        return self.logits(self.weights[:, None])[:, 0]


@dataclass(frozen=True)
class OpenedPooling(Opened):
    """A site that pools states: encoded once, decoded under any weights, in the precision of what was encoded.

    A call decodes all of its draws together: how many may stand side by side is for the caller to say, who makes them.
    """

    model: Pooling
    encoded: Encoded

    def logits(self, weights: Tensor) -> Tensor:
        """The rest of the model after its pooling."""
        dtype = self.encoded.states.dtype
        return self.model.decode(self.encoded, weights[:, :, 0].to(dtype)).to(dtype)

    def native(self) -> "OpenedPooling":
        """States and values as the model made them."""
        return replace(self, encoded=self.encoded.to(_precision(self.model)))


@dataclass(frozen=True)
class Pass(Opened):
    """Any site of any model: a pass per draw, from the site on where the model can, some of them at a time."""

    model: Predictor
    batch: Batch
    site: str
    queries: int  # of every head
    query: Tensor | None  # [batch]: the one that is read; None: all of them
    intervene: Intervention | None  # at all other sites
    begun: Begun | None  # what lies below the site, of a model that can go on from there
    reached: Tensor  # [batch, head, key]: what a row may look at
    dtype: torch.dtype = torch.float64  # of the logits

    def logits(self, weights: Tensor) -> Tensor:
        """Every draw of every text as a text of its own; where gradients need several passes, each is run again."""
        texts, draws = weights.shape[:2]
        flat, text = (
            weights.flatten(0, 1),
            places(weights, 0).repeat_interleave(draws),
        )  # [row, head, key], [row]
        parts = places(text).split(self._together)
        again = len(parts) > 1 and torch.is_grad_enabled() and weights.requires_grad
        found = [
            checkpoint(self._run, text[some], flat[some], use_reentrant=False)
            if again
            else self._run(text[some], flat[some])
            for some in parts
        ]
        return torch.cat(found).view(texts, draws, -1)

    def rows(self, weights: Tensor) -> Tensor:
        """Those of the query that is read, or of all."""
        return super().rows(weights) if self.query is None else query_rows(weights, self.query)

    def whole(self, rows: Tensor, weights: Tensor) -> Tensor:
        """All weights of the site [batch, head, query, key], with those of the query that is read put in."""
        return super().whole(rows, weights) if self.query is None else _at_query(rows, weights, self.query)

    @property
    def reach(self) -> Tensor:
        """Those of its sentence, or of the words before it, of a row that sees no others."""
        return self.reached

    def native(self) -> "Pass":
        """Logits as the model makes them."""
        return replace(self, dtype=_precision(self.model))

    @property
    def _together(self) -> int:
        """Rows of one pass."""
        width = max(self.batch.tokens.shape[1], int(self.batch.cost.sum(-1).max()))  # in tokens or, if more, in pieces
        return max(1, min(TOKENS // width, WEIGHTS // max(1, self.weights[0].numel())))

    def _run(self, text: Tensor, weights: Tensor) -> Tensor:
        """Texts by their place in the batch, each under its own weights [row, head, key]: logits [row, class]."""

        def impose(site: Site) -> Tensor:
            if site.name == self.site:
                return self._imposed(weights.to(site.weights.dtype), site, text)
            return site.weights if self.intervene is None else self.intervene(site)

        if self.begun is not None:
            return self.begun.logits(text, impose).to(self.dtype)
        return self.model.logits(self.batch.rows(text), intervene=impose).to(self.dtype)

    def _imposed(self, weights: Tensor, site: Site, text: Tensor) -> Tensor:
        """Weights [row, head, key] at the site of some texts, whose longest may have fewer queries than the batch's."""
        if self.begun is not None and self.begun.one_query:
            return _within(weights[:, :, None], site)
        if self.query is not None:
            return _within(_at_query(weights, site.weights, self.query[text]), site)
        return _within(weights.unflatten(1, (-1, self.queries))[:, :, : site.weights.shape[2]], site)


def _at_query(rows: Tensor, weights: Tensor, query: Tensor) -> Tensor:
    """Weights [batch, head, query, key] with the rows [batch, head, key] of one query per text."""
    here = torch.arange(weights.shape[2], device=query.device) == query[:, None]  # [batch, query]
    return torch.where(here[:, None, :, None], rows[:, :, None], weights)


def _within(weights: Tensor, site: Site) -> Tensor:
    """Given weights on the keys that their rows may look at, with the sum that they had on all."""
    kept = weights.where(site.mask.expand_as(weights), 0.0)
    before, after = weights.sum(-1, keepdim=True), kept.sum(-1, keepdim=True)
    there = after > 0
    return kept * (before / after.where(there, 1.0)).where(there, 1.0)  # where nothing is outside: times 1 exactly


def opened(model: Predictor, batch: Batch, *, site: str | None = None, intervene: Intervention | None = None) -> Opened:
    """A batch, ready for other weights at a site; the readout, unless one is named.

    An intervention rewrites the model's attention before: own weights are those that it leaves at this site, and it
    goes on to act at all others.
    """
    if (reason := unopened(model)) is not None:
        raise UsageError(reason)
    if site is not None and site not in model.sites:
        raise unknown("site", site, model.sites)
    if site in (None, model.sites[-1]) and intervene is None and isinstance(model, Pooling):
        return decoder(model, model.encode(batch).to(torch.float64), batch.ids)
    return passing(model, batch, site or model.sites[-1], intervene)


def decoder(model: Pooling, encoded: Encoded, ids: Tensor, weights: Tensor | None = None) -> OpenedPooling:
    """What is encoded already, with given own weights [batch, key] or those that the model makes of its scores."""
    own: Tensor = model.weigh(encoded.scores, encoded.mask) if weights is None else weights.double()
    null = model.null_keys(encoded)
    removable = encoded.mask if null is None else encoded.mask & ~null
    return OpenedPooling(ids, own[:, None], encoded.mask, removable, null, encoded.values, model, encoded)


def passing(model: Predictor, batch: Batch, site: str, intervene: Intervention | None = None) -> Pass:
    """A batch opened by passes, for any model: a first one shows which rows and keys a site has."""
    met: list[Site] = []

    def watch(at: Site) -> Tensor:
        weights = at.weights if intervene is None else intervene(at)
        if at.name == site:
            met.append(at._replace(weights=weights))
        return weights

    begun = model.begun(batch, site, watch) if isinstance(model, Resuming) else None
    if begun is None:
        model.logits(batch, intervene=watch)
    if len(met) != 1:
        raise UsageError(
            f"weights can't be imposed at site '{site}': {type(model).__name__} computes them {len(met)} times in one "
            "pass; name a site where all of them are made at once"
        )
    weights = met[0].weights.detach().double()
    reach = met[0].mask.expand_as(weights)
    query = _query(model, site, reach)
    if query is not None:
        weights, reach = (query_rows(each, query)[:, :, None] for each in (weights, reach))
    mask = reach.flatten(1, 2).any(1)  # [batch, key]
    removable = mask & batch.words if isinstance(model, SelfAttentive) and site in model.self_attention else mask
    own, queries, reached = weights.flatten(1, 2), weights.shape[2], reach.flatten(1, 2)  # [batch, head · query, key]
    ways = (queries, query, intervene, begun, reached)
    return Pass(batch.ids, own, mask, removable, None, None, model, batch, site, *ways)


def _query(model: Predictor, site: str, reach: Tensor) -> Tensor | None:
    """The query of every text that a prediction is read from, [batch], if it is one; reach as the weights."""
    readout = model.readout
    if readout is None or site != readout.sites[-1] or readout.query not in ("first", "last"):
        return None
    return readout.place(reach.any(-1).any(1))


def unopened(model: Predictor) -> str | None:
    """Why no other weights can be given to a model's readout, as a sentence; None if they can."""
    if isinstance(model, Pooling):
        return None
    if isinstance(model, Stepwise) and isinstance(model, Unpooled):
        return model.unpooled()
    if model.readout is not None and not isinstance(model, Writing):
        return None
    return f"it rewrites the weights from which a class is predicted, and {type(model).__name__} has none"


def unpooled(model: Predictor) -> str | None:
    """Why a model's last attention can't be rewritten after encoding, as a sentence; None if it can."""
    if isinstance(model, Pooling):
        return None
    if isinstance(model, Unpooled):
        return model.unpooled()
    return f"it rewrites the weights of a last attention that pools states, and {type(model).__name__} has none"


def _precision(model: Predictor) -> torch.dtype:
    """That of a model's parameters."""
    parameters = model.parameters() if isinstance(model, torch.nn.Module) else ()
    return next((p.dtype for p in parameters if p.is_floating_point()), torch.get_default_dtype())
