"""A small study on a small file: everything that a real one does, in seconds."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from exegete.runs.engine.local import LocalEngine
from exegete.runs.run import run_study
from exegete.runs.study import Study, check_study
from exegete.training import train as training
from exegete.training.checkpoint import Checkpoint
from exegete.training.fit import Fit

GOOD, BAD, PLAIN = ("fine", "great", "lovely"), ("poor", "dull", "awful"), tuple("abcdefghijklmnop")


def reviews(path: Path, n: int = 90) -> Path:
    """A csv of short texts, half of them with a good word, half with a bad one; one is a single word."""
    draw = random.Random(0)
    lines = ["review,sentiment"]
    for i in range(n):
        words = [draw.choice(PLAIN) for _ in range(draw.randint(3, 9))]
        words[draw.randrange(len(words))] = draw.choice(GOOD if i % 2 else BAD)
        lines.append(f"{' '.join(words)} {i},{'good' if i % 2 else 'bad'}")
    path.write_text("\n".join([*lines, "fine,good"]) + "\n")
    return path


def small_study(name: str, file: Path, models: list[str], *experiments: dict[str, Any]) -> Study:
    """Some models, twice each, and what is asked of them."""
    return check_study(
        Study.model_validate(
            {
                "name": name,
                "tasks": [f"file:{file}:text=review,label=sentiment,tokenizer=whitespace"],
                "models": models,
                "seeds": [0, 1],
                "training": {"epochs": 2, "metric": "accuracy", "lr": 0.02},
                "experiments": list(experiments),
            }
        )
    )


@contextmanager
def noting(trainings: list[str]) -> Iterator[None]:
    """The key of every training that is done inside."""
    real = training.train_in_folder

    def noted(fit: Fit, folder: Path, key: str, *rest: Any) -> Checkpoint:
        trainings.append(key)
        return real(fit, folder, key, *rest)

    with patch("exegete.runs.training.train_in_folder", noted):
        yield


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    file = reviews(tmp_path_factory.mktemp("data") / "reviews.csv")
    models = ["bilstm:size=8,hidden=8", "bilstm:size=8,hidden=8,projection=sparsemax"]
    agreement = {"name": "agreement", "ks": ["1", "nonzeros"], "topk": ["fagin"], "draws": 3}
    return small_study("small", file, models, agreement)


@pytest.fixture(scope="session")
def whole(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of the study, undisturbed; tests only read it."""
    return run_study(study, tmp_path_factory.mktemp("runs") / "whole", engine=LocalEngine(1))


@pytest.fixture
def undrawn() -> Iterator[None]:
    """Figures take longer than all else in a small run, and are looked at elsewhere."""
    with patch("exegete.experiments.common.charts.draw_charts"):
        yield
