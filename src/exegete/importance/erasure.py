"""Erasure: what does a model predict without some words? Each text that remains is run once.

Leave-one-out, occlusion, LIME, KernelSHAP and the faithfulness measures all ask for predictions on erased texts. They
ask here. An erased text is written down as what the model will see of it; that writing is its key. So two masks that
leave the same text are one input (deleting either of two equal neighbours; replacing a word that is unknown already),
and inside `sharing()` an input that one caller has asked for is not run again for another.

What the model sees depends on the words alone, so a result doesn't depend on the batch in which it was asked for.
"""

from collections.abc import Iterator
from typing import get_args

import torch
from torch import Tensor

from exegete.base.errors import unknown
from exegete.base.places import places
from exegete.importance.erased_texts import Removal as Removal
from exegete.importance.erased_texts import WrittenTexts, write
from exegete.importance.sharing import shared_store
from exegete.interventions.cut import Cut
from exegete.models.capabilities import Deleting
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch

CHUNK = 1 << 21  # tokens of erased texts that are written down at a time: bounds memory, and is many forward passes
TOKENS = 8_192  # tokens that one forward pass holds: enough for fast products, few enough for the cache
LITTLE = 1_024  # tokens of single deletions that are run sooner than states are kept for reuse
FEW = 16  # texts of one length that are too few for a pass of their own; the next longer ones join them


class _Results:
    """Logits of one model, by what it was shown."""

    def __init__(self, model: Predictor) -> None:
        self.model = model
        self.place: dict[bytes, int] = {}
        self.logits: Tensor | None = None  # [place, class]

    def add(self, keys: list[bytes], logits: Tensor) -> None:
        """Keep what was computed."""
        self.logits = logits if self.logits is None else torch.cat([self.logits, logits])
        self.place.update(zip(keys, range(len(self.place), len(self.place) + len(keys)), strict=True))


def _results(model: Predictor) -> _Results:
    """Those of this block, or new ones."""
    found = shared_store(model)
    results: _Results = _Results(model) if found is None else found.setdefault("erased", _Results(model))
    return results


@torch.no_grad()
def erased(model: Predictor, batch: Batch, rows: Tensor, gone: Tensor, by: Removal) -> Tensor:
    """Logits [ask, class] in float64 of text rows[i] of the batch with its words gone[i] erased.

    `delete` writes the text without the words, `zero` leaves a zero embedding in their place, `unknown` the unknown
    word; `blocked` leaves the words themselves, with nobody looking at them at any site. Wrappers stay. A text without
    any word gets what the model gives to no words: a classifier its decoder's bias.
    """
    _check(batch, rows, gone, by)
    results = _results(model)
    found = []
    for part in places(rows).split(max(1, CHUNK // batch.tokens.shape[1])):
        written = write(batch, rows[part], gone[part], by)
        _run_new(results, batch, written)
        found.append(torch.tensor([results.place[key] for key in written.keys], dtype=torch.int64, device=rows.device))
    if results.logits is None:  # nothing was asked for, ever
        return model.logits(batch).double()[:0]
    return results.logits[torch.cat(found)]


def _check(batch: Batch, rows: Tensor, gone: Tensor, by: Removal) -> None:
    if by not in get_args(Removal):
        raise unknown("removal", by, get_args(Removal))
    if gone.dtype != torch.bool or gone.shape != (len(rows), batch.tokens.shape[1]):
        raise ValueError(f"gone is bool [ask, token], here {(len(rows), batch.tokens.shape[1])}: got {gone.shape}")
    if bool((gone & ~batch.words[rows]).any()):
        raise ValueError("only words can be erased: gone marks padding or wrappers")


def _run_new(results: _Results, batch: Batch, written: WrittenTexts) -> None:
    """Run what is not known yet, each different text once."""
    new = {key: i for i, key in reversed(list(enumerate(written.keys))) if key not in results.place}
    asks = torch.tensor(sorted(new.values()), dtype=torch.int64, device=batch.ids.device)
    alone = _worth_reuse(results.model, batch, written, asks)
    if alone.any():
        assert isinstance(results.model, Deleting)
        results.add(written.keys_of(asks[alone]), _by_reuse(results.model, batch, written, asks[alone]))
    asks = asks[~alone]
    asks = asks[written.costs[asks].argsort(stable=True)]
    for members in erasure_passes(asks, written.costs[asks]):
        results.add(written.keys_of(members), _forward(results.model, written, members))


def _worth_reuse(model: Predictor, batch: Batch, written: WrittenTexts, asks: Tensor) -> Tensor:
    """Which asks are of a text of which at least half of the single deletions are asked for: those, and all of it."""
    rows = written.rows[asks]
    erased = written.deleted[asks].sum(-1)
    if int(written.lengths[asks][erased == 1].sum()) < LITTLE or not isinstance(model, Deleting):
        return torch.zeros_like(asks, dtype=torch.bool)
    asked = torch.zeros_like(batch.ids).index_add_(0, rows, (erased == 1).long())
    worth = (asked > 0) & (2 * asked >= batch.lengths)  # no deletion is asked for where words are zeroed or replaced
    return (erased <= 1) & worth[rows]


def _by_reuse(model: Deleting, batch: Batch, written: WrittenTexts, asks: Tensor) -> Tensor:
    """Whole texts and single deletions: states before and after the gap are computed once (`deletion`)."""
    rows, row = written.rows[asks].unique(return_inverse=True)
    found = model.deletions(batch.rows(rows))
    deleted = written.deleted[asks]
    without = found.without[row, deleted.byte().argmax(-1)]  # [ask, class]
    return torch.where(deleted.any(-1, keepdim=True), without, found.whole[row]).double()


def erasure_passes(asks: Tensor, lengths: Tensor) -> Iterator[Tensor]:
    """Asks sorted by length, cut into passes of one length; where a length has few, the next ones join, padded.

    The length of a text is what reading it takes: its tokens, or its pieces.
    """
    start = 0
    while start < len(asks):
        sizes = lengths[start : start + TOKENS] * (1 + places(lengths[start : start + TOKENS]))
        fits = max(1, int((sizes <= TOKENS).sum()))  # lengths grow, so all that fit come first
        same = int(torch.searchsorted(lengths, lengths[start], right=True)) - start
        count = min(fits, same if same >= FEW else 2 * FEW)
        yield asks[start : start + count]
        start += count


def _forward(model: Predictor, written: WrittenTexts, asks: Tensor) -> Tensor:
    """One pass over erased texts; what was replaced keeps its width."""
    batch, gone = written.batch(asks)
    if written.by == "blocked":
        return model.logits(batch, intervene=Cut(gone)).double()
    embedded = model.embed(batch) if written.by == "delete" else model.replaced(batch, gone, written.by)
    return model.logits(batch, embedded=embedded).double()
