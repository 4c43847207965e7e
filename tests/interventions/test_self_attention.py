"""Every intervention at every site of a Transformer: nothing outside the mask, the same alone, batched and padded."""

import pytest
import torch

from exegete.base.errors import ExegeteError
from exegete.interventions.catalogue import INTERVENTIONS
from exegete.interventions.contract import bound
from exegete.interventions.impose import Impose
from exegete.interventions.table import WeightTable
from exegete.models.build import build
from exegete.models.ours.transformer import Transformer
from exegete.tasks.example import Example
from exegete.training.evaluation import predict
from exegete.training.fit import Fit
from exegete.training.settings import TrainingSettings
from tests.small import TRANSFORMERS, batch_of, small_model, small_task, texts

EXAMPLES = (*texts(5, longest=6), Example(90, (("a",),), 0))
SITES = ("encoder.0", "encoder.1", "attention")


def transformer(wrap: bool) -> Transformer:
    model = small_model(TRANSFORMERS[0], EXAMPLES, wrap).double()
    assert isinstance(model, Transformer)
    return model


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
