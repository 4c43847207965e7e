"""Cheap: what the workers of `cluster.py` do, in a module that they can import."""

import random
from pathlib import Path
from tempfile import TemporaryDirectory

from exegete.base.progress import Progress
from exegete.runs.engine.local import LocalEngine
from exegete.runs.run import run_study
from exegete.runs.study import Study, check_study

TELLING = (("dull", "poor"), ("fine", "great"))


def reviews(path: Path, texts: int) -> None:
    """A csv of made-up reviews."""
    draw = random.Random(0)
    lines = ["text,label"]
    for i in range(texts):
        words = [f"w{draw.randrange(500)}" for _ in range(draw.randint(8, 25))]
        words[draw.randrange(len(words))] = draw.choice(TELLING[i % 2])
        lines.append(f"{' '.join(words)} {i},{('bad', 'good')[i % 2]}")
    path.write_text("\n".join(lines) + "\n")


def piece(at: tuple[str, int, int], progress: Progress) -> None:
    """A study of one cell, in this process."""
    del progress
    folder, seed, epochs = Path(at[0]), at[1], at[2]
    agreement = {"name": "agreement", "ks": ["1"], "topk": ["fagin"], "draws": 3}
    study = Study(
        name="cheap",
        tasks=[f"file:{folder / 'reviews.csv'}"],
        models=["bilstm:size=16,hidden=16"],
        seeds=[seed],
        training={"epochs": epochs, "lr": 0.02},
        experiments=[agreement],
    )
    with TemporaryDirectory() as run:
        run_study(check_study(study), Path(run) / "run", engine=LocalEngine(1))


def nothing(item: int, progress: Progress) -> int:
    """A piece that only goes there and back."""
    del progress
    return item
