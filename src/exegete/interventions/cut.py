"""Cut: nobody looks at some words any more (attention knockout, Geva et al. 2023, section 5).

Edges from queries to a word are cut at some sites: its score is −∞ there, and what is left is projected again. The word
stays where it is, and so do all positions. It still looks at others and at itself; where all edges to it are cut at
all sites, none of that reaches anybody.
"""

from collections.abc import Collection
from dataclasses import dataclass

import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.models.contract import Readout, Site


@dataclass(frozen=True, eq=False)
class Cut:
    """For the batch whose words are marked, in its order."""

    words: Tensor  # [batch, token]: those that are not looked at
    sites: Collection[str] | None = None  # None: all
    by: Tensor | Readout | None = None  # whose looks are cut: words [batch, token], or the query that a readout reads;
    # None: everybody's but their own

    def __call__(self, site: Site) -> Tensor:
        """The site's weights without these edges; the very same where none is cut."""
        if self.sites is not None and site.name not in self.sites:
            return site.weights
        if site.weights.shape[-1] != self.words.shape[-1]:
            raise UsageError(
                f"edges to words can't be cut at site '{site.name}', where no words are looked at: name another site"
            )
        gone = self._edges(site) & site.mask
        if not bool(gone.any()):
            return site.weights
        mask = site.mask.expand_as(site.weights)
        cut: Tensor = site.project(site.scores, mask & ~gone)
        return cut.where(gone.any(-1, keepdim=True), site.weights)  # rows that keep all their edges stay as they are

    def _edges(self, site: Site) -> Tensor:
        """[batch, 1, query, key]: a word never loses its look at itself."""
        to, owner = self.words[:, None, None], site.query_owner
        if owner is None and (site.weights.shape[2] != self.words.shape[-1] or site.weights.shape[2] == 1):
            return to  # what pools words is none of them
        own = self.words if owner is None else _of(self.words, owner)
        return (self._looking(site, own) & ~own)[:, None, :, None] & to

    def _looking(self, site: Site, own: Tensor) -> Tensor:
        """The queries whose looks are cut, [batch, query]."""
        if self.by is None:
            return torch.ones_like(own)
        if isinstance(self.by, Readout):
            return self.by.reads(site)
        return self.by if site.query_owner is None else _of(self.by, site.query_owner)


def _of(words: Tensor, owner: Tensor) -> Tensor:
    """Marks of words [batch, token] for their pieces [batch, piece]; none on padding."""
    return words.gather(-1, owner.clamp(min=0)) & (owner >= 0)
