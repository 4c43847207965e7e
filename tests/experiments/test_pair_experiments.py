"""Every experiment on pairs of texts: numbers against slow ones, and all the way to summaries, tables and figures."""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import polars as pl
import pytest
import torch

from exegete.experiments.adversary_training.experiment import AdversaryTraining
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.common.contract import Experiment, Subject, recipes, unsuited
from exegete.experiments.common.pooling import open_pooled
from exegete.experiments.common.removal import other_key
from exegete.experiments.decision_flips.experiment import DecisionFlips
from exegete.experiments.diagnostic.experiment import Diagnostic
from exegete.experiments.dispersion.state_importance import state_importance
from exegete.experiments.importance_sets.experiment import ImportanceSets
from exegete.experiments.necessity.experiment import Necessity
from exegete.experiments.permutation.experiment import Permutation
from exegete.experiments.sanity.experiment import score_words
from exegete.experiments.seed_stability.experiment import SeedStability
from exegete.experiments.single_weight.experiment import SingleWeight
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import refusal
from exegete.interventions.catalogue import INTERVENTIONS
from exegete.interventions.contract import bound
from exegete.interventions.impose import Impose
from exegete.interventions.permute import permuted
from exegete.interventions.table import WeightTable
from exegete.models.contract import Readout
from exegete.models.ours.pair import Pair
from exegete.tasks.example import Example, Task
from exegete.training.adversary import Adversary, text_ids
from exegete.training.deception import KeptOff
from exegete.training.evaluation import predict
from exegete.training.metrics import all_metrics
from exegete.training.recipe import Companion
from tests import subjects
from tests.experiments.beside_models import slow_jsd, slow_tvd
from tests.margins import clear, lead
from tests.models.slow_pair import LABELS, slow
from tests.small import PAIRS, batch_of, pairs, small_model

EXAMPLES = pairs(9, candidates=True)


def a_pair(spec: str = PAIRS[0], examples: tuple[Example, ...] = EXAMPLES, shake: int = 0) -> Pair:
    model = small_model(spec, examples, labels=LABELS)
    assert isinstance(model, Pair)
    generator = torch.Generator().manual_seed(shake)
    with torch.no_grad():
        for parameter in model.parameters() if shake else ():
            parameter.add_(torch.randn(parameter.shape, generator=generator) / 2)
    return model


def marked(examples: Sequence[Example]) -> tuple[Example, ...]:
    """The first word of every text is its rationale."""
    return tuple(replace(e, rationale=(0,)) for e in examples)


def subject_of(model: Pair, examples: tuple[Example, ...] = EXAMPLES, name: str = "small") -> Subject:
    task = Task(name, LABELS, dict.fromkeys(("train", "dev", "test"), examples), "by hand", kind="pair")
    return subjects.subject_of(model, task)


def probabilities(logits: Sequence[float]) -> list[float]:
    powers = [math.exp(z - max(logits)) for z in logits]
    return [power / sum(powers) for power in powers]


@pytest.mark.parametrize("spec", PAIRS)
def test_permutation_is_the_median_tvd_over_shuffled_weights(spec: str) -> None:
    model = a_pair(spec)
    rows = Permutation(draws=4).rows(subject_of(model))
    with clear() as sure:
        for pool in open_pooled(model, EXAMPLES):
            draws = permuted(pool.key_weights, pool.mask, pool.ids, 0, 4)
            for place, row, drawn in zip(pool.members, pool.key_weights, draws, strict=True):
                e, n = EXAMPLES[place], len(EXAMPLES[place])
                own, found = rows.row(place, named=True), slow(model, e, row[:n].tolist())[0]
                changes = [slow(model, e, draw[:n].tolist())[0] for draw in drawn]
                if n == 1:
                    assert own["median_tvd"] is None
                    continue
                tvds = [slow_tvd(probabilities(found), probabilities(other)) for other in changes]
                assert own["median_tvd"] == pytest.approx(median(tvds), abs=1e-6)
                best = max(range(3), key=found.__getitem__)
                margins = [z[best] - max(z[c] for c in range(3) if c != best) for z in (found, *changes)]
                assert own["median_logit"] == pytest.approx(median(abs(m - margins[0]) for m in margins[1:]), abs=1e-5)
                if sure(*map(abs, margins)):
                    assert own["flips"] == sum(m < 0 for m in margins[1:]) / 4
    assert rows["median_tvd"].max() > 0.003  # type: ignore[operator]


def removed(weights: list[float], gone: set[int]) -> list[float]:
    """Weights without some keys, the rest scaled to sum to 1; nothing where nothing is left."""
    kept = [0.0 if i in gone else w for i, w in enumerate(weights)]
    return [w / sum(kept) if sum(kept) else 0.0 for w in kept]


@pytest.mark.parametrize("spec", PAIRS)
def test_single_weight_and_flips_are_those_of_the_slow_model(spec: str) -> None:
    model = a_pair(spec)
    single, flips = (experiment.rows(subject_of(model)) for experiment in (SingleWeight(), DecisionFlips()))
    with clear() as sure:
        for pool in open_pooled(model, EXAMPLES):
            top = pool.key_weights.argmax(-1)
            other = other_key(pool, top, "other", 0)
            for place, row, i, r in zip(pool.members, pool.key_weights, top.tolist(), other.tolist(), strict=True):
                e, n = EXAMPLES[place], len(EXAMPLES[place])
                weights = row[:n].tolist()
                if n == 1 or not sure(lead(weights)):  # ties of sparse weights are broken by noise
                    continue
                p, q, s = (probabilities(slow(model, e, removed(weights, gone))[0]) for gone in (set[int](), {i}, {r}))
                found = single.row(place, named=True)
                assert found["value"] == pytest.approx(slow_jsd(p, q) - slow_jsd(p, s), abs=1e-6)
                flipped = flips.row(place, named=True)
                if sure(lead(p), lead(q), lead(s)):
                    assert flipped["top_flips"] == (p.index(max(p)) != q.index(max(q)))
                    assert flipped["random_flips"] == (p.index(max(p)) != s.index(max(s)))


def test_importance_sets_find_the_first_flip_of_the_slow_model() -> None:
    model = a_pair()
    rows = ImportanceSets(schemes=("attention", "gradient")).rows(subject_of(model))
    flipped = 0
    with clear() as sure:
        for place, e in enumerate(EXAMPLES):
            logits, weights = slow(model, e)
            best = logits.index(max(logits))
            slopes = []
            for t in range(len(e)):
                ends = [
                    probabilities(slow(model, e, [w + step * (i == t) for i, w in enumerate(weights)])[0])[best]
                    for step in (1e-5, -1e-5)
                ]
                slopes.append(ends[0] - ends[1])
            for scheme, by in (("attention", weights), ("gradient", slopes)):
                order = sorted(range(len(e)), key=lambda t: -by[t])
                value, narrowest = 1.0, lead(logits)
                for count in range(1, len(e) + 1):
                    after = slow(model, e, removed(weights, set(order[:count])))[0]
                    narrowest = min(narrowest, lead(after))
                    if after.index(max(after)) != best:
                        value, flipped = count / len(e), flipped + 1
                        break
                got = rows.filter(pl.col("example") == e.id, pl.col("scheme") == scheme)["value"].item()
                if sure(narrowest):  # where words repeat, either may go first: they are alike
                    assert got == (pytest.approx(value) if len(e) > 1 else None), (place, scheme)
    assert flipped > 3


def test_necessity_predicts_under_uniform_weights() -> None:
    model = a_pair()
    rows = Necessity(trained=(), inferred=("uniform",)).rows(subject_of(model))
    with clear() as sure:
        for e, said in zip(EXAMPLES, rows["altered_predicted"], strict=True):
            logits = slow(model, e, [1 / len(e)] * len(e))[0]
            assert not sure(lead(logits)) or said == LABELS[logits.index(max(logits))]
    assert set(Necessity().companions("pair", 0)) == {"uniform", "random", "permute"}


def test_seeds_are_compared_by_the_jsd_of_their_weights() -> None:
    model, other = a_pair(), a_pair(shake=3)
    subject = replace(subject_of(model), companions={"seed_1": Companion(other), "seed_2": Companion(model)})
    rows = SeedStability(seeds=(1, 2)).rows(subject)
    for e in EXAMPLES:
        own = rows.filter(pl.col("example") == e.id).sort("other")["jsd"].to_list()
        expected = slow_jsd(slow(model, e)[1], slow(other, e)[1])
        assert own == ([pytest.approx(expected, abs=1e-6), pytest.approx(0, abs=1e-6)] if len(e) > 1 else [None, None])


@pytest.mark.parametrize("spec", PAIRS[:2])
def test_states_that_are_removed_change_what_the_slow_model_says(spec: str) -> None:
    model = a_pair(spec)
    predicted = predict(model, EXAMPLES).argmax(-1)
    found = state_importance(model, EXAMPLES, predicted)
    for row, e in enumerate(EXAMPLES):
        logits, weights = slow(model, e)
        p = probabilities(logits)
        for t in range(len(e)):
            q = probabilities(slow(model, e, removed(weights, {t}))[0])
            assert float(found.renormalised[row, t]) == pytest.approx(slow_tvd(p, q), abs=1e-5)
        assert bool(found.gradient[row, : len(e)].isfinite().all())


def test_what_a_base_did_is_kept_by_both_texts_and_the_candidates() -> None:
    """Two questions about one passage, and one pair with and without candidates, are three different examples."""
    passage = ("a", "b", "c")
    examples = (
        Example(0, (passage, ("d",)), 0),
        Example(1, (passage, ("e",)), 1),
        Example(2, (passage, ("e",)), 1, candidates=(0, 1)),
        Example(3, (("a", "b"), ("c", "d")), 0),
    )
    base = a_pair(examples=examples)
    assert len(set(text_ids(batch_of(base, examples)))) == 4
    subject = subject_of(base, examples)
    loss = Adversary(0.0).bound(base, subject.task)
    batch = batch_of(base, examples)
    assert loss(base.trace(batch), batch).item() == pytest.approx(0, abs=1e-6)  # the base is its own best copy
    alone = batch_of(base, examples[1:2])
    assert loss(base.trace(alone), alone).item() == pytest.approx(0, abs=1e-6)


def test_deceptive_training_counts_the_weight_of_banned_words_of_the_passage_alone() -> None:
    examples = (Example(0, (("a", "b", "c"), ("a",)), 0), Example(1, (("b", "c"), ("a", "b")), 1))
    model = a_pair(examples=examples)
    batch = batch_of(model, examples)
    trace = model.trace(batch)
    loss = KeptOff(2.0, ("a",), Readout(("attention",)))(trace, batch)
    alpha = slow(model, examples[0])[1]
    gold = [probabilities(slow(model, e)[0])[e.label] for e in examples]
    expected = -sum(map(math.log, gold)) / 2 - 2.0 * math.log(alpha[1] + alpha[2])
    assert loss.item() == pytest.approx(expected, abs=1e-4)


def test_metrics_are_finite_where_classes_are_impossible() -> None:
    model = a_pair()
    found = all_metrics(predict(model, EXAMPLES), torch.tensor([e.label for e in EXAMPLES]))
    assert all(value is None or math.isfinite(value) for name, value in found.items() if name != "loss")
    allowed = tuple(replace(e, label=e.candidates[0]) if e.candidates else e for e in EXAMPLES)
    loss = all_metrics(predict(model, allowed), torch.tensor([e.label for e in allowed]))["loss"]
    assert loss is not None
    assert loss < 50


SETTINGS: dict[str, dict[str, Any]] = {
    "permutation": {"draws": 3},
    "adversary_search": {"steps": 3, "references": True},
    "seed_stability": {"seeds": (1, 2)},
    "faithfulness": {"methods": ("attention", "gradient", "random"), "removals": ("delete", "zero"), "robustness": 2},
    "sanity": {"methods": ("attention", "random"), "draws": 1, "texts": 4},
    "adversary_training": {"lams": (0.01,), "frozen_lams": (0.1,), "search": False},
    "reliance": {"lams": (0.01,)},
    "deception": {"methods": ("attention", "gradient")},
    "known_answer": {"methods": ("attention", "gradient")},
    "plausibility": {"methods": ("attention", "gradient")},
    "supporting_facts": {"methods": ("attention", "gradient")},
    "agreement": {"against": ("attention", "gradient"), "topk": (), "ks": ()},
}
OTHERS = {  # and what they say
    "layers": "at most one attention", "alignment": "translations", "heads": "no layers", "knockout": "no layers",
    "readings": "layers of self-attention",
}  # fmt: skip
ASKED = tuple(name for name in EXPERIMENTS if name not in OTHERS)


def companions_of(experiment: Experiment, subject: Subject) -> dict[str, Companion]:
    """Untrained stand-ins of what would be trained beside the model, with what their attention is ever after."""
    found = {}
    for number, (name, recipe) in enumerate(recipes(experiment, PAIRS[0], 0).items()):
        model = a_pair(recipe.model or PAIRS[0], subject.examples, shake=number + 1)
        at = bound(INTERVENTIONS.make(recipe.attention), model) if recipe.attention else None
        if recipe.imposed:
            assert isinstance(subject.model, Pair)
            at = bound(Impose(table=WeightTable.of(subject.model, subject.examples)), model)
        found[name] = Companion(model, at)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ASKED)
def test_every_experiment_goes_all_the_way_on_pairs(name: str) -> None:
    experiment: Experiment = EXPERIMENTS[name].load()(**SETTINGS.get(name, {}))
    examples = marked(pairs(6))
    subject = subject_of(a_pair(examples=examples), examples, "small:planted=token")
    assert unsuited(experiment, subject.task, subject.model) is None
    built = {method: IMPORTANCES.make(method) for method in experiment.importances}
    allowed = {method: one for method, one in built.items() if refusal(one, subject.model) is None}
    scores = {method: found.values for method, found in score_words(subject, allowed).items()}
    frames = []
    for split in experiment.splits or ("test",):
        asked = replace(
            subject, scores=scores, signed=dict.fromkeys(scores, True), split=split,
            refused={method: "no" for method in built if method not in allowed},
            companions=companions_of(experiment, subject),
        )  # fmt: skip
        said = (pl.lit(text).alias(column) for column, text in (("task", "t"), ("model", PAIRS[0]), ("split", split)))
        frames.append(experiment.rows(asked).select(*said, pl.lit(0).alias("seed"), pl.exclude("split")))
    rows = pl.concat(frames)
    assert rows.height
    assert not any(rows[column].is_nan().any() for column, kind in rows.schema.items() if kind == pl.Float64)
    summary = experiment.summary(rows)
    assert summary.height
    experiment.tables(rows)
    assert experiment.figures(rows, summary)


def test_what_is_not_for_pairs_says_so() -> None:
    subject = subject_of(a_pair())
    for name, said in OTHERS.items():
        assert said in str(unsuited(EXPERIMENTS[name].load()(), subject.task, subject.model))
    for name in ("known_answer", "deception"):
        assert "planted words" in str(unsuited(EXPERIMENTS[name].load()(), subject.task, subject.model))
    assert "planted=token" in str(unsuited(EXPERIMENTS["known_answer"].load()(), subject.task, subject.model))
    explained = pairs(3, explained=1)
    asked = subject_of(a_pair(examples=explained), explained)
    assert "every word with its own state" in str(unsuited(EXPERIMENTS["dispersion"].load()(), asked.task, asked.model))


def test_companions_fit_pairs() -> None:
    assert Diagnostic()._words("pair:hidden=64,size=50,reads=context") == "pair:size=50,encoder=average,reads=context"
    both = AdversaryTraining(lams=(0.1,), frozen_lams=(0.2,))
    assert set(both.companions("pair", 0)) == {"unfrozen_0.1", "frozen_0.2"}
    assert set(both.companions("pair:attention=dot", 0)) == {"unfrozen_0.1"}  # nothing of it could move
    search = EXPERIMENTS["adversary_search"].load()(references=True)
    assert search.companions("pair", 0) == {}
    assert set(search.companions("bilstm", 0)) == {"faithful", "unfaithful"}
