"""Beside: texts without weights are undefined and counted, null keys are left out everywhere, one permuted JSD."""

import math
from dataclasses import replace
from functools import partial

import polars as pl
import pytest
import torch

from exegete.experiments.adversary_search.experiment import AdversarySearch
from exegete.experiments.adversary_training.experiment import AdversaryTraining
from exegete.experiments.common.contract import Experiment, Subject, unsuited
from exegete.experiments.common.pooling import open_pooled
from exegete.experiments.common.search_weights import search_weights
from exegete.experiments.common.side_by_side import (
    distance,
    permuted_distance,
    permuted_jsd,
    see_texts,
    weights_of_words,
    word_keys,
)
from exegete.experiments.diagnostic.experiment import Diagnostic
from exegete.experiments.gating.experiment import Gating
from exegete.experiments.permutation.experiment import Permutation
from exegete.experiments.seed_stability.experiment import SeedStability
from exegete.interventions import search as searching
from exegete.interventions.permute import permuted
from exegete.models.build import build, make_classifier
from exegete.models.ours.classifier import PoolingClassifier
from exegete.models.ours.module import Model
from exegete.tasks.example import Example, Task
from exegete.tasks.vocabulary import fit_vocabulary
from exegete.training.recipe import Companion
from tests.experiments.beside_models import slow_jsd
from tests.small import batch_of, texts
from tests.subjects import cell, subject_of

EXAMPLES = (*texts(12, longest=6), Example(90, (("b", "b", "b"),), 0), Example(91, (("a",),), 1))
TASK = Task("small", ("no", "yes"), {"train": EXAMPLES, "dev": EXAMPLES, "test": EXAMPLES}, "by hand")
RATIONALE = "rationale:size=5,hidden=4,scale=1"
NOTHING = [e.id for e in EXAMPLES if "a" not in e.words and len(e) > 1]  # of which the model selects no word


def selective(seed: int = 0, spec: str = RATIONALE) -> PoolingClassifier:
    """A rationale model that selects the words a and no others."""
    torch.manual_seed(seed)
    model = make_classifier(spec, fit_vocabulary(EXAMPLES), TASK.labels).eval()
    assert isinstance(model, PoolingClassifier)
    only = model.vocabulary.index["a"]
    model.gates = lambda batch, _: (  # type: ignore[assignment]
        (batch.tokens == only) & batch.words | ~batch.words & batch.present
    ).float()
    return model


def subject(model: Model, **companions: Model) -> Subject:
    return subject_of(model, TASK, companions={name: Companion(other) for name, other in companions.items()})


def test_texts_of_which_nothing_is_selected_have_no_divergence() -> None:
    ours, theirs = (see_texts(selective(seed), EXAMPLES) for seed in (0, 1))
    assert NOTHING
    assert not ours.weights.nansum(-1).isnan().any()
    found = distance(ours, theirs)
    shuffled = permuted_distance(ours, theirs, torch.tensor([e.id for e in EXAMPLES]), 0)
    for e, keys, one, other in zip(EXAMPLES, ours.keys.tolist(), found.tolist(), shuffled.tolist(), strict=True):
        assert keys == len(e)
        undefined = e.id in NOTHING or len(e) == 1
        assert math.isnan(one) == math.isnan(other) == undefined


ASKED: tuple[tuple[Experiment, tuple[str, ...], str], ...] = (
    (SeedStability(draws=2), ("seed_1", "seed_2"), "jsd"),
    (AdversaryTraining(lams=(1.0,), frozen=False, draws=2), ("unfrozen_1", "seed_2"), "jsd"),
    (Gating(), ("gated", "again"), "tau"),
    (AdversarySearch(steps=5), (), "jsd"),
    (Permutation(draws=5), (), "median_tvd"),
)


@pytest.mark.parametrize(("experiment", "names", "column"), ASKED)
def test_experiments_on_a_rationale_model(
    experiment: Experiment, names: tuple[str, ...], column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is undefined is null, in all rows of a text, and the summary counts it."""
    monkeypatch.setattr(searching, "Search", partial(searching.Search, steps=5))
    model = selective()
    assert unsuited(experiment, TASK, model) is None
    others = {name: selective(seed + 1) for seed, name in enumerate(names)}
    if "gated" in others:
        others["gated"] = selective(5, RATIONALE + ",projection=gates")
    rows = experiment.rows(subject(model, **others))
    empty = rows.filter(pl.col("example").is_in(NOTHING))
    assert empty.height >= len(NOTHING)
    assert empty[column].null_count() == empty.height
    assert rows[column].null_count() < rows.height
    assert not any(rows[name].is_nan().any() for name, kind in rows.schema.items() if kind == pl.Float64)
    assert experiment.summary(cell(rows)).height > 0


def test_weights_that_may_be_nothing_are_not_imposed() -> None:
    assert "it selects nothing" in (unsuited(Diagnostic(), TASK, selective()) or "")


def test_a_null_key_is_in_no_weights_of_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a ladder's searched weights as of its own: JSD over words, each divided by what words have."""
    monkeypatch.setattr(searching, "Search", partial(searching.Search, steps=40, lr=0.05))
    model = build("ladder:size=5,scale=1,share=1", TASK)
    base = see_texts(model, EXAMPLES)
    assert base.keys.tolist() == [len(e) for e in EXAMPLES]
    (found,) = search_weights(subject(model), base, (0.05,), seed=0)
    pools = list(open_pooled(model, EXAMPLES))
    for pool in pools:
        assert (
            word_keys(model, pool, EXAMPLES).tolist()
            == batch_of(model, [EXAMPLES[i] for i in pool.members]).words.tolist()
        )
    assert float(found.jsd.nansum()) > 0.1
    for pool in pools[1:3]:
        candidates = searching.find(pool.opened, searching.Search())
        words = word_keys(model, pool, EXAMPLES)
        for row, place in enumerate(pool.members):
            own = [
                w / sum(pool.key_weights[row, words[row]].tolist()) for w in pool.key_weights[row, words[row]].tolist()
            ]
            assert base.key_weights[place, : len(own)].tolist() == pytest.approx(own, abs=1e-6)
            best = 0.0
            for theirs, changed in zip(candidates.weights[row, :, 0], candidates.tvd[row].tolist(), strict=True):
                kept = theirs[words[row]].tolist()
                if changed <= 0.05:
                    best = max(best, slow_jsd(own, [w / sum(kept) for w in kept]))
            assert float(found.jsd[place]) == pytest.approx(best, abs=1e-6)


def test_the_permuted_divergence_is_a_mean_over_draws() -> None:
    torch.manual_seed(0)
    real = torch.tensor([[True] * 4, [True, True, True, False], [False, True, False, False]])
    ours, theirs = (torch.rand(3, 4).double().masked_fill(~real, 0) for _ in range(2))
    ours, theirs = (w / w.sum(-1, keepdim=True) for w in (ours, theirs))
    ids = torch.tensor([4, 7, 9])
    found = permuted_jsd(ours[:, None], theirs[:, None], real, ids, 3, 6)
    orders = permuted(theirs, real, ids, 3, 6)
    for row in (0, 1):
        every = [slow_jsd(ours[row].tolist(), order.tolist()) for order in orders[row]]
        assert float(found[row]) == pytest.approx(sum(every) / 6)
    assert math.isnan(float(found[2]))


def test_weights_without_any_mass_stay_zero() -> None:
    weights = torch.tensor([[0.2, 0.3, 0.5], [0.0, 0.0, 1.0]])
    real = torch.tensor([[True, True, False]] * 2)
    assert weights_of_words(weights, real).flatten().tolist() == pytest.approx([0.4, 0.6, 0, 0, 0, 0])


def test_a_subject_of_one_text() -> None:
    """Batches don't matter, also where a text has no weights."""
    whole = subject(selective(), seed_1=selective(1), seed_2=selective(2))
    asked = SeedStability(draws=2)
    rows = asked.rows(whole)
    place = next(i for i, e in enumerate(EXAMPLES) if e.id in NOTHING)
    alone = asked.rows(
        replace(whole, examples=EXAMPLES[place : place + 1], predicted=whole.predicted[place : place + 1])
    )
    assert alone["jsd"].to_list() == rows.filter(example=EXAMPLES[place].id)["jsd"].to_list() == [None, None]
