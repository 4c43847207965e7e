"""Adam with AMSGrad (Kingma & Ba 2015; Reddi et al. 2018), by torch's own fused step.

`torch.optim.Adam` does the same steps, bit by bit, but its first one imports torch's compiler: 1.7 seconds for every
process that trains, a tenth of a quick audit.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam

MOMENTS = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """What `torch.optim.Adam(groups, amsgrad=True, fused=True)` is, as far as a training uses it."""

    def __init__(self, groups: Sequence[dict[str, Any]]) -> None:
        self.param_groups = list(groups)  # of `params`, `lr`, `weight_decay`
        self.state: dict[int, dict[str, Tensor]] = {}  # by number of parameter, from its first gradient on

    def zero_grad(self) -> None:
        """No gradients."""
        for _, parameter in self._numbered():
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """One step along the gradients that are there."""
        number = 0
        for group in self.param_groups:
            numbers = range(number, number := number + len(group["params"]))
            there = [(n, p) for n, p in zip(numbers, group["params"], strict=True) if p.grad is not None]
            self.state |= {n: _fresh(p) for n, p in there if n not in self.state}
            slots = [self.state[n] for n, _ in there]
            mean, square, largest, steps = ([slot[name] for slot in slots] for name in (*MOMENTS, "step"))
            adam(
                [p for _, p in there],
                [p.grad for _, p in there],
                mean,
                square,
                largest,
                steps,
                fused=True,
                amsgrad=True,
                beta1=BETA1,
                beta2=BETA2,
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                eps=EPSILON,
                maximize=False,
            )

    def state_dict(self) -> dict[str, Any]:
        """Where it stands, as torch's optimisers tell it."""
        return {"state": self.state, "param_groups": self.param_groups}

    def load_state_dict(self, told: dict[str, Any]) -> None:
        """Go on from there."""
        self.state = {number: dict(slots) for number, slots in told["state"].items()}

    def _numbered(self) -> enumerate[Tensor]:
        return enumerate(p for group in self.param_groups for p in group["params"])


def _fresh(parameter: Tensor) -> dict[str, Tensor]:
    step = torch.zeros((), dtype=torch.float32, device=parameter.device)
    return {"step": step} | {name: torch.zeros_like(parameter) for name in MOMENTS}
