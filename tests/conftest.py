"""What tests share: how many threads, which CPU, small studies, and the system's browser.

EXEGETE_TEST_THREADS (1 unless given) threads of torch; EXEGETE_TEST_CPU=7 rounds as another CPU would, the seventh.
"""

import os
from collections.abc import Iterator

import pytest
import torch

from tests.other_cpu import OtherCPU

pytest_plugins = ("tests.studied", "tests.browser")
torch.set_num_threads(int(os.environ.get("EXEGETE_TEST_THREADS", "1")))


@pytest.fixture(scope="session", autouse=True)
def cpu() -> Iterator[None]:
    if "EXEGETE_TEST_CPU" not in os.environ:
        yield
        return
    with OtherCPU(int(os.environ["EXEGETE_TEST_CPU"])):
        yield
