"""Impose: weights that came from elsewhere, by text (Wiegreffe & Pinter 2019, section 4.1)."""

from dataclasses import dataclass, field

from torch import Tensor

from exegete.base.errors import ExegeteError
from exegete.interventions.contract import Rewrite
from exegete.interventions.table import Table, words_of
from exegete.models.contract import Site


@dataclass(frozen=True)
class Impose(Rewrite):
    """The weights of a table, whatever the model itself would have had."""

    table: Table = field(default_factory=lambda: Table({}))

    def rewritten(self, site: Site) -> Tensor:
        """Every text's row of the table, on its words; head and query all get the same."""
        weights = site.weights.new_zeros(site.weights.shape)
        for i, words in enumerate(words_of(site.batch)):
            row = self.table.rows.get(words)
            if row is None:
                raise ExegeteError(f"no weights are stored for text {int(site.batch.ids[i])}: store them first")
            weights[i, :, :, site.batch.words[i]] = row.to(weights.dtype)
        return weights
