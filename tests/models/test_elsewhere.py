"""Tensors are made where their inputs are: models, interventions, importances and measures on a second device.

`tests.elsewhere` is that device: whatever mixes it with the CPU raises. Numbers must be those of the CPU.
"""

import copy
from collections.abc import Iterator, Sequence

import pytest
import torch
from polars.testing import assert_frame_equal
from torch import Tensor, nn

from exegete.base.noise import normal, uniform
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import Importance, refusal
from exegete.interventions.catalogue import INTERVENTIONS
from exegete.interventions.contract import bound
from exegete.models.build import build
from exegete.models.capabilities import Writing
from exegete.models.contract import Intervention, Predictor, ReplacedBy
from exegete.models.openings import opened, unopened
from exegete.runs.shards import score_frames
from exegete.tasks.example import Example
from exegete.training.fit import Fit
from exegete.training.settings import TrainingSettings
from tests.elsewhere import DEVICE, somewhere_else
from tests.models.contracted import KINDS, case
from tests.small import small_task

pytestmark = pytest.mark.slow

ASKED = (
    "bilstm", "average", "cnn", "hierarchical", "ladder", "transformer, wrapped", "pair", "spelled, first",
    "spelled, mean", "own", "own that pools", "next word", "next word of a transformer",
)  # fmt: skip
SMALLER = {
    "adversarial": "adversarial:steps=3,count=2", "lime": "lime:samples=20", "kernel_shap": "kernel_shap:samples=20",
    "smoothgrad": "smoothgrad:samples=2",
}  # fmt: skip
COMPUTED = [SMALLER.get(name, name) for name in IMPORTANCES if name not in ("given", "scores")]
REWRITES = [SMALLER.get(name, name) for name in INTERVENTIONS if name != "impose"]


def moved(model: Predictor) -> Predictor:
    assert isinstance(model, nn.Module)
    other = copy.deepcopy(model).to(DEVICE)
    assert isinstance(other, Predictor)
    return other


def check(here: Tensor, there: Tensor, close: float = 1e-4) -> None:
    assert there.device == DEVICE
    torch.testing.assert_close(there.cpu(), here, atol=close, rtol=close, equal_nan=True)


def told(model: Predictor, examples: Sequence[Example]) -> Iterator[Tensor]:
    """All that a model tells of texts."""
    batch = model.collate(examples)
    trace = model.trace(batch)
    yield trace.logits
    for by_site in trace[1:]:
        yield from by_site.values()
    replacements: tuple[ReplacedBy, ...] = ("zero", "unknown", "padding", "mean")
    yield from (model.replaced(batch, batch.words, by) for by in replacements)
    if unopened(model) is None and not isinstance(model, Writing):
        yield opened(model, batch).own


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_models(kind: str) -> None:
    model, examples = case(kind)
    expected = list(told(model, examples))
    with somewhere_else():
        other = moved(model)
        assert other.device == DEVICE
        for here, there in zip(expected, told(other, examples), strict=True):
            check(here, there)


@pytest.mark.parametrize("kind", ASKED)
def test_interventions(kind: str) -> None:
    model, examples = case(kind)

    def under(of: Predictor, name: str) -> Tensor:
        at: Intervention = bound(INTERVENTIONS.make(name), of)
        return of.logits(of.collate(examples), intervene=at).detach()

    searched = unopened(model) is None and not kind.startswith("next")
    names = [name for name in REWRITES if searched or not name.startswith("adversarial")]
    expected = {name: under(model, name) for name in names}
    with somewhere_else():
        other = moved(model)
        for name, here in expected.items():
            check(here, under(other, name))


@pytest.mark.parametrize("kind", ASKED)
def test_importances(kind: str) -> None:
    model, examples = case(kind)
    batch = model.collate(examples[:3])
    every: list[Importance] = [IMPORTANCES.make(name) for name in COMPUTED]
    asked = [importance for importance in every if refusal(importance, model) is None]
    expected = [importance(model, batch).values for importance in asked]
    with somewhere_else():
        other = moved(model)
        for importance, here in zip(asked, expected, strict=True):
            check(here, importance(other, other.collate(examples[:3])).values, 1e-3)


def test_noise() -> None:
    expected = uniform(3, torch.arange(5), 2), normal(3, 2, torch.arange(5))
    with somewhere_else():
        place = torch.arange(5, device=DEVICE)
        for here, there in zip(expected, (uniform(3, place, 2), normal(3, 2, place)), strict=True):
            check(here, there)


@pytest.mark.parametrize("kind", ["bilstm", "spelled, first", "pair"])
def test_scoring(kind: str) -> None:
    model, examples = case(kind)
    built: dict[str, Importance] = {name: IMPORTANCES.make(name) for name in ("attention", "gradient", "leave_one_out")}
    expected = score_frames(model, built, examples[:3])
    with somewhere_else():
        found = score_frames(moved(model), built, examples[:3])
    for name, frame in expected.items():
        assert_frame_equal(found[name], frame, abs_tol=1e-4, rel_tol=1e-4)


@pytest.mark.parametrize("spec", ["bilstm:size=6,hidden=4", "average:size=6", "transformer:size=8,layers=1,heads=2"])
def test_training(spec: str) -> None:
    """A training on the other device: the same loss after an epoch, weighted by class."""
    settings = TrainingSettings(epochs=1, class_weights=True)
    task = small_task(30)
    here, there = (build(spec, task) for _ in range(2))
    expected = Fit(here, task, settings, 0).run().history[0]["loss"]
    with somewhere_else():
        found = Fit(there.to(DEVICE), task, settings, 0).run().history[0]["loss"]
    assert found == pytest.approx(expected, abs=1e-3)
