"""Experiments on models whose words have several pieces, recomputed text by text where that is cheap."""

import polars as pl
import pytest
import torch
from torch import Tensor

from exegete.experiments.adversary_search.experiment import AdversarySearch
from exegete.experiments.agreement.experiment import Agreement
from exegete.experiments.common.contract import Subject, unsuited
from exegete.experiments.common.pooling import Pooled, open_pooled
from exegete.experiments.decision_flips.experiment import DecisionFlips
from exegete.experiments.faithfulness.experiment import Faithfulness
from exegete.experiments.gating.experiment import Gating
from exegete.experiments.importance_sets.experiment import ImportanceSets
from exegete.experiments.layers.experiment import Layers
from exegete.experiments.permutation.experiment import Permutation
from exegete.experiments.single_weight.experiment import SingleWeight
from exegete.importance.catalogue import IMPORTANCES
from exegete.interventions.permute import permuted
from exegete.models.contract import Predictor, Site
from exegete.tasks.example import Example, Task
from tests.experiments.beside_models import slow_jsd, slow_tvd
from tests.models.spelled_models import FIRST, MEAN, POOLED, sentences, spelled_model
from tests.subjects import subject_of

EXAMPLES = tuple(e for e in sentences(14, seed=5) if len(e) > 1)
TASK = Task("sentences", ("no", "yes"), {"train": EXAMPLES, "dev": EXAMPLES, "test": EXAMPLES}, "made up")
NAMES = ("attention", "gradient", "leave_one_out", "random")


def asked(spec: str) -> Subject:
    model = spelled_model(spec)
    batch = model.collate(EXAMPLES)
    found = {name: IMPORTANCES.make(name)(model, batch) for name in NAMES}
    scores = {name: _words(one.values, batch.words) for name, one in found.items()}
    return subject_of(model, TASK, scores=scores, signed={name: one.signed for name, one in found.items()})


def _words(values: Tensor, words: Tensor) -> Tensor:
    """[example, word] from [batch, token]."""
    rows = [row[real].double().detach() for row, real in zip(values, words, strict=True)]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=torch.nan)


def rewritten(model: Predictor, example: Example, change: object) -> list[float]:
    """Probabilities of one text alone, with its last attention changed: weights [head, query, key] of what is read."""

    def at(site: Site) -> Tensor:
        if site.name != model.sites[-1]:
            return site.weights
        weights = site.weights.clone()
        read = slice(0, 1) if "first" in model.spec else slice(None)
        weights[0, :, read] = change(weights[0, :, read].double()).float()  # type: ignore[operator]
        return weights

    with torch.no_grad():
        found: list[float] = model.logits(model.collate([example]), intervene=at)[0].double().softmax(-1).tolist()
    return found


def keys_of(model: Predictor, example: Example) -> tuple[Tensor, Tensor]:
    """Mean weights of what is read over heads and queries, [key], and which keys are words."""
    batch, seen = model.collate([example]), []

    def watch(site: Site) -> Tensor:
        seen.append(site.weights)
        return site.weights

    with torch.no_grad():
        model.logits(batch, intervene=watch)
    rows = seen[-1][0, :, :1] if "first" in model.spec else seen[-1][0]
    return rows.double().mean((0, 1)), batch.words[0]


@pytest.mark.slow
@pytest.mark.parametrize("spec", [POOLED, FIRST, MEAN])
def test_rows_text_by_text(spec: str) -> None:
    subject = asked(spec)
    model = subject.model
    moved = {row["example"]: row for row in Permutation(draws=5, seed=3).rows(subject).to_dicts()}
    single = {row["example"]: row for row in SingleWeight(seed=2).rows(subject).to_dicts()}
    sets = {row["example"]: row for row in ImportanceSets(schemes=("attention",)).rows(subject).to_dicts()}
    flips = {row["example"]: row for row in DecisionFlips(seed=2).rows(subject).to_dicts()}
    for e in EXAMPLES:
        own = rewritten(model, e, lambda w: w)
        weights, words = keys_of(model, e)
        stay = torch.arange(len(words))  # wrappers keep what they have
        places = permuted(stay[None], words[None], torch.tensor([e.id]), 3, 5)[0].where(words, stay)
        tvds = sorted(slow_tvd(own, rewritten(model, e, lambda w, o=order: w[..., o])) for order in places)
        assert moved[e.id]["median_tvd"] == pytest.approx(tvds[2], abs=1e-5)
        assert moved[e.id]["max_attention"] == pytest.approx(float(weights.max()), abs=1e-6)
        order = sorted(words.nonzero()[:, 0].tolist(), key=lambda k: -float(weights[k]))

        def without(gone: list[int], e: Example = e) -> list[float]:
            def change(w: Tensor) -> Tensor:
                kept = w.clone()
                kept[..., gone] = 0
                return kept / kept.sum(-1, keepdim=True).clamp(min=1e-30)

            return rewritten(model, e, change)

        assert single[e.id]["keys"] == len(e)
        assert single[e.id]["js_top"] == pytest.approx(slow_jsd(own, without(order[:1])), abs=1e-5)
        found = [without(order[:j]) for j in range(len(e) + 1)]
        if min(abs(p[1] - p[0]) for p in found) > 1e-4:
            first = next((j for j, p in enumerate(found) if (p[1] > p[0]) != (own[1] > own[0])), len(e))
            assert sets[e.id]["value"] == pytest.approx(first / len(e))
            assert flips[e.id]["top_flips"] == ((found[1][1] > found[1][0]) != (own[1] > own[0]))


@pytest.mark.slow
@pytest.mark.parametrize("spec", [POOLED, FIRST, MEAN])
def test_others_run_through(spec: str) -> None:
    subject = asked(spec)
    search = AdversarySearch(steps=10, epsilons=(0.05,))
    found = search.rows(subject)
    assert found["jsd"].is_between(0, 0.6932).all()
    assert (found["tvd"] <= 0.05).all()
    assert Layers(draws=2).rows(subject)["value"].is_between(0, 1).all()
    for experiment in (search, Permutation(), ImportanceSets(), SingleWeight(), DecisionFlips(), Layers()):
        assert unsuited(experiment, TASK, subject.model) is None
    rows = Agreement(against=NAMES[:3], draws=2).rows(subject)
    assert {*rows["example"]} == {e.id for e in EXAMPLES}


@pytest.mark.parametrize("spec", [POOLED, FIRST, MEAN])
def test_faithfulness_erases_words(spec: str) -> None:
    """Comprehensiveness of the best-scored half, for each removal, by erasing one text at a time."""
    subject = asked(spec)
    rows = Faithfulness(methods=NAMES, fractions=(0.5,)).rows(subject)
    model = subject.model
    differ = 0
    for i, e in enumerate(EXAMPLES):
        scores = subject.scores["attention"][i, : len(e)]
        count = -(-len(e) // 2)
        gone = sorted(scores.topk(count).indices.tolist())
        batch, label = model.collate([e]), int(subject.predicted[i])
        marked = torch.zeros_like(batch.words)
        marked[0, batch.words[0].nonzero()[:, 0][gone]] = True
        rest = Example(0, (tuple(w for k, w in enumerate(e.words) if k not in gone),), 0)
        with torch.no_grad():
            p = model.logits(batch).softmax(-1)[0, label]
            after = {by: model.logits(batch, embedded=model.replaced(batch, marked, by)) for by in ("zero", "unknown")}
            after["delete"] = model.logits(model.collate([rest]))
        for by, logits in after.items():
            found = rows.filter(
                pl.col("example") == e.id, pl.col("method") == "attention", pl.col("removal") == by,
                pl.col("measure") == "comprehensiveness", pl.col("fraction") == "0.5",
            )["value"].to_list()  # fmt: skip
            assert found == [pytest.approx(float(p - logits.softmax(-1)[0, label]), abs=1e-5)]
        differ += not torch.allclose(after["zero"], after["delete"], atol=1e-3)
    assert differ > len(EXAMPLES) / 2


def test_gates_are_for_an_attention_that_pools() -> None:
    """A single layer that is read is one attention, too, and its projection is always softmax."""
    for spec in (FIRST, MEAN):
        reason = unsuited(Gating(), TASK, spelled_model(f"{spec},layers=1"))
        assert reason is not None
        assert "an attention that pools" in reason


def test_texts_that_are_opened_together_have_as_many_pieces() -> None:
    model = spelled_model(MEAN)
    for pool in open_pooled(model, EXAMPLES):
        assert (pool.weights.sum(-1) > 0.99).all()  # no row of padding among the heads
    assert sorted(i for pool in open_pooled(model, EXAMPLES) for i in pool.members) == [*range(len(EXAMPLES))]


@pytest.mark.parametrize("spec", [FIRST, f"{MEAN.replace(',wrap=false', '')}"])
def test_permuting_leaves_the_weights_of_wrappers(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    subject, seen = asked(spec), []

    def decode(pool: Pooled, weights: Tensor) -> Tensor:
        seen.append((pool, weights))
        return pool.opened.logits(weights).detach()

    monkeypatch.setattr(Pooled, "decode", decode)
    rows = Permutation(draws=3).rows(subject)
    assert rows["median_tvd"].max() > 1e-3  # type: ignore[operator]
    for pool, weights in seen:
        words = pool.opened.movable
        wrappers = (pool.mask & ~words)[:, None, None].expand_as(weights)
        own = pool.weights[:, None].expand_as(weights)
        assert wrappers.any()
        assert torch.equal(weights[wrappers], own[wrappers])
        assert not torch.equal(weights, own)
        assert torch.allclose(weights.sort(-1).values, own.sort(-1).values)
