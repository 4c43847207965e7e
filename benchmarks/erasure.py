"""All that erases words, planned together: importances and measures in one block against the sum of each alone.

Alone, each runs a text once, too, all texts of a batch together. The five importances have their defaults; the measures
are those of the experiment faithfulness, under its three removals, each for the order that one importance gives the
words, by score or by size, for all importances that a BiLSTM allows.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, get_args

import torch
from torch import Tensor

from common import FEW, SMALL, below, seconds, trained
from exegete.importance.catalogue import IMPORTANCES, computable
from exegete.importance.contract import refusal
from exegete.importance.erasure import Removal, erased
from exegete.importance.sharing import sharing
from exegete.measures.faithfulness import (
    FRACTIONS,
    Ranking,
    comprehensiveness,
    flips,
    log_odds,
    prefix_sizes,
    prefixes,
    sufficiency,
    without_words,
    word_order,
)
from exegete.models.capabilities import Deleting, Deletions
from exegete.models.ours.classifier import Classifier
from exegete.tasks.batching import Batch, batches_of_one_length
from exegete.tasks.catalogue import load_task

METHODS = ("leave_one_out", "occlusion", "replacement", "lime", "kernel_shap")
MEASURES: dict[str, tuple[Callable[..., Tensor], bool]] = {  # and whether the first words are removed, or alone kept
    "comprehensiveness": (comprehensiveness, True),
    "comprehensiveness of logits": (partial(comprehensiveness, of="logit"), True),
    "log-odds": (log_odds, True),
    "sufficiency": (sufficiency, False),
    "sufficiency of logits": (partial(sufficiency, of="logit"), False),
}
TEXTS = 2 if SMALL else 24
BAR = 2.0


class Counted:
    """How many texts a model was shown; a deletion with reused states counts as one."""

    def __init__(self, model: Classifier) -> None:
        self.texts = 0
        assert isinstance(model, Deleting)
        trace, deletions = model.trace, model.deletions

        def traced(batch: Batch, **settings: Any) -> Any:
            self.texts += len(batch.ids)
            return trace(batch, **settings)

        def deleted(batch: Batch, instead: Tensor | None = None, asked: Tensor | None = None) -> Deletions:
            self.texts += len(batch.ids) + int((batch.words if asked is None else asked).sum())
            return deletions(batch, instead, asked)

        model.trace, model.deletions = traced, deleted  # type: ignore[method-assign]


def orders_of(model: Classifier, batch: Batch) -> Tensor:
    """The words of every text, as all importances of the catalogue order them."""  # [order, text, word]
    methods = [IMPORTANCES.make(name) for name in computable()]
    scores = [method(model, batch).values for method in methods if refusal(method, model) is None]
    return torch.stack([word_order(values, batch.ids, by) for values in scores for by in get_args(Ranking)])


def measured(model: Classifier, batch: Batch, orders: Tensor, name: str, by: Removal) -> Tensor:
    """One measure of all orders, asking for no more than it needs."""
    every = torch.arange(len(batch.ids))
    whole = erased(model, batch, every, torch.zeros_like(batch.words), by)
    if name == "flips":
        return flips(model, batch, orders, whole.argmax(-1), by).share
    measure, removed = MEASURES[name]
    top = torch.stack([prefixes(orders, prefix_sizes(batch.lengths, q)) for q in FRACTIONS], 2)
    gone = top if removed else ~top  # [order, text, fraction, word]
    rows = every[:, None].expand(gone.shape[:-1])
    left = without_words(model, batch, rows.flatten(), gone.flatten(0, -2), by).view(*gone.shape[:-1], -1)
    return measure(whole, left, whole.argmax(-1))


Work = Sequence[tuple[Batch, Tensor]]  # batches and the orders of their words


def pieces(model: Classifier, batch: Batch, orders: Tensor) -> Iterator[Callable[[], object]]:
    """All importances, then all measures of every order of the words, under all removals."""
    yield from (partial(IMPORTANCES.make(name), model, batch) for name in METHODS)
    for by in get_args(Removal):
        for order in orders.split(1):
            yield from (partial(measured, model, batch, order, name, by) for name in (*MEASURES, "flips"))


def run(model: Classifier, work: Work, shared: bool) -> None:
    for batch, orders in work:
        with sharing() if shared else nullcontext():
            for piece in pieces(model, batch, orders):
                piece()


def compare(model: Classifier, work: Work) -> None:
    counted, found = Counted(model), []
    for shared in (False, True):
        counted.texts = 0
        found.append((seconds(partial(run, model, work, shared)), counted.texts))
    (slow, many), (fast, few) = found
    print(f"  {len(METHODS)} importances, {len(MEASURES) + 1} measures under {len(get_args(Removal))} removals")
    print(f"    each alone  {slow:6.1f} s  {many:9,} texts run")
    print(f"    together    {fast:6.1f} s  {few:9,} texts run  {slow / fast:5.2f}x  (bar {BAR:.0f}x)")
    if few >= many or below(slow / fast, BAR):
        sys.exit("erasure: below the bar, or nothing was shared")


def main() -> None:
    torch.set_num_threads(1)
    data = load_task(FEW if SMALL else "rotten_tomatoes")
    model = trained(data)
    by_length = sorted(data.split("test"), key=len)
    middle = (len(by_length) - TEXTS) // 2
    examples = by_length[middle : middle + TEXTS]  # of usual lengths, so that batches are as large as with all texts
    batches = [
        model.collate([examples[i] for i in members])
        for members in batches_of_one_length(examples, size=256, budget=8192)
    ]
    work = [(batch, orders_of(model, batch)) for batch in batches]
    print(f"erasure, {TEXTS} texts of {data.name}:")
    compare(model, work)


if __name__ == "__main__":
    main()
