"""Companions of small models, and what a model makes of one text, written slowly."""

import math
from collections.abc import Sequence

import torch

from exegete.experiments.common.contract import Subject
from exegete.models.contract import Intervention, Predictor
from exegete.models.ours.classifier import PoolingClassifier
from exegete.tasks.example import Example, Task
from exegete.training.recipe import Companion
from tests.small import small_model
from tests.subjects import subject_of


def shaken(spec: str, examples: Sequence[Example], seed: int) -> PoolingClassifier:
    """The small model with other weights."""
    model = small_model(spec, examples)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.5)
    return model


def beside(spec: str, examples: tuple[Example, ...], companions: dict[str, Companion]) -> Subject:
    model = small_model(spec, examples)
    task = Task("small", model.labels, {"train": examples, "test": examples}, "by hand")
    answers = [max(range(2), key=slow(model, e)[1].__getitem__) for e in examples]
    return subject_of(model, task, examples, predicted=torch.tensor(answers), mean_length=5.0, companions=companions)


def slow(model: Predictor, example: Example, intervene: Intervention | None = None) -> tuple[list[float], list[float]]:
    """Weights and probabilities of one text, alone."""
    batch = model.collate([example])
    with torch.no_grad():
        trace = model.trace(batch, intervene=intervene)
    weights = [
        w for w, word in zip(trace.attention["attention"][0, 0, 0].tolist(), batch.words[0], strict=True) if word
    ]
    powers = [math.exp(z) for z in trace.logits[0].tolist()]
    return weights, [power / sum(powers) for power in powers]


def slow_jsd(p: Sequence[float], q: Sequence[float]) -> float:
    """½ Σ p ln(2p / (p + q)) + ½ Σ q ln(2q / (p + q))."""
    total = 0.0
    for a, b in zip(p, q, strict=True):
        total += (a * math.log(2 * a / (a + b)) if a > 0 else 0) / 2
        total += (b * math.log(2 * b / (a + b)) if b > 0 else 0) / 2
    return total


def slow_tvd(p: Sequence[float], q: Sequence[float]) -> float:
    return sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2
