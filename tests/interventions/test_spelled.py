"""Every intervention on a model whose words have several pieces: inside the mask, with an effect, alone as batched."""

import pytest
import torch
from torch import Tensor

from exegete.interventions.catalogue import INTERVENTIONS
from exegete.interventions.contract import bound
from exegete.interventions.impose import Impose
from exegete.interventions.table import WeightTable
from exegete.models.build import build
from exegete.models.contract import Intervention, Site
from exegete.models.ours.piece_transformer import PooledSpelled, Spelled
from exegete.tasks.example import Example
from exegete.training.fit import Fit
from exegete.training.settings import TrainingSettings
from tests.models.spelled_models import FIRST, MEAN, POOLED, sentences, spelled_model, spelled_task

EXAMPLES = (*sentences(5, seed=8), Example(90, (("a",),), 0), Example(91, (("charming", "", "xyzzy"),), 1))
REWRITES = (
    "uniform", "permute", "random", "remove", "remove:how=project", "remove:which=random", "keep:count=2",
    "adversarial:steps=5,count=2",
)  # fmt: skip


def watched(at: Intervention, seen: dict[str, tuple[Site, Tensor]]) -> Intervention:
    def watch(site: Site) -> Tensor:
        seen[site.name] = (site, at(site))
        return seen[site.name][1]

    return watch


@pytest.mark.parametrize("text", REWRITES)
@pytest.mark.parametrize("spec", [POOLED, FIRST, MEAN])
@torch.no_grad()
def test_under_it(spec: str, text: str) -> None:
    model = spelled_model(spec).double()
    at, batch = bound(INTERVENTIONS.make(text), model), model.collate(EXAMPLES)
    seen: dict[str, tuple[Site, Tensor]] = {}
    plain, under = model.trace(batch), model.trace(batch, intervene=watched(at, seen))
    assert not torch.allclose(plain.logits, under.logits, atol=1e-4)
    assert list(seen) == list(model.sites)
    for name, (site, weights) in seen.items():
        assert (weights[~site.mask.expand_as(weights)] == 0).all()
        total = weights.sum(-1)
        assert (total < 1 + 1e-9).all()
        folded = under.attention[name]
        assert (folded[~batch.present[:, None, None].expand_as(folded)] == 0).all()
        if site.query_owner is not None:  # a word's row is the mean of its pieces' rows, as they were rewritten
            for word in range(batch.tokens.shape[1]):
                own = site.query_owner[0] == word
                slow = weights[0, :, own].mean(1) if own.any() else torch.zeros_like(folded[0, :, word])
                torch.testing.assert_close(folded[0, :, word], slow, atol=1e-6, rtol=1e-5)


@torch.no_grad()
def test_imposed_weights_of_words() -> None:
    model = spelled_model(POOLED)
    texts = EXAMPLES[:6]
    batch = model.collate(texts)
    plain = model.trace(batch)
    table = WeightTable.of(model, texts)
    again = model.trace(batch, intervene=bound(Impose("attention", table), model))
    torch.testing.assert_close(again.logits, plain.logits)
    read = spelled_model(FIRST)
    stored = WeightTable.of(read, texts)
    for e in texts:
        one = read.collate([e])
        row = read.trace(one).attention["encoder.1"][0, :, 0].mean(0)[one.words[0]]
        torch.testing.assert_close(stored.rows[e.words].float(), row / row.sum())


def test_constant_weights_teach_no_query_and_no_key() -> None:
    """Not even through the shares of the pieces of a word."""
    task = spelled_task(30)
    for pool in ("attention", "first", "mean"):
        model = build(f"spelled:size=4,hidden=4,inner=8,pool={pool}", task)
        assert isinstance(model, Spelled)
        at = bound(INTERVENTIONS.make("uniform"), model)
        Fit(model, task, TrainingSettings(epochs=1, metric="accuracy", lr=0.01), 0, at).run()
        assert all(p.grad is None for p in model.attention_parameters())


def test_detached_weights_are_constants() -> None:
    model = spelled_model(POOLED)
    assert isinstance(model, PooledSpelled)
    batch = model.collate(EXAMPLES)
    logits = model.logits(batch, intervene=INTERVENTIONS.make("detach"))
    torch.testing.assert_close(logits, model.logits(batch))
    slopes = torch.autograd.grad(logits.sum(), [*model.attention_parameters()], allow_unused=True)
    assert all(slope is None for slope in slopes)
