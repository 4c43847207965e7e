"""Sharing: what two importances need of a model is computed once, and nothing is shared that differs."""

from typing import Any

import pytest
import torch
from torch import Tensor

from exegete.importance import derivative, sharing
from exegete.importance.contract import Target
from exegete.importance.derivative import derivative as derived
from exegete.importance.gradient import Gradient
from exegete.importance.gradient_x_input import GradientXInput
from exegete.importance.sharing import sharing as block
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch
from tests.small import SPECS, batch_of, small_model, texts


def test_a_block_is_undone_after_an_exception() -> None:
    def broken() -> None:
        with block():
            assert sharing._shared.get() is not None
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        broken()
    assert sharing._shared.get() is None


def test_a_derivative_is_run_once_for_two_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model(SPECS[0], texts(6))
    batch, ran = batch_of(model, texts(6)), list[Batch]()
    target = Target(torch.ones(6, dtype=torch.int64))
    alone = [method(model, batch, target).values for method in (Gradient(), GradientXInput())]
    once = derivative._derivative

    def counted(model: Predictor, batch: Batch, *asked: Any) -> derivative.Derivative:
        ran.append(batch)
        return once(model, batch, *asked)

    monkeypatch.setattr(derivative, "_derivative", counted)
    with block():
        same = Target(torch.ones(6, dtype=torch.int64))
        together = [Gradient()(model, batch, target).values, GradientXInput()(model, batch, same).values]
    assert len(ran) == 1
    assert all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(alone, together, strict=True))
    Gradient()(model, batch, target)
    assert len(ran) == 2  # let go at the end of the block


def test_other_questions_get_other_derivatives() -> None:
    model = small_model(SPECS[0], texts(6))
    batch, zeros = batch_of(model, texts(6)), torch.zeros(6, dtype=torch.int64)
    moved = model.embed(batch) + 0.5

    def gradients() -> list[Tensor]:
        return [
            derived(model, batch, Target(zeros)).gradient,
            derived(model, batch, Target(zeros + 1)).gradient,
            derived(model, batch, Target(zeros, of="probability")).gradient,
            derived(model, batch, Target(zeros, contrast=zeros + 1)).gradient,
            derived(model, batch, Target(zeros), detach=True).gradient,
            derived(model, batch, Target(zeros), embedded=moved).gradient,
            derived(model, batch, "logit").gradient,
            derived(model, batch, "loss").gradient,
            derived(model, batch_of(model, texts(6)[::-1]), Target(zeros)).gradient,
        ]

    apart = gradients()
    with block():
        together = gradients()
        with torch.no_grad():
            model.decoder.weight.mul_(2)
        doubled = derived(model, batch, Target(zeros)).gradient
    assert all(torch.equal(a, b) for a, b in zip(apart, together, strict=True))
    assert torch.allclose(doubled, 2 * apart[0], atol=1e-6)
