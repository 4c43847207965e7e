"""One site: what a model predicts under each of many interventions that act from one place on, and not below it."""

from collections.abc import Sequence

import torch
from torch import Tensor

from exegete.models.capabilities import Resuming
from exegete.models.contract import Intervention, Predictor, Site
from exegete.tasks.example import Example
from exegete.training.evaluation import predict, prediction_passes


def predict_each(
    model: Predictor, examples: Sequence[Example], site: str, each: Sequence[Intervention]
) -> list[Tensor]:
    """Logits [example, class] under every intervention; what lies below the site is computed once, where it can be."""
    if not isinstance(model, Resuming):
        return [predict(model, examples, intervene) for intervene in each]
    order: list[int] = []
    found: list[list[Tensor]] = [[torch.empty(0, len(model.labels))] for _ in each]
    with torch.no_grad():
        for members in prediction_passes(model, examples):
            batch = model.collate([examples[i] for i in members])
            begun = model.begun(batch, site, _as_it_is, whole=True)
            every = torch.arange(len(members), device=batch.ids.device)
            for logits, intervene in zip(found, each, strict=True):
                logits.append(begun.logits(every, intervene).cpu())
            order += members
    back = torch.tensor(order, dtype=torch.int64).argsort()
    return [torch.cat(logits)[back] for logits in found]


def _as_it_is(site: Site) -> Tensor:
    return site.weights
