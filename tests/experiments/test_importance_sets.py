"""Importance sets: first flips by plain loops, toys known by hand, censoring and the paper's exclusion."""

import itertools
import math

import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from exegete.base.errors import UsageError
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.common.pooling import Pooled, open_pooled
from exegete.experiments.importance_sets.experiment import (
    SCHEMES,
    ImportanceSets,
    backwards,
    first_flips,
    median_interval,
)
from exegete.experiments.importance_sets.figure import CENSORED, EXCLUDED, quartiles
from exegete.models.build import make_classifier
from exegete.models.ours.classifier import PoolingClassifier
from exegete.report.theme import to_svg
from exegete.tasks.example import Example, Task
from tests.experiments.test_removal import ladder, slow, toy
from tests.experiments.test_single_weight import EXAMPLES, SPARSE, SPEC, argmax, asked_of, softmax
from tests.margins import clear, lead
from tests.small import decoder_of, vocabulary
from tests.subjects import cell, subject_of

ASK = ImportanceSets(orders=3)


def slow_first_flip(part: Pooled, row: int, order: list[int]) -> tuple[float, float, bool, float]:
    """Fraction and mass removed when the decision first differs, one key after the other; and its narrowest margin."""
    weights, steps = part.key_weights[row].tolist(), [slow(part, row, set(order[:j])) for j in range(len(order) + 1)]
    for j in range(1, len(order) + 1):
        if argmax(steps[j]) != argmax(steps[0]):
            mass = sum(weights[t] for t in order[:j]) / sum(weights)
            return j / len(order), mass, True, min(map(lead, steps[: j + 1]))
    return 1.0, 1.0, False, min(map(lead, steps))


def slow_gradient(part: Pooled, row: int) -> list[float]:
    """By differences: the probability of the predicted class with one weight a little larger."""
    assert part.opened.values is not None
    values, weights = part.opened.values[row].tolist(), part.key_weights[row].tolist()
    model = decoder_of(part).model
    assert isinstance(model, PoolingClassifier)
    bias = model.two_sided(model.decoder.bias).tolist()

    def probability(alpha: list[float]) -> list[float]:
        return softmax([sum(a * v[c] for a, v in zip(alpha, values, strict=True)) + b for c, b in enumerate(bias)])

    label, h = argmax(probability(weights)), 1e-6
    ends = [
        [probability([w + side * h * (t == s) for s, w in enumerate(weights)])[label] for side in (1, -1)]
        for t in range(len(weights))
    ]
    return [(up - down) / (2 * h) for up, down in ends]


@pytest.mark.parametrize("spec", [SPEC, SPARSE])
def test_rows_are_the_plain_loop(spec: str) -> None:
    subject = asked_of(spec, scale=3)
    found = {(row["example"], row["scheme"]): row for row in ASK.rows(subject).iter_rows(named=True)}
    with clear() as sure:
        for part in open_pooled(subject.model, subject.examples):
            orders = ASK.ordered(part)
            for row, example in enumerate(part.ids.tolist()):
                if part.weights.shape[-1] == 1:
                    assert found[example, "attention"]["value"] is None
                    continue
                for scheme in SCHEMES:
                    each = [slow_first_flip(part, row, order) for order in orders[scheme][row].tolist()]
                    mine = found[example, scheme]
                    if not sure(min(margin for *_, margin in each)):
                        continue
                    assert mine["value"] == pytest.approx(sum(f for f, *_ in each) / len(each), abs=1e-8)
                    assert mine["mass"] == pytest.approx(sum(m for _, m, *_ in each) / len(each), abs=1e-6)
                    assert (mine["first"], mine["flips"], mine["excluded"]) == (
                        pytest.approx(each[0][0]), each[0][2], not each[0][2],
                    )  # fmt: skip


def test_orders_are_those_of_the_schemes() -> None:
    subject = asked_of()
    for part in open_pooled(subject.model, subject.examples):
        orders = {scheme: order.tolist() for scheme, order in ASK.ordered(part).items()}
        for row in range(len(part.ids)):
            weights, slopes = part.key_weights[row].tolist(), slow_gradient(part, row)
            products = [a * g for a, g in zip(weights, slopes, strict=True)]
            for scheme, scores in (("attention", weights), ("gradient", slopes), ("gradient_x_attention", products)):
                ordered = [scores[t] for t in orders[scheme][row][0]]
                assert all(a >= b - 1e-8 for a, b in itertools.pairwise(ordered))
            assert orders["attention_ascending"][row][0] == orders["attention"][row][0][::-1]
            assert all(sorted(order) == list(range(len(weights))) for order in orders["random"][row])
            assert len(orders["random"][row]) == 3


def test_a_text_known_by_hand() -> None:
    """Class a by 0.5 · 3 − 0.5 · 2: without the first key, class b; in the other order only when two are gone."""
    part = toy([[3.0, 0.0], [1.0, 0.0], [0.0, 2.0]], [0.5, 0.2, 0.3], [0.0, 0.0])
    found = first_flips(part, torch.tensor([[[0, 1, 2], [1, 0, 2], [2, 1, 0]]]))
    assert found.fraction[0].tolist() == pytest.approx([1 / 3, 2 / 3, 1.0])
    assert found.mass[0].tolist() == pytest.approx([0.5, 0.7, 1.0])
    assert found.flips[0].tolist() == [True, True, False]  # a bias of 0 ties, and the first class wins ties
    assert not found.emptied.any()
    moved = toy([[3.0, 0.0], [1.0, 0.0], [0.0, 2.0]], [0.5, 0.2, 0.3], [0.0, 0.1])
    last = first_flips(moved, torch.tensor([[[2, 1, 0]]]))
    assert (last.flips.item(), last.emptied.item(), last.fraction.item()) == (True, True, 1.0)


def test_a_text_that_never_flips_is_censored_and_excluded() -> None:
    part = toy([[3.0, 0.0], [1.0, 0.0]], [0.5, 0.5], [1.0, 0.0])
    found = first_flips(part, torch.tensor([[[0, 1]]]))
    assert (found.fraction.item(), found.mass.item(), found.flips.item()) == (1.0, 1.0, False)


def test_one_weight_is_all_of_sparse_attention() -> None:
    """With α = (0, 1, 0) the second key is all: then nothing is left and the bias decides."""
    part = toy([[0.0, 9.0], [3.0, 0.0], [0.0, 9.0]], [0.0, 1.0, 0.0], [0.0, 0.5])
    order = ImportanceSets(("attention",)).ordered(part)["attention"]
    found = first_flips(part, order)
    assert found.fraction.item() == pytest.approx(1 / 3)
    assert (found.flips.item(), found.emptied.item()) == (True, True)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(-2, 2), st.floats(-2, 2)), min_size=2, max_size=6), st.integers(0, 3)
)
def test_what_always_holds(keys: list[tuple[float, float, float]], pad: int) -> None:
    weights = [a + 1e-3 for a, _, _ in keys]
    total = sum(weights)
    part = toy([[x, y] for _, x, y in keys], [a / total for a in weights], [0.0, 0.1], pad=pad)
    orders = ASK.ordered(part)
    n = len(keys)
    assert orders["attention_ascending"][0, 0, :n].tolist() == orders["attention"][0, 0, :n].tolist()[::-1]
    for order in orders.values():
        found = first_flips(part, order)
        assert bool(((found.fraction > 0) & (found.fraction <= 1)).all())
        assert bool(((found.mass > 0) & (found.mass <= 1 + 1e-9)).all())
        assert torch.equal(found.fraction[~found.flips], torch.ones_like(found.fraction[~found.flips]))


def test_in_a_ladder_the_best_order_is_that_of_weighted_votes() -> None:
    """share = 1, two classes: no set of words flips a decision with fewer than the slope times attention needs."""
    ask, flipped = ImportanceSets(("gradient_x_attention", "attention")), 0
    for part in open_pooled(ladder(), EXAMPLES):
        n = int(part.opened.removable[0].sum())
        if n < 2 or n > 6:
            continue
        sets = torch.tensor([[0, *s, 0] for s in itertools.product((0, 1), repeat=n)]).double()  # kept words
        decisions = part.decode((sets * part.weights)[:, :, None]).argmax(
            -1
        )  # the null key counts 0 whatever its weight
        changed = decisions != part.logits.argmax(-1, keepdim=True)
        gone = n - sets[:, 1:-1].sum(-1).expand_as(changed)
        fewest = gone.masked_fill(~changed, n).amin(-1) / n
        found = first_flips(part, ask.ordered(part)["gradient_x_attention"])
        assert torch.equal(found.fraction[:, 0], fewest)
        assert bool((first_flips(part, ask.ordered(part)["attention"]).fraction[:, 0] >= fewest).all())
        assert torch.allclose(found.mass[~found.flips], torch.ones_like(found.mass[~found.flips]))
        flipped += int((found.flips[:, 0] & (fewest < 1)).sum())
    assert flipped > 3


def test_backwards_keeps_what_is_not_real_at_the_end() -> None:
    order, mask = torch.tensor([[2, 0, 1, 3], [0, 1, 3, 2]]), torch.tensor([[True] * 3 + [False], [True] * 4])
    assert backwards(order, mask).tolist() == [[1, 0, 2, 3], [2, 3, 1, 0]]


def test_a_batch_is_its_texts_one_by_one() -> None:
    whole = ASK.rows(asked_of(scale=3))
    single = pl.concat([ASK.rows(asked_of(examples=(e,), scale=3)) for e in EXAMPLES[:10]])
    part = whole.head(single.height)
    assert part.select("example", "scheme", "flips").equals(single.select("example", "scheme", "flips"))
    for name in ("value", "first", "mass"):
        assert single[name].to_list() == pytest.approx(part[name].to_list(), abs=1e-6)


def rows_of(fractions: dict[str, list[float | None]], seed: int = 0) -> pl.DataFrame:
    """Rows with these fractions; None never flips."""
    parts = []
    for scheme, values in fractions.items():
        censored = [1.0 if v is None else v for v in values]
        frame = pl.DataFrame(
            {"example": range(len(values)), "value": censored, "flips": [v is not None for v in values]}
        )
        same = {name: pl.col("value") for name in ("first", "mass", "first_mass")}
        parts.append(
            frame.with_columns(scheme=pl.lit(scheme), excluded=~pl.col("flips"), emptied=pl.lit(False), **same)
        )
    return cell(pl.concat(parts), seed)


HAND = rows_of({"attention": [0.2, 0.4, None, 0.6], "random": [0.4, 0.4, 0.8, None], "gradient": [0.1, 0.2, 0.5, 0.6]})


def test_the_summary_known_by_hand() -> None:
    summary = {row["scheme"]: row for row in ASK.summary(HAND).iter_rows(named=True)}
    attention = summary["attention"]
    assert (attention["n"], attention["kept_n"], attention["excluded"]) == (4, 3, 1)
    assert (attention["mean"], attention["kept_mean"]) == pytest.approx((0.55, 0.4))
    assert (attention["median"], attention["kept_median"]) == pytest.approx((0.5, 0.4))
    assert {row["chance"] for row in summary.values()} == {summary["random"]["mean"]}
    paper = ASK.tables(HAND)["serrano_smith"].row(0, named=True)
    assert (paper["n"], paper["excluded"], paper["fraction"]) == (3, 1, pytest.approx(0.4))
    assert paper["fraction_std"] == pytest.approx(0.2)


def test_pairs_known_by_hand() -> None:
    table = ASK.tables(HAND)["paired"]
    assert table.height == 6
    row = table.filter(first="attention", second="random", texts="all").row(0, named=True)
    assert row["difference"] == pytest.approx((-0.2 + 0 + 0.2 - 0.4) / 4)
    assert (row["fewer"], row["more"], row["n"]) == (0.5, 0.25, 4)
    assert row["p"] == pytest.approx(stats.binomtest(2, 3).pvalue)
    both = table.filter(first="attention", second="random", texts="flipped").row(0, named=True)
    assert (both["n"], both["fewer"], both["more"]) == (2, 0.5, 0.0)
    none = ASK.tables(rows_of({"attention": [None], "random": [0.5]}))["paired"].filter(texts="flipped")
    assert none.select("n", "difference", "p").row(0) == (0, None, None)


def test_several_seeds() -> None:
    both = pl.concat([HAND, HAND.with_columns(seed=pl.lit(1))])
    summary = ASK.summary(both)
    assert summary["seeds"].to_list() == [2] * 3
    assert summary["n"].to_list() == [8] * 3
    p = [ASK.tables(rows)["paired"]["p"].to_list() for rows in (HAND, both)]
    assert p[0] == p[1]  # the same texts twice prove no more


def test_the_interval_of_a_median_holds_it_often_enough() -> None:
    drawn = torch.rand(400, 41, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    held = [i.low <= 0.5 <= i.high for i in (median_interval(values[None]) for values in drawn)]
    assert 0.93 < sum(held) / len(held) <= 1
    assert math.isnan(median_interval(torch.full((1, 3), math.nan)).mean)


def test_texts_of_one_key_are_counted_apart() -> None:
    short = sum(len(e) == 1 for e in EXAMPLES)
    rows = cell(ASK.rows(asked_of()))
    assert rows.filter(pl.col("keys") == 1)["flips"].null_count() == short * len(SCHEMES)
    assert set(ASK.summary(rows)["undefined"]) == {short}
    assert set(ASK.summary(rows)["n"]) == {len(EXAMPLES) - short}
    one = rows.filter(pl.col("keys") == 1)
    assert ASK.summary(one)["mean"].null_count() == len(SCHEMES)
    assert "nothing to show" in to_svg(ASK.figures(one, ASK.summary(one))["boxes"])


def test_the_boxes_draw_what_was_measured() -> None:
    table = quartiles(HAND)
    box = table.filter(scheme="attention", texts=CENSORED).row(0, named=True)
    assert (box["n"], box["median"], box["q1"], box["q3"]) == (4, pytest.approx(0.5), pytest.approx(0.35), 0.7)
    assert (box["low"], box["high"], box["mean"]) == (0.2, 1.0, pytest.approx(0.55))
    assert table.filter(scheme="attention", texts=EXCLUDED)["n"].item() == 3
    never = quartiles(rows_of({"attention": [None, None], "random": [0.5, None]}))
    assert never.height == 4
    assert never.filter(scheme="attention", texts=EXCLUDED)["n"].item() == 0
    assert "lowest first" in to_svg(ASK.figures(cell(ASK.rows(asked_of())), pl.DataFrame())["boxes"])


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"schemes": ()}, "at least one scheme"),
        ({"schemes": ("random", "random")}, "every one once"),
        ({"schemes": ("sign",)}, "no scheme 'sign': choose among attention"),
        ({"orders": 0}, "orders of 1 or more, not 0"),
    ],
)
def test_wrong_settings(wrong: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        ImportanceSets(**wrong)  # type: ignore[arg-type]


def test_it_is_made_by_name() -> None:
    assert EXPERIMENTS.make("importance_sets:orders=2") == ImportanceSets(orders=2)


def test_keys_of_a_hierarchical_model_are_sentences() -> None:
    """Texts of six words and one, two or three sentences in one batch: those without a third are padded."""
    words = ("a b c d e !", "a b ! c d !", "a ! b ! c !", "e ! a b c !", "d c ! b a !", "c ! a ! e !")
    examples = tuple(Example(i, (tuple(text.split()),), 0) for i, text in enumerate(words))
    model = make_classifier("hierarchical:size=7,hidden=6,scale=2", vocabulary(examples), ("no", "yes")).eval()
    task = Task("small", ("no", "yes"), {"test": examples}, "made up")

    def asked(some: tuple[Example, ...]) -> pl.DataFrame:
        return ASK.rows(subject_of(model, task, some))

    whole, single = asked(examples), pl.concat([asked((e,)) for e in examples])
    assert whole.unique("example", maintain_order=True)["keys"].to_list() == [1, 2, 3, 2, 2, 3]
    assert whole["n"].unique().to_list() == [6]
    assert whole.filter(example=0)["value"].null_count() == len(SCHEMES)
    assert single["value"].to_list() == pytest.approx(whole["value"].to_list(), abs=1e-6)
    assert set(whole.filter(example=1, scheme="attention")["value"]) <= {0.5, 1.0}
