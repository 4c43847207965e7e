"""Keep: only the highest weights of every row, renormalised."""

from dataclasses import dataclass

from torch import Tensor

from exegete.interventions.contract import Rewrite, mask_of, total_of
from exegete.interventions.remove import check_size, heights, rank_keys, removal_sizes, without
from exegete.models.contract import Site


@dataclass(frozen=True)
class Keep(Rewrite):
    """The top k of a row, scaled to the row's own sum; the first of equals is kept."""

    count: int = 1
    share: float | None = None  # of a row's real keys, rounded up, instead of a count

    def __post_init__(self) -> None:
        check_size("keep", self.count, self.share)

    def rewritten(self, site: Site) -> Tensor:
        """All but the top k removed."""
        mask = mask_of(site)
        kept = rank_keys(heights(site.weights, mask), mask) < removal_sizes(mask, self.count, self.share)
        return without(site.weights, mask, ~kept) * total_of(site)
