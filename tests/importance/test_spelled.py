"""Every importance on a model whose words have several pieces: who refuses it, and some by hand."""

import pytest
import torch
from torch import Tensor

from exegete.importance.attention import Attention
from exegete.importance.catalogue import IMPORTANCES, computable
from exegete.importance.contract import Target, refusal
from exegete.importance.erased_texts import Removal, write
from exegete.importance.erasure import erased
from exegete.importance.gradient import Gradient
from exegete.importance.integrated_gradients import IntegratedGradients
from exegete.importance.rollout import Rollout
from exegete.importance.sharing import sharing
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import UNKNOWN
from tests.models.spelled_models import FIRST, MEAN, POOLED, sentences, spelled_model
from tests.small import SEPARATING

EXAMPLES = (*sentences(5, seed=8), Example(90, (("a",),), 0), Example(91, (("charming", "", "xyzzy"),), 1))
FAST = ("integrated_gradients:steps=8,most=32", "smoothgrad:samples=4", "lime:samples=20", "kernel_shap:samples=20")
METHODS = (*(name for name in computable() if name not in {spec.partition(":")[0] for spec in FAST}), *FAST)


@pytest.mark.parametrize("method", METHODS)
def test_most_methods_are_for_it(method: str) -> None:
    """Only what knows the layers of other models by heart, or needs words that act through attention, refuses it."""
    refused = [refusal(IMPORTANCES.make(method), spelled_model(spec)) is not None for spec in (POOLED, FIRST, MEAN)]
    some = [False, False, method == "blocking"]  # whose mean of all states reads a word that nobody looks at
    assert refused == ([True] * 3 if method in ("lrp", "deeplift", *SEPARATING) else some)


def test_what_fills_up_short_words_is_no_part_of_a_range() -> None:
    """The noise of SmoothGrad is a share of the range of a text's embeddings: all above 0 here, as no filling is."""
    model = spelled_model(POOLED).double()
    with torch.no_grad():
        model.embedding.weight.abs_()
    short, long = (Example(i, ((word,),), 0) for i, word in enumerate(("a", "unbelievably")))
    importance = IMPORTANCES.make("smoothgrad:samples=4,noise=0.5")
    alone, beside = (importance(model, model.collate(some)).values[0, 1] for some in ([short], [short, long]))
    assert float(alone) == pytest.approx(float(beside), rel=1e-9)


def test_the_gradient_of_a_word_is_that_of_all_its_pieces() -> None:
    model = spelled_model(POOLED).double()
    batch = model.collate(EXAMPLES[:1])
    target = Target(torch.tensor([1]))
    values = Gradient(norm="l2")(model, batch, target).values[0]
    for place in batch.words[0].nonzero()[:, 0].tolist():
        squares = 0.0
        for column in range(int(batch.cost[0, place]) * model.size):
            up, down = (_moved(model, batch, place, column, step) for step in (1e-5, -1e-5))
            squares += ((up - down) / 2e-5) ** 2
        assert float(values[place]) == pytest.approx(squares**0.5, rel=1e-4)


def _moved(model: Predictor, batch: Batch, place: int, column: int, step: float) -> float:
    with torch.no_grad():
        embedded = model.embed(batch)
        embedded[0, place, column] += step
        return float(model.logits(batch, embedded=embedded)[0, 1])


@pytest.mark.parametrize("baseline", ["zero", "unknown", "padding", "mean"])
def test_integrated_gradients_are_complete(baseline: str) -> None:
    model = spelled_model(POOLED).double()
    batch = model.collate(EXAMPLES[:3])
    found = IntegratedGradients(baseline=baseline, steps=200)(model, batch)  # type: ignore[arg-type]
    with torch.no_grad():
        label = found.target.label[:, None]
        whole = model.logits(batch).gather(1, label)[:, 0]
        empty = model.logits(batch, embedded=model.replaced(batch, batch.words, baseline)).gather(1, label)[:, 0]  # type: ignore[arg-type]
    torch.testing.assert_close(found.values.nansum(-1), whole - empty, atol=1e-2, rtol=1e-2)


@torch.no_grad()
def test_the_attention_of_what_is_read() -> None:
    for spec, row in ((FIRST, 0), (MEAN, None)):
        model = spelled_model(spec)
        batch = model.collate(EXAMPLES)
        weights = model.trace(batch).attention["encoder.1"].mean(1)  # [batch, query, key]
        values = Attention()(model, batch).values
        for text in range(len(EXAMPLES)):
            there = batch.present[text] & (batch.cost[text] > 0)
            slow = weights[text, row] if row is not None else weights[text][there].mean(0)
            torch.testing.assert_close(values[text][batch.words[text]], slow[batch.words[text]])


@torch.no_grad()
def test_rollout_is_of_words() -> None:
    """Layer by layer from the output down, with weights folded to words."""
    for spec in (POOLED, FIRST, MEAN):
        model = spelled_model(spec)
        (example,) = EXAMPLES[:1]
        batch = model.collate([example])
        trace = model.trace(batch)
        tokens = batch.tokens.shape[1]
        start: list[float] = [1 / tokens] * tokens
        if spec == POOLED:
            start = trace.attention["attention"][0, 0, 0].tolist()
        elif spec == FIRST:
            start = [1.0] + [0.0] * (tokens - 1)
        for site in ("encoder.1", "encoder.0"):
            layer = trace.attention[site][0].mean(0).tolist()
            below = [[(layer[i][j] + (i == j)) / 2 for j in range(tokens)] for i in range(tokens)]
            start = [sum(start[i] * below[i][j] for i in range(tokens)) for j in range(tokens)]
        found = Rollout()(model, batch).values[0]
        torch.testing.assert_close(
            found[batch.words[0]], torch.tensor(start).double()[batch.words[0]], atol=1e-5, rtol=1e-5
        )


@pytest.mark.parametrize("by", ["delete", "zero", "unknown"])
@pytest.mark.parametrize("spec", [POOLED, FIRST, MEAN])
@torch.no_grad()
def test_each_removal_text_by_text(spec: str, by: Removal) -> None:
    model = spelled_model(spec)
    batch = model.collate(EXAMPLES)
    rows, places = batch.words.nonzero(as_tuple=True)
    gone = torch.nn.functional.one_hot(places, batch.tokens.shape[1]).bool()
    with sharing():
        found = erased(model, batch, rows, gone, by)
    for row, place, logits in zip(rows.tolist(), places.tolist(), found, strict=True):
        torch.testing.assert_close(logits, _slow(model, EXAMPLES[row], place, by), atol=1e-5, rtol=1e-5)


def _slow(model: Predictor, example: Example, place: int, by: Removal) -> Tensor:
    """One text without one word, by its piece embeddings."""
    batch = model.collate([example])
    if by == "delete":
        place -= int(not batch.words[0, 0])  # the start symbol
        words = (*example.words[:place], *example.words[place + 1 :])
        return model.logits(model.collate([Example(0, (words,), 0)]))[0].double()
    embedded, size = model.embed(batch), model.embedding.weight.shape[1]  # type: ignore[attr-defined]
    pieces = embedded[0, place].view(-1, size)
    table = model.embedding.weight  # type: ignore[attr-defined]
    for piece in range(int(batch.cost[0, place])):
        pieces[piece] = table[UNKNOWN] if by == "unknown" else 0.0
    return model.logits(batch, embedded=embedded)[0].double()


def test_erased_texts_are_counted_by_their_pieces() -> None:
    model = spelled_model(POOLED)
    batch = model.collate(EXAMPLES)
    rows, places = batch.words.nonzero(as_tuple=True)
    gone = torch.nn.functional.one_hot(places, batch.tokens.shape[1]).bool()
    whole = batch.cost.sum(-1)[rows]
    without = whole - batch.cost[rows, places]
    assert torch.equal(write(batch, rows, gone, "delete").costs, without)
    assert torch.equal(write(batch, rows, gone, "zero").costs, whole)  # a zeroed word keeps its width
    assert not torch.equal(without, write(batch, rows, gone, "delete").lengths)
