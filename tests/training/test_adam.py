"""Our Adam: torch's own, bit by bit, without its compiler."""

import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from exegete.training.adam import Adam

STEPS = 5


def groups(parameters: list[nn.Parameter]) -> list[dict[str, Any]]:
    return [
        {"params": parameters[:2], "lr": 0.01, "weight_decay": 0.1},
        {"params": parameters[2:], "lr": 0.1, "weight_decay": 0.0},
    ]


def parameters() -> list[nn.Parameter]:
    draw = torch.Generator().manual_seed(3)
    return [nn.Parameter(torch.randn(shape, generator=draw)) for shape in ((4, 3), (3,), (2, 5), (1,))]


def loss(some: list[nn.Parameter], number: int) -> Tensor:
    """The last parameter has no gradient before the third step."""
    used = some if number >= 2 else some[:-1]
    return sum(((p * (number + 1)).sin().sum() for p in used), torch.zeros(()))


def stepped(some: list[nn.Parameter], optimiser: Adam | torch.optim.Adam, steps: range) -> None:
    for number in steps:
        optimiser.zero_grad()
        loss(some, number).backward()
        optimiser.param_groups[0]["lr"] = 0.01 / (number + 1)
        optimiser.step()


def test_every_step_is_that_of_torch() -> None:
    ours, theirs = parameters(), parameters()
    stepped(ours, Adam(groups(ours)), range(STEPS))
    stepped(theirs, torch.optim.Adam(groups(theirs), amsgrad=True, fused=True), range(STEPS))
    for a, b in zip(ours, theirs, strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(ours[3], parameters()[3])  # it did move, from its first gradient on


def test_it_goes_on_where_torch_or_it_stopped() -> None:
    whole, cut, theirs = parameters(), parameters(), parameters()
    stepped(whole, Adam(groups(whole)), range(STEPS))
    for some, first in ((cut, Adam(groups(cut))), (theirs, torch.optim.Adam(groups(theirs), amsgrad=True, fused=True))):
        stepped(some, first, range(3))
        again = Adam(groups(some))
        again.load_state_dict(first.state_dict())
        stepped(some, again, range(3, STEPS))
        assert all(torch.equal(a, b) for a, b in zip(whole, some, strict=True))


@pytest.mark.slow
def test_a_training_does_not_import_the_compiler() -> None:
    code = """
import sys
from tests.training.test_adam import Adam, groups, parameters, stepped
some = parameters()
stepped(some, Adam(groups(some)), range(3))
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
