"""Every intervention at every site of a Transformer: nothing outside the mask, the same alone, batched and padded."""

import pytest
import torch

from exegete.base.errors import ExegeteError
from exegete.interventions.catalogue import INTERVENTIONS
from exegete.interventions.contract import bound
from exegete.interventions.impose import Impose
from exegete.interventions.table import WeightTable
from exegete.models.build import build
from exegete.models.contract import Intervention
from exegete.models.ours.transformer import Transformer
from exegete.tasks.example import Example
from exegete.training.evaluation import predict
from exegete.training.fit import Fit
from exegete.training.settings import TrainingSettings
from tests.interventions.test_interventions import OTHERS, SETTINGS, is_distribution
from tests.small import TRANSFORMERS, batch_of, padded, small_model, small_task, texts

EXAMPLES = (*texts(5, longest=6), Example(90, (("a",),), 0))
SITES = ("encoder.0", "encoder.1", "attention")


def transformer(wrap: bool) -> Transformer:
    model = small_model(TRANSFORMERS[0], EXAMPLES, wrap).double()
    assert isinstance(model, Transformer)
    return model


def made(text: str, model: Transformer) -> Intervention:
    if text == "impose":
        return bound(Impose("attention", WeightTable.of(model, EXAMPLES)), model)
    return bound(INTERVENTIONS.make(text), model)


@pytest.mark.parametrize("text", [*SETTINGS, *OTHERS])
@pytest.mark.parametrize("wrap", [False, True])
@torch.no_grad()
def test_a_model_under_it(text: str, wrap: bool) -> None:
    model = transformer(wrap)
    at, batch = made(text, model), batch_of(model, EXAMPLES)
    whole, wide = model.trace(batch, intervene=at), model.trace(padded(batch, 2, 1), intervene=at)
    pairs = batch.present[:, None, :, None] & batch.present[:, None, None]
    for site in SITES:
        pool = site == "attention"
        is_distribution(whole.attention[site], batch.words[:, None, None] if pool else pairs)
        inside = wide.attention[site][..., 2:-1] if pool else wide.attention[site][..., 2:-1, 2:-1]
        torch.testing.assert_close(inside, whole.attention[site])
    torch.testing.assert_close(wide.logits, whole.logits)
    for i, e in enumerate(EXAMPLES):
        one = model.trace(batch_of(model, [e]), intervene=at)
        torch.testing.assert_close(one.logits[0], whole.logits[i])


@pytest.mark.parametrize("site", SITES)
@torch.no_grad()
def test_one_site_is_rewritten_and_the_others_follow(site: str) -> None:
    model = transformer(False)
    batch = batch_of(model, EXAMPLES)
    plain, under = model.trace(batch), model.trace(batch, intervene=INTERVENTIONS.make(f"uniform:site={site}"))
    for number, other in enumerate(SITES):
        same = torch.allclose(plain.attention[other], under.attention[other])
        assert same is (number < SITES.index(site))  # what comes before doesn't know of it


@torch.no_grad()
def test_weights_of_words_are_refused_where_wrappers_are_keys() -> None:
    model = transformer(True)
    everywhere = bound(Impose(table=WeightTable.of(model, EXAMPLES)), model)
    with pytest.raises(ExegeteError, match=r"at site 'encoder\.0'"):
        model.trace(batch_of(model, EXAMPLES), intervene=everywhere)


def test_training_with_uniform_weights_everywhere_teaches_no_query_and_no_key() -> None:
    task = small_task(30)
    model = build("transformer:size=4,hidden=4,inner=8", task)
    assert isinstance(model, Transformer)
    at = bound(INTERVENTIONS.make("uniform"), model)
    Fit(model, task, TrainingSettings(epochs=1, metric="accuracy", lr=0.01), 0, at).run()
    assert all(p.grad is None for p in model.attention_parameters())
    assert model.decoder.weight.grad is not None
    assert not predict(model, task.split("test"), at).isnan().any()
