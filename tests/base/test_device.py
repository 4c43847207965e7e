"""A device is named once, and is there or is refused with a sentence."""

import os

import pytest
import torch

from exegete.base.device import VARIABLE, device_of, elsewhere, for_questions, in_use, on_device
from exegete.base.errors import UsageError


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


@pytest.fixture
def apple(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


@pytest.mark.parametrize("name", ["gpu", "cpu:0", "cuda:x", "mps:1", "", "cuda:-1"])
def test_what_is_no_device_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is no device: choose from cpu, cuda, cuda:N, mps and auto"):
        device_of(name)


@pytest.mark.usefixtures("two_gpus")
def test_devices_that_are_here() -> None:
    assert [str(device_of(name)) for name in ("cpu", "cuda", "cuda:1", "auto")] == ["cpu", "cuda", "cuda:1", "cuda"]
    with pytest.raises(UsageError, match=r"no device 'cuda:2' here \(2 of cuda"):
        device_of("cuda:2")


@pytest.mark.usefixtures("apple")
def test_auto_takes_what_is_there() -> None:
    assert str(device_of("auto")) == "mps"


@pytest.mark.usefixtures("plain")
def test_a_device_that_is_not_here_is_said() -> None:
    assert str(device_of("auto")) == "cpu"
    for name in ("cuda", "mps"):
        with pytest.raises(UsageError, match=rf"there is no device '{name}' here \(only the CPU\)"):
            device_of(name)


@pytest.mark.usefixtures("two_gpus")
def test_a_device_holds_inside_and_for_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert in_use() == torch.device("cpu")
    with on_device("cuda:1"):
        assert in_use() == torch.device("cuda:1")
        assert os.environ[VARIABLE] == "cuda:1"
        with on_device(None):
            assert in_use() == torch.device("cuda:1")
    assert VARIABLE not in os.environ


@pytest.mark.usefixtures("two_gpus")
def test_a_run_takes_the_device_that_is_named_or_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert [for_questions(name) for name in (None, "cpu", "cuda", "cuda:1", "auto")] == [
        "cpu", "cpu", "cuda", "cuda:1", "cuda",
    ]  # fmt: skip
    monkeypatch.setenv(VARIABLE, "cuda:1")
    assert for_questions(None) == "cuda:1"
    assert for_questions("cpu") == "cpu"


@pytest.mark.usefixtures("apple")
def test_a_run_needs_float64() -> None:
    assert for_questions("auto") == "cpu"
    with pytest.raises(UsageError, match="float64, which mps has not: use --device cpu"):
        for_questions("mps")


def test_keys_tell_kinds_of_devices_apart_from_the_cpu() -> None:
    assert elsewhere(torch.device("cpu")) == {}
    assert elsewhere(torch.device("cuda:1")) == {"device": "cuda"}
