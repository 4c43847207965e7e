"""What tests share: how many threads, which CPU, catalogues as we fill them, small studies, and the system's browser.

EXEGETE_TEST_THREADS (1 unless given) threads of torch; EXEGETE_TEST_CPU=7 rounds as another CPU would, the seventh.
"""

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from exegete.experiments import tests as declarations
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.importance.catalogue import IMPORTANCES
from exegete.interventions.catalogue import INTERVENTIONS
from exegete.measures.catalogue import MEASURES
from tests.other_cpu import OtherCPU

pytest_plugins = ("tests.studied", "tests.browser")
torch.set_num_threads(int(os.environ.get("EXEGETE_TEST_THREADS", "1")))
if "EXEGETE_DATA" in os.environ:
    os.environ["EXEGETE_DATA"] = str(Path(os.environ["EXEGETE_DATA"]).absolute())  # tests change folders
gc.disable()  # importing a thousand modules makes no garbage: looking for it takes as long as importing them


def pytest_collection_finish() -> None:
    """What was imported stays, and isn't looked through again."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def cpu() -> Iterator[None]:
    if "EXEGETE_TEST_CPU" not in os.environ:
        yield
        return
    with OtherCPU(int(os.environ["EXEGETE_TEST_CPU"])):
        yield


@pytest.fixture(scope="module", autouse=True)
def catalogues() -> Iterator[None]:
    """What one file's tests add, or the plugins of their studies, no other file sees."""
    with pytest.MonkeyPatch.context() as patch:
        for catalogue in (EXPERIMENTS, IMPORTANCES, INTERVENTIONS, MEASURES):
            patch.setattr(catalogue, "_own", dict(catalogue._own))
        patch.setattr(declarations, "_ADDED", dict(declarations._ADDED))
        yield
    for name in [name for name in sys.modules if name.startswith("exegete_plugin_")]:
        del sys.modules[name]  # so that it is loaded again where it is asked for again
