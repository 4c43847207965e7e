"""What the benchmarks share: the task, a trained model, a clock, and sizes.

With `--small` a benchmark runs on a few texts: what it compares must still be equal, and no bar counts.
"""

import sys
import time
from collections.abc import Callable

import torch

from exegete.base.errors import ExegeteError
from exegete.models.build import build
from exegete.models.ours.classifier import Classifier
from exegete.tasks.catalogue import load_task
from exegete.tasks.example import Task
from exegete.training.fit import Fit
from exegete.training.settings import TrainingSettings

SMALL = "--small" in sys.argv
if SMALL:
    sys.argv.remove("--small")
FEW = "rotten_tomatoes:train_limit=300,dev_limit=50,test_limit=48"


def task() -> Task:
    """SST, or rotten_tomatoes where there is no EXEGETE_DATA; a little of the latter with --small."""
    torch.set_num_threads(1)
    if SMALL:
        return load_task(FEW)
    try:
        return load_task("sst")
    except ExegeteError:
        print("no sst here: rotten_tomatoes instead")
        return load_task("rotten_tomatoes")


def trained(data: Task) -> Classifier:
    """BiLSTM, 128 units, 300-d random embeddings, one epoch."""
    model = build("bilstm:size=300,hidden=128", data)
    assert isinstance(model, Classifier)
    Fit(model, data, TrainingSettings(epochs=1), 0).run()
    return model.eval()


def below(ratio: float, bar: float) -> bool:
    """Whether a bar is missed, where it counts."""
    return not SMALL and ratio < bar


def seconds(work: Callable[[], object], repeat: int = 1) -> float:
    """The fastest of some runs."""
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best
