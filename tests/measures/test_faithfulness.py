"""Faithfulness: every measure again, slowly, on texts that are written out by hand; and models with known answers."""

import math
import random
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from exegete.importance.erasure import Removal
from exegete.measures.faithfulness import (
    EXACT,
    FRACTIONS,
    comprehensiveness,
    flips,
    log_odds,
    prediction_loss,
    prefix_sizes,
    prefixes,
    removal_curves,
    sufficiency,
    target_value,
    without_words,
    word_order,
)
from exegete.models.ours.classifier import PoolingClassifier
from exegete.tasks.batching import Batch, collate
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import UNKNOWN
from tests.small import LETTERS, SPECS, batch_of, small_model, texts

REMOVALS: tuple[Removal, ...] = ("delete", "zero", "unknown")
NAN = math.nan


def predicted(model: PoolingClassifier, example: Example, gone: Sequence[int], by: Removal) -> Tensor:
    """Logits of one text without some words: written down, embedded, and run on its own."""
    words = list(example.words)
    if by == "delete":
        words = [word for i, word in enumerate(words) if i not in gone]
    batch = collate([Example(example.id, (tuple(words),), 0)], model.vocabulary)
    places = batch.words[0].nonzero()[:, 0].tolist()
    if by == "unknown":
        for i in gone:
            batch.tokens[0, places[i]] = UNKNOWN
    with torch.no_grad():
        embedded = model.embed(batch)
        if by == "zero":
            for i in gone:
                embedded[0, places[i]] = 0
        return model.trace(batch, embedded=embedded).logits[0].double()


def slow(model: PoolingClassifier, example: Example, order: Sequence[int], by: Removal) -> dict[str, float]:
    """All measures of one text, straight from the definitions."""
    seen: dict[tuple[int, ...], list[float]] = {}

    def z(gone: Sequence[int]) -> list[float]:
        key = tuple(sorted(gone))
        if key not in seen:
            seen[key] = predicted(model, example, gone, by).tolist()
        return seen[key]

    c, n = z([]).index(max(z([]))), len(example)

    def p(gone: Sequence[int]) -> float:
        return math.exp(z(gone)[c]) / sum(map(math.exp, z(gone)))

    def logit(gone: Sequence[int]) -> float:
        return z(gone)[c]

    found = dict.fromkeys(("comp", "suff", "comp_logit", "suff_logit", "odds"), 0.0)
    for q in FRACTIONS:
        k = math.ceil(round(q * n, 9))
        top, rest = order[:k], order[k:]
        found["comp"] += (p([]) - p(top)) / len(FRACTIONS)
        found["suff"] += (p([]) - p(rest)) / len(FRACTIONS)
        found["comp_logit"] += (logit([]) - logit(top)) / len(FRACTIONS)
        found["suff_logit"] += (logit([]) - logit(rest)) / len(FRACTIONS)
        found["odds"] += (math.log(p([]) / (1 - p([]))) - math.log(p(top) / (1 - p(top)))) / len(FRACTIONS)
    flipped = [k for k in range(1, n) if max(z(order[:k])) > z(order[:k])[c]]
    return found | {"flip": flipped[0] / n if flipped else 1.0, "never": float(not flipped)}


def fast(model: PoolingClassifier, batch: Batch, orders: Tensor, by: Removal) -> dict[str, Tensor]:
    """The same from the library: [order, text] each."""
    nothing = torch.zeros(orders.shape[1:], dtype=torch.bool)
    whole = without_words(model, batch, torch.arange(len(batch.ids)), nothing, by)
    label = whole.argmax(-1)
    left = removal_curves(model, batch, orders, by)
    share, never = flips(model, batch, orders, label, by)
    return {
        "comp": comprehensiveness(whole, left.without, label),
        "suff": sufficiency(whole, left.only, label),
        "comp_logit": comprehensiveness(whole, left.without, label, "logit"),
        "suff_logit": sufficiency(whole, left.only, label, "logit"),
        "odds": log_odds(whole, left.without, label),
        "flip": share,
        "never": never.double(),
    }


def scores(examples: Sequence[Example], seed: int = 0) -> Tensor:
    """Random scores of both signs with many ties, [text, word], NaN beyond a text's end."""
    draw, width = random.Random(seed), max(map(len, examples))
    rows = [[float(draw.randint(-2, 2)) for _ in range(len(e))] + [NAN] * (width - len(e)) for e in examples]
    return torch.tensor(rows, dtype=torch.float64)


def biased(spec: str, examples: Sequence[Example], wrap: bool = False) -> PoolingClassifier:
    """A model near its threshold, so that removals flip some decisions."""
    model = small_model(spec, examples, wrap, labels=("x", "y", "z") if "classes" in spec else ("no", "yes"))
    with torch.no_grad():
        logits = model.trace(batch_of(model, examples)).logits
        middle = 2 * logits[:, 1:].median(0).values if model.one_output else logits.median(0).values
        model.decoder.bias.sub_(middle - 0.01 * torch.arange(1, 1 + len(middle)))  # near, but no text is on it
    return model


@pytest.mark.parametrize(
    ("spec", "wrap", "by"),
    [*((SPECS[0], True, by) for by in REMOVALS), (SPECS[2], False, "delete"), (SPECS[5], False, "zero")],
)
def test_every_measure_recomputed_slowly(spec: str, wrap: bool, by: Removal) -> None:
    examples = texts(8, seed=4, longest=7)
    model = biased(spec, examples, wrap)
    batch = batch_of(model, examples)
    orders = torch.stack([word_order(scores(examples, seed), batch.ids) for seed in (0, 1)])
    found = fast(model, batch, orders, by)
    flipped = 0
    for m in range(2):
        for i, e in enumerate(examples):
            expected = slow(model, e, orders[m, i, : len(e)].tolist(), by)
            flipped += not expected["never"]
            for name, value in expected.items():
                assert found[name][m, i].item() == pytest.approx(value, abs=1e-5), (name, e)
    assert 0 < flipped < 16  # some texts flip and some never do: both are checked


def test_alone_or_in_a_batch() -> None:
    examples = texts(8, seed=2)
    model = biased(SPECS[0], examples)
    together = fast(model, batch_of(model, examples), word_order(scores(examples), torch.arange(8))[None], "delete")
    for i, e in enumerate(examples):
        alone = word_order(scores(examples)[i : i + 1, : len(e)], torch.tensor([e.id]))[None]
        for name, value in fast(model, batch_of(model, [e]), alone, "delete").items():
            assert value[0, 0].item() == pytest.approx(together[name][0, i].item(), abs=1e-5), name


def test_sizes_are_rounded_up_in_whole_numbers() -> None:
    lengths = torch.tensor([1, 18, 20, 21, 100, 700])
    assert prefix_sizes(lengths, 0.01).tolist() == [1, 1, 1, 1, 1, 7]  # 0.01 · 700 is above 7 in floating point
    assert prefix_sizes(lengths, 0.05).tolist() == [1, 1, 1, 2, 5, 35]  # in 18 words, 1 % and 5 % are the same word
    assert prefix_sizes(lengths, 0.5).tolist() == [1, 9, 10, 11, 50, 350]


def test_orders_by_value_and_by_size() -> None:
    values, ids = torch.tensor([[-3.0, 2.0, 1.0, NAN], [0.5, NAN, NAN, NAN]]), torch.tensor([7, 8])
    assert word_order(values, ids)[0].tolist() == [1, 2, 0, 3]
    assert word_order(values, ids, "magnitude")[0].tolist() == [0, 1, 2, 3]
    assert word_order(values, ids)[1, 0] == 0
    first = prefixes(word_order(values, ids), torch.tensor([2, 1]))
    assert first.tolist() == [[False, True, True, False], [True, False, False, False]]


def test_ties_are_shuffled_by_text() -> None:
    n, width = 2000, 5
    tied = torch.zeros(n, width)
    tied[:, 2] = 1
    ids = torch.arange(n)
    order = word_order(tied, ids)
    assert (order[:, 0] == 2).all()
    second = order[:, 1].bincount(minlength=width) / n  # every other place is second equally often
    assert second[[0, 1, 3, 4]].tolist() == pytest.approx([0.25] * 4, abs=0.04)
    assert torch.equal(word_order(tied[100:101], ids[100:101]), order[100:101])  # whatever stands beside it
    assert torch.equal(word_order(3 * tied, ids), order)  # equal ties, equal order, in every method
    wider = torch.cat([tied, torch.full((n, 3), NAN)], 1)
    kept = word_order(wider, ids)
    assert torch.equal(kept[kept < width].view(n, width), order)  # padding changes nothing
    assert not torch.equal(word_order(tied, ids, seed=1), order)


def test_log_odds_of_many_classes_and_of_one_output() -> None:
    logits, label = torch.tensor([[2.0, -1.0, 0.5]], dtype=torch.float64), torch.tensor([0])
    p = logits.softmax(-1)[0, 0].item()
    assert target_value(logits, label, "log_odds").item() == pytest.approx(math.log(p / (1 - p)))
    sure = torch.tensor([[400.0, -400.0]], dtype=torch.float64)
    assert target_value(sure, label, "log_odds").item() == 800  # p is 1 to a computer: log p/(1 − p) would be infinite
    less = torch.tensor([[[10.0, -10.0]]], dtype=torch.float64)
    assert prediction_loss(sure, less, label, "log_odds") == 2 * prediction_loss(sure, less, label, "logit")


def additive(weights: dict[str, float], bias: float = 0.0) -> PoolingClassifier:
    """A model whose log-odds are the mean of its words' weights plus a bias: every removal is known by hand."""
    examples = [Example(0, (tuple(LETTERS),), 0)]
    model = small_model("average:size=1,hidden=1,activation=relu,attention=dot", examples)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        linear = model.encoder.linear
        assert isinstance(linear, torch.nn.Linear)
        linear.weight.fill_(1)
        linear.bias.fill_(8)  # keeps the activation linear
        model.decoder.weight.fill_(1)
        model.decoder.bias.fill_(bias - 8)
        for word, weight in weights.items():
            model.embedding.weight[model.vocabulary.index[word]] = weight
    return model


def by_hand(words: str, values: Sequence[float]) -> tuple[PoolingClassifier, Batch, Tensor]:
    model = additive({"a": 4.0, "b": 2.0, "c": -3.0, "d": 0.0})
    batch = batch_of(model, [Example(3, (tuple(words),), 1)])
    return model, batch, word_order(torch.tensor([values]), batch.ids)[None]


def test_a_model_known_by_hand() -> None:
    model, batch, order = by_hand("abcd", [4, 2, -3, 0])  # log-odds 3/4 for "yes"
    assert order.tolist() == [[[0, 1, 3, 2]]]
    whole = without_words(model, batch, torch.tensor([0]), torch.zeros(1, 4, dtype=torch.bool), "delete")
    assert target_value(whole, torch.tensor([1]), "log_odds").item() == pytest.approx(0.75)
    deleted = log_odds(whole, removal_curves(model, batch, order, "delete").without, torch.tensor([1]))
    zeroed = log_odds(whole, removal_curves(model, batch, order, "zero").without, torch.tensor([1]))
    # ⌈qT⌉ is 1 word for the first four fractions and 2 for the last; deleting changes the mean's divisor.
    assert deleted.item() == pytest.approx((4 * (0.75 + 1 / 3) + (0.75 + 3 / 2)) / 5, abs=1e-5)
    assert zeroed.item() == pytest.approx((4 * (0.75 + 1 / 4) + (0.75 + 3 / 4)) / 5, abs=1e-5)
    assert flips(model, batch, order, torch.tensor([1]), "delete").share.item() == 0.25
    worst = torch.tensor([[[2, 3, 1, 0]]])  # the word against comes first: the decision never changes
    share, never = flips(model, batch, worst, torch.tensor([1]), "delete")
    assert (share.item(), never.item()) == (1.0, True)


def test_one_word() -> None:
    model, batch, order = by_hand("a", [1.0])
    label = torch.tensor([1])
    whole = without_words(model, batch, torch.tensor([0]), torch.zeros(1, 1, dtype=torch.bool), "delete")
    left = removal_curves(model, batch, order, "delete")
    assert log_odds(whole, left.without, label).item() == pytest.approx(4 + 8, abs=1e-5)  # no word: the bias, −8
    assert sufficiency(whole, left.only, label).item() == pytest.approx(0, abs=1e-6)
    assert flips(model, batch, order, label, "delete") == (torch.tensor([[1.0]]), torch.tensor([[True]]))


@pytest.mark.parametrize("n", [EXACT, EXACT + 1, 107])
def test_long_texts_flip_in_steps_of_a_twentieth(n: int) -> None:
    model = additive({"a": 1.0, "b": -0.21})
    words = "a" * (n // 4) + "b" * (n - n // 4)
    batch = batch_of(model, [Example(0, (tuple(words),), 1)])
    order = torch.arange(n)[None, None]
    tried = range(1, n) if n <= EXACT else [math.ceil(j * n / 20) for j in range(1, 20)]
    first = next(k for k in tried if (n // 4 - k) - 0.21 * (n - n // 4) < 0)
    assert flips(model, batch, order, torch.tensor([1]), "zero").share.item() == pytest.approx(first / n)


def test_knowing_the_answer_beats_knowing_nothing() -> None:
    draw = random.Random(0)
    weights = {letter: draw.uniform(-1, 1) for letter in LETTERS}
    model = additive(weights)
    examples = [Example(i, (tuple(draw.choice(LETTERS) for _ in range(12)),), 0) for i in range(60)]
    batch = batch_of(model, examples)
    sign = torch.where(model.trace(batch).logits.argmax(-1) == 1, 1.0, -1.0)[:, None]
    known = sign * torch.tensor([[weights[w] for w in e.words] for e in examples])
    noise = torch.rand(known.shape, generator=torch.Generator().manual_seed(0))
    orders = torch.stack([word_order(x, batch.ids) for x in (known, noise, -known, 2 * known)])
    found = {name: value.mean(-1) for name, value in fast(model, batch, orders, "zero").items()}
    for name, sign_of_good in (("comp", 1), ("comp_logit", 1), ("odds", 1), ("suff", -1), ("flip", -1)):
        best, random_level, worst, same = (sign_of_good * found[name]).tolist()
        assert best > random_level > worst, name
        assert best == pytest.approx(same, abs=1e-9)  # methods that order words alike get equal numbers
    assert found["comp_logit"][1].item() == pytest.approx(_random_level(examples, weights, sign), abs=0.03)


def _random_level(examples: Sequence[Example], weights: dict[str, float], sign: Tensor) -> float:
    """k of T random words take k/T of the sum with them; half of the log-odds is the logit."""
    share = sum(math.ceil(round(q * 12, 9)) for q in FRACTIONS) / len(FRACTIONS) / 12
    totals = [float(s) * sum(weights[w] for w in e.words) / 12 for e, s in zip(examples, sign, strict=True)]
    return share * sum(totals) / len(totals) / 2
