"""Below the readout: what the debate asks, asked of one layer, is what whole passes say of it."""

from copy import deepcopy

import polars as pl
import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.experiments.adversary_search.experiment import AdversarySearch
from exegete.experiments.adversary_search.statistics import unique
from exegete.experiments.common.depth import at_readout
from exegete.experiments.common.pooling import open_pooled
from exegete.experiments.common.statistic import Evidence
from exegete.experiments.importance_sets.experiment import ImportanceSets
from exegete.experiments.importance_sets.statistics import ranks_decisions
from exegete.experiments.permutation.experiment import Permutation
from exegete.interventions.search import find
from exegete.models.contract import Predictor, Site
from exegete.tasks.example import Example, Task
from tests.models.architectures import classifier
from tests.subjects import cell, subject_of

WORDS = ("an", "unbelievably", "charming", "movie", "of", "plot", "bad")
TEXTS = (*(Example(i, (WORDS[: 2 + i],), i % 2) for i in range(5)), Example(90, (("plot",),), 0))
TASK = Task("small", ("no", "yes"), {"test": TEXTS}, "made up")
BELOW = "encoder.0"
SETS = ImportanceSets(schemes=("attention", "random"), orders=2)
SEARCH = AdversarySearch(count=2, steps=3, epsilons=(0.05,))


@pytest.fixture(scope="module")
def model() -> Predictor:
    """Of two layers; its decisions are made to lie near the border, so that some of them flip."""
    own = deepcopy(classifier("bert"))
    with torch.no_grad():
        apart = torch.cat([own.logits(own.collate([e])) for e in TEXTS]).diff(dim=-1).mean()
        own.base.classifier.bias[0] += apart
    return own


def without(model: Predictor, e: Example, gone: list[int]) -> tuple[Tensor, Tensor]:
    """Logits of a text whose words are gone from every row of the layer, and the weights that they had; slowly."""
    batch, met = model.collate([e]), []

    def erase(site: Site) -> Tensor:
        if site.name != BELOW:
            return site.weights
        met.append(site.weights[0].double().mean((0, 1))[batch.words[0]])
        kept = site.weights.clone()
        for row in kept[0].flatten(0, 1):
            whole = float(row.sum())
            row[batch.words[0].nonzero()[gone, 0]] = 0.0
            row *= whole / float(row.sum())
        return kept

    with torch.no_grad():
        return model.logits(batch, intervene=erase)[0], met[0]


def test_words_leave_every_row_of_a_layer_until_the_decision_flips(model: Predictor) -> None:
    rows = ImportanceSets(SETS.schemes, SETS.orders, sites=("readout", BELOW)).rows(subject_of(model, TASK))
    assert at_readout(rows).equals(SETS.rows(subject_of(model, TASK)))
    flipped = 0
    for e in TEXTS[:-1]:
        found = rows.filter(example=e.id, sites=BELOW, scheme="attention").row(0, named=True)
        own, weights = without(model, e, [])
        order = weights.argsort(descending=True).tolist()
        after = [int(without(model, e, order[: k + 1])[0].argmax()) for k in range(len(e))]
        flips = [k + 1 for k, decision in enumerate(after) if decision != int(own.argmax())]
        flipped += bool(flips)
        assert found["flips"] == bool(flips)
        assert found["value"] == pytest.approx((flips[0] if flips else len(e)) / len(e))
    assert flipped  # else every fraction is 1, whatever is removed
    assert rows.filter(example=90)["value"].null_count() == 4  # one word: nothing to rank, in no place


def test_a_searched_layer_predicts_what_a_whole_pass_predicts(model: Predictor) -> None:
    for e in TEXTS[:2]:
        (pool,) = open_pooled(model, [e], BELOW)
        found, batch = find(pool.opened, SEARCH), model.collate([e])
        for weights, tvd in zip(found.weights[0], found.tvd[0], strict=True):

            def impose(site: Site, weights: Tensor = weights) -> Tensor:
                return weights.view_as(site.weights).to(site.weights) if site.name == BELOW else site.weights

            with torch.no_grad():
                after, before = (model.logits(batch, intervene=at).softmax(-1) for at in (impose, None))
            assert float(tvd) == pytest.approx(float((after - before).abs().sum() / 2), abs=1e-5)
        assert float(found.jsd.min()) > 1e-4  # it did move


def test_the_audit_goes_by_the_readout(model: Predictor) -> None:
    subject = subject_of(model, TASK)
    deep = AdversarySearch(count=2, steps=3, epsilons=(0.05,), sites=("readout", "each")).rows(subject)
    plain = SEARCH.rows(subject)
    assert deep["sites"].unique(maintain_order=True).to_list() == ["readout", BELOW]
    assert at_readout(deep).equals(plain)
    assert SEARCH.summary(cell(deep)).filter(pl.col("class") == "all", pl.col("bin") == "all")["sites"].to_list() == [
        "readout", BELOW,
    ]  # fmt: skip
    both = pl.concat([deep, deep.with_columns(who=pl.lit("faithful"))])
    judged = unique(Evidence((cell(both),), (SEARCH,), 0.05))
    assert judged is not None
    assert judged.values.shape == (1, len(TEXTS))  # two places would be twice as many texts
    sets = ImportanceSets(SETS.schemes, SETS.orders, sites=("readout", "each")).rows(subject)
    ranked = [ranks_decisions(Evidence((cell(rows),), (SETS,), 0.05)) for rows in (sets, SETS.rows(subject))]
    assert ranked[0] is not None
    assert ranked[1] is not None
    assert torch.equal(ranked[0].values.nan_to_num(9), ranked[1].values.nan_to_num(9))


@pytest.mark.parametrize(
    "asked",
    [
        Permutation(draws=2, sites=("readout", "each", "every")),
        ImportanceSets(SETS.schemes, SETS.orders, sites=("readout", "each")),
        AdversarySearch(count=2, steps=3, epsilons=(0.05,), sites=("readout", "each")),
    ],
    ids=lambda asked: type(asked).__name__,
)
def test_layers_are_drawn_where_several_were_asked_about(
    model: Predictor, asked: Permutation | ImportanceSets | AdversarySearch
) -> None:
    """A dot for every place and scheme at the summary's mean, the readout above its layers; else no figure."""
    rows = cell(asked.rows(subject_of(model, TASK)))
    summary = asked.summary(rows)
    drawn = asked.figures(rows, summary)["layers"].to_dict()
    (found,) = drawn["datasets"].values()
    all_ = [pl.col(name) == "all" for name in ("class", "bin") if name in summary.columns]
    wanted = summary.filter(*all_, *([pl.col("measure") == "median_tvd"] if "measure" in summary.columns else []))
    assert {(dot["place"], dot["mean"]) for dot in found} == set(wanted.select("sites", "mean").iter_rows())
    sorts = [layer["encoding"]["y"]["sort"] for layer in drawn["spec"]["layer"]]
    assert sorts[0][:2] == [BELOW, "readout"]
    top = at_readout(rows)
    assert "layers" not in asked.figures(top, asked.summary(top))


def test_what_is_no_layer_is_refused(model: Predictor) -> None:
    with pytest.raises(UsageError, match="unknown site 'every'"):
        ImportanceSets(sites=("readout", "every")).rows(subject_of(model, TASK))
    for ask in (ImportanceSets, AdversarySearch):
        with pytest.raises(UsageError, match="sites are the readout and perhaps other places"):
            ask(sites=(BELOW,))
