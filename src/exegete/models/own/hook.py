"""Own hook: the `attend` that an own model calls, with a batch as its author sees it."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from exegete.base.errors import UsageError
from exegete.models.contract import Intervention, Site
from exegete.models.projections import Projection
from exegete.tasks.batching import Batch


class View:
    """A batch as the author of an own model sees it: no column that is all padding, no text without a token.

    A text from which all words were deleted keeps one token of padding to read, and no weight on it.
    """

    def __init__(self, batch: Batch) -> None:
        self.batch, self.total = batch, batch.words.shape[1]
        reached = batch.words.any(0).nonzero()
        self.width = 1 + int(reached[-1]) if len(reached) else 1
        self.words = batch.words[:, : self.width]  # [batch, token]: what weights may be on
        first = torch.arange(self.width, device=batch.words.device) == 0
        self.mask = self.words | (first & ~self.words.any(-1, keepdim=True))  # [batch, token]: what may be read

    def seen(self, embedded: Tensor) -> Tensor:
        """Embeddings of the tokens that are seen: [batch, token, size]."""
        return embedded[:, : self.width]

    def whole(self, states: Tensor) -> Tensor:
        """What a model gave to the tokens that it saw, with zeros up to the batch's own width: [batch, token, …]."""
        return pad(states, (0,) * (2 * (states.dim() - 2)) + (0, self.total - self.width))


class Hook:
    """One run of an own model: makes the weights at each of its sites, and keeps them."""

    def __init__(self, view: View, project: Projection, intervene: Intervention | None, who: str) -> None:
        self.view, self.project, self.intervene, self.who = view, project, intervene, who
        self.weights: dict[str, Tensor] = {}  # by site: [batch, head, query, key]
        self.states: dict[str, Tensor] = {}  # by site: [batch, key, size]

    def __call__(self, name: str, scores: Tensor, states: Tensor, allowed: Tensor | None = None) -> Tensor:
        """The weights to go on with, in the shape of the scores."""
        self._check(name, scores, states)
        queries = scores.dim() == 4  # a token each; else there is one per head, which pools
        heads = scores[:, None] if scores.dim() == 2 else scores
        more = self.view.total - self.view.width
        full = pad(
            heads if queries else heads[:, :, None], (0, more, 0, more if queries else 0)
        )  # [b, head, query, key]
        mask = self._mask(scores, allowed, more)
        weights: Tensor = self.project(full, mask)
        if self.intervene is not None:
            weights = self.intervene(Site(name, full, weights, mask, self.project, self.view.batch))
        self.weights[name], self.states[name] = weights, self.view.whole(states)
        seen = weights[..., : self.view.width]
        return (seen[:, :, : self.view.width] if queries else seen).reshape(scores.shape)

    def _mask(self, scores: Tensor, allowed: Tensor | None, more: int) -> Tensor:
        """True on real keys of real queries: [batch, 1 or head, query, key]."""
        keys = self.view.words[:, None, None]  # [batch, 1, 1, key]
        mask = keys & self.view.words[:, None, :, None] if scores.dim() == 4 else keys
        if allowed is not None:
            spread = allowed.expand(scores.shape)
            mask = mask & (spread if scores.dim() == 4 else spread.reshape(len(scores), -1, 1, self.view.width))
        return pad(mask, (0, more, 0, more if scores.dim() == 4 else 0))

    def _check(self, name: str, scores: Tensor, states: Tensor) -> None:
        batch, width = self.view.words.shape
        if name in self.weights:
            raise UsageError(f"{self.who} calls attend twice with the name '{name}': give every place its own")
        fits = scores.dim() in (2, 3, 4) and len(scores) == batch and scores.shape[-1] == width
        if not fits or (scores.dim() == 4 and scores.shape[2] != width):
            raise UsageError(
                f"{self.who} gives attend('{name}') scores of shape {tuple(scores.shape)} for {batch} texts of {width} "
                "tokens: give [batch, token], [batch, head, token] or [batch, head, token, token]"
            )
        if states.dim() != 3 or states.shape[:2] != (batch, width):
            raise UsageError(
                f"{self.who} gives attend('{name}') states of shape {tuple(states.shape)} for {batch} texts of {width} "
                "tokens: give what is attended to, one state per token, [batch, token, size]; values are yours"
            )
