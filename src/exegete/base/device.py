"""Device: where models compute: the CPU, or what torch finds beside it.

The device of a command or call is named once, and every model that is built or loaded under it is put there, in workers
too: they have the same environment. Tensors are made where their inputs are, so nobody else asks for it.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from exegete.base.errors import UsageError

if TYPE_CHECKING:  # it is slow to import, and a wrong name is told without it
    import torch

VARIABLE = "EXEGETE_DEVICE"
CPU = "cpu"
KINDS = (CPU, "cuda", "mps", "auto")


def device_of(name: str) -> "torch.device":
    """The device of a name: cpu, cuda, cuda:N, mps, or auto for the first of cuda, mps and cpu that is here."""
    kind, _, number = name.partition(":")
    if kind not in KINDS or (number and (kind != "cuda" or not number.isdecimal())):
        raise UsageError(f"'{name}' is no device: choose from cpu, cuda, cuda:N, mps and auto")
    import torch

    there = {"cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}
    if kind == "auto":
        return torch.device(next((found for found, count in there.items() if count), CPU))
    if kind != CPU and int(number or 0) >= there[kind]:
        found = ", ".join(f"{count} of {each}" for each, count in there.items() if count) or "only the CPU"
        raise UsageError(f"there is no device '{name}' here ({found}): use --device auto, or leave it out")
    return torch.device(name)


def in_use() -> "torch.device":
    """Where models are put now."""
    return device_of(os.environ.get(VARIABLE) or CPU)


@contextmanager
def on_device(name: str | None) -> Iterator[None]:
    """Models that are built or loaded inside are put on this device; without a name, where they were put before."""
    before = os.environ.get(VARIABLE)
    if name is not None:
        os.environ[VARIABLE] = str(device_of(name))
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = before


def for_questions(name: str | None) -> str:
    """The device of a run: as named, or in use, or the CPU. Questions are counted in float64, which mps has not."""
    asked = name or os.environ.get(VARIABLE) or CPU
    found = device_of(asked)
    if found.type != "mps":
        return str(found)
    if asked == "auto":
        return CPU
    raise UsageError(
        "experiments compute in float64, which mps has not: use --device cpu here; `train` and `explain` may take mps"
    )


def elsewhere(device: "torch.device") -> dict[str, str]:
    """What a key says of a device, where digits may be others: nothing of the CPU, else its kind."""
    return {} if device.type == CPU else {"device": device.type}
