"""Every intervention: a distribution over the mask, the same alone and in a batch, at inference and in training."""

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.interventions.catalogue import INTERVENTIONS
from exegete.interventions.contract import Rewrite, bound, renewed
from exegete.interventions.detach import Detach
from exegete.interventions.impose import Impose
from exegete.interventions.permute import Permute
from exegete.interventions.random import Random
from exegete.interventions.table import WeightTable
from exegete.interventions.uniform import Uniform
from exegete.models.contract import Intervention, Site
from exegete.models.ours.classifier import PoolingClassifier
from exegete.tasks.example import Example
from exegete.training.evaluation import predict
from exegete.training.fit import Fit
from exegete.training.settings import TrainingSettings
from tests.interventions.sites import PROJECTIONS, random_site, site_of
from tests.small import SPECS, batch_of, pooling, small_model, small_task, texts

SETTINGS = (
    "uniform", "random", "random:fresh=false", "permute", "remove", "remove:which=bottom,count=2",
    "remove:which=random,share=0.5", "remove:count=2,how=project", "remove:share=1", "keep", "keep:count=3",
    "keep:share=0.5", "detach",
)  # fmt: skip
LIGHT = {"adversarial": "adversarial:steps=3"}  # a search is long, and its quality is tested elsewhere
OTHERS = tuple(
    LIGHT.get(name, name) for name in INTERVENTIONS if name not in {text.partition(":")[0] for text in SETTINGS}
)


def made(text: str, model: PoolingClassifier, examples: Sequence[Example]) -> Intervention:
    """What a name asks for, for a model; imposed weights are those of another model."""
    if text == "impose":
        return bound(Impose(table=WeightTable.of(small_model(SPECS[0], examples), examples)), model)
    intervention: Intervention = bound(INTERVENTIONS.make(text), model)
    return intervention


def is_distribution(weights: Tensor, mask: Tensor) -> None:
    """Nothing outside the mask, nothing negative, rows that sum to 1 or hold nothing at all."""
    total = weights.sum(-1)
    assert not weights.isnan().any()
    assert bool((weights >= 0).all())
    assert bool((weights.masked_fill(mask.expand_as(weights), 0) == 0).all())
    assert bool((((total - 1).abs() < 1e-5) | (weights == 0).all(-1)).all())


@pytest.mark.parametrize("text", SETTINGS)
@given(seed=st.integers(0, 10_000), sparse=st.booleans())
@settings(max_examples=5, deadline=None)
def test_many_heads_and_queries(text: str, seed: int, sparse: bool) -> None:
    """Also without a real key, with padding between keys, and with a query that is padding."""
    site = random_site(seed, PROJECTIONS[sparse])
    weights = INTERVENTIONS.make(text)(site)
    assert weights.shape == site.weights.shape
    is_distribution(weights, site.mask)
    assert bool((weights[2] == 0).all())
    assert bool((weights[1, :, -1] == 0).all())
    kept = "share=1" not in text and "remove" not in text
    assert not kept or torch.allclose(weights[0].sum(-1), torch.ones(2, 3))


@pytest.mark.parametrize("text", [*SETTINGS, *OTHERS])
def test_training_with_it(text: str) -> None:
    task = small_task(40)
    model = pooling("average:size=4,hidden=4", task)
    at = made(text, model, task.split("train"))
    before = [p.clone() for p in model.parameters()]
    fit = Fit(model, task, TrainingSettings(epochs=1, metric="accuracy", lr=0.01), 0, at)
    fit.run()
    assert any(not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))
    assert not predict(model, task.split("test"), at).isnan().any()
    fixed = text.partition(":")[0] in ("uniform", "random", "impose", "detach")
    moved = any(not torch.equal(a, b) for a, b in zip(before[1:], list(model.parameters())[1:], strict=True))
    scorer = [p.grad for p in model.scorer.parameters()]
    assert moved
    assert not fixed or all(grad is None for grad in scorer)  # weights that come from elsewhere teach it nothing


@pytest.mark.parametrize("kind", [Random, Permute])
def test_fresh_is_renewed_and_fixed_is_not(kind: type[Random] | type[Permute]) -> None:
    site = random_site(0, PROJECTIONS[0], keys=9)
    fresh, fixed = kind(seed=3), kind(seed=3, fresh=False)
    first, second = (renewed(fresh, epoch) for epoch in (1, 2))
    assert first is not None
    assert second is not None
    assert not torch.equal(first(site), second(site))
    assert torch.equal(first(site), fresh.renewed(1)(site))
    assert renewed(fixed, 1) is fixed
    assert torch.equal(fixed(site), fresh(site))
    assert not torch.equal(kind(seed=4)(site), fresh(site))
    assert renewed(Uniform(), 2) == Uniform()


def test_random_weights_are_uniform_numbers_normalised() -> None:
    """Mean 1/n; of two words, the first has more than 2/3 of the weight once in four: P(u > 2v) = 1/4."""
    words = torch.ones(4000, 2).bool()
    site = site_of(torch.zeros(4000, 1, 1, 2), words, range(4000))
    first = Random()(site)[:, 0, 0, 0]
    assert float(first.mean()) == pytest.approx(0.5, abs=0.02)
    assert float((first > 2 / 3).double().mean()) == pytest.approx(0.25, abs=0.03)


def test_draws_differ_by_text_head_query_step_and_site() -> None:
    site = random_site(1, PROJECTIONS[0], keys=6)
    same = site._replace(scores=site.scores[[0, 0]], weights=site.weights[[0, 0]], mask=site.mask[[0, 0]])
    batch = site.batch._replace(ids=torch.tensor([4, 5]), words=site.batch.words[[0, 0]])
    both = same._replace(batch=batch)
    rows = Random()(both)
    assert rows.view(-1, 6).unique(dim=0).shape[0] == 2 * 2 * 3
    assert not torch.equal(Random()(both._replace(name="other")), rows)
    later = both._replace(first_query=1)
    torch.testing.assert_close(Random()(later)[:, :, :2], rows[:, :, 1:])  # query 1 is query 1, run alone or not


def test_only_its_site() -> None:
    site = random_site(2, PROJECTIONS[0])
    assert torch.equal(Uniform(site="elsewhere")(site), site.weights)
    assert not torch.equal(Uniform(site="attention")(site), site.weights)


def test_a_site_that_does_not_exist_is_refused() -> None:
    model = small_model(SPECS[0], texts(3))
    with pytest.raises(UsageError, match="unknown site 'word'"):
        bound(Uniform(site="word"), model)
    assert bound(Uniform(site="attention"), model) == Uniform(site="attention")


def test_detached_weights_have_no_history() -> None:
    site = random_site(0, PROJECTIONS[0])
    grown = site._replace(weights=site.weights.clone().requires_grad_())
    assert grown.weights.requires_grad
    assert not Detach()(grown).requires_grad
    assert Detach(site="elsewhere")(grown).requires_grad


def test_an_intervention_of_ones_own_is_any_function_of_a_site() -> None:
    model = small_model(SPECS[0], texts(3))
    batch = batch_of(model, texts(3))

    def mine(site: Site) -> Tensor:
        return site.weights.flip(-1).masked_fill(~site.mask, 0)

    assert bound(mine, model) is mine
    assert not torch.equal(model.trace(batch, intervene=mine).logits, model.trace(batch).logits)
    assert issubclass(Uniform, Rewrite)
