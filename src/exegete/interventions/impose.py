"""Impose: weights that came from elsewhere, by text (Wiegreffe & Pinter 2019, section 4.1)."""

from dataclasses import dataclass, field, replace

import torch
from pydantic import InstanceOf
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from exegete.base.errors import ExegeteError, UsageError
from exegete.interventions.contract import Rewrite, mask_of, number_keys, total_of
from exegete.interventions.table import WeightTable
from exegete.models.contract import Predictor, Site


@dataclass(frozen=True)
class Impose(Rewrite):
    """The weights of a table, whatever the model itself would have had; every head and query gets the same, times
    what its row sums to."""

    table: InstanceOf[WeightTable] = field(default_factory=lambda: WeightTable({}))
    file: str = ""  # parquet, with columns words and weights, instead of a table

    def rewritten(self, site: Site) -> Tensor:
        """Every text's row of the table, on its real keys."""
        mask = mask_of(site)
        rows = self.table.lookup(site.batch)
        _check_lengths(rows, mask, site)
        if not mask.any():
            return torch.zeros_like(site.weights)
        given = pad_sequence(rows, batch_first=True).to(site.weights)[:, None, None]  # [batch, 1, 1, word]
        place = (number_keys(mask) - 1).clamp(min=0)  # the j-th real key gets the j-th word's weight
        return given.expand(*mask.shape[:-1], -1).gather(-1, place).masked_fill(~mask, 0.0) * total_of(site)

    def bound(self, model: Predictor) -> "Impose":
        """With the table of its file."""
        del model  # a batch knows how its words are spelled
        table = WeightTable.read(self.file) if self.file and not self.table.rows else self.table
        if not table.rows:
            raise UsageError("intervention 'impose' has no weights: write impose:file=weights.parquet")
        return replace(self, table=table)


def _check_lengths(rows: list[Tensor], mask: Tensor, site: Site) -> None:
    """Refuse rows for another number of keys: the sentences of a text, say, where words were stored."""
    stored = torch.tensor([len(row) for row in rows], device=mask.device).view(-1, 1, 1)
    real = mask.sum(-1)  # [batch, head, query]; 0 for a query that is padding
    off = (real > 0) & (real != stored)
    if bool(off.any()):
        text, head, query = off.nonzero()[0].tolist()
        raise ExegeteError(
            f"the weights stored for text {int(site.batch.ids[text])} are {len(rows[text])}, but at site '{site.name}' "
            f"it has {int(real[text, head, query])} keys: impose weights for words at a site that attends to words"
        )
