"""At one site: predictions under many interventions are those of whole passes, of every way to a model's attention."""

import pytest
import torch
from torch import Tensor

from exegete.experiments.common.one_site import predict_each
from exegete.interventions.permute import Permute
from exegete.interventions.restriction import AtHeads, AtSites
from exegete.interventions.silence import Silence
from exegete.interventions.sites import Head
from exegete.models.contract import Intervention, Predictor, Site
from exegete.tasks.example import Example
from exegete.training.evaluation import predict
from tests.models.architectures import classifier

WORDS = ("an", "unbelievably", "charming", "movie", "of", "plot", "bad")
TEXTS = [Example(i, (WORDS[: 3 + i],), 0) for i in range(5)]


@pytest.mark.parametrize("name", ["bert", "albert", "modernbert", "gpt2", "llama", "mpnet"])
def test_what_is_below_is_computed_once_and_nothing_changes(name: str) -> None:
    model: Predictor = classifier(name)
    own = predict(model, TEXTS)
    for site in model.sites:
        each: list[Intervention] = [
            AtHeads((Head(site, 0),), Silence()),
            AtHeads((Head(site, 1),), Permute()),
            AtSites((site,), Silence()),
        ]
        found = predict_each(model, TEXTS, site, each)
        for intervene, logits in zip(each, found, strict=True):
            assert (logits - predict(model, TEXTS, intervene)).abs().max() <= 1e-6 * max(1.0, float(own.abs().max()))
            assert (logits - own).abs().max() > 1e-5, site
    assert torch.equal(own, predict(model, TEXTS))


class Watching:
    """An intervention at one site that notes what it is shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def acts_at(self, site: str) -> bool:
        return site == "encoder.1"

    def __call__(self, site: Site) -> Tensor:
        self.shown.append(site.name)
        return site.weights


def test_what_names_its_site_is_shown_no_other() -> None:
    watching = Watching()
    predict(classifier("bert"), TEXTS[:1], watching)
    assert watching.shown == ["encoder.1"]
