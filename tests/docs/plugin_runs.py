"""A how-to's own study, run in a folder with its plugin and made-up reviews."""

import random
import shutil
from pathlib import Path

import pytest

from exegete.plugins import LocalEngine, load_study, run_study
from tests.docs.pages import ROOT

FILM = ("the", "a", "film", "story", "scene", "actor", "music", "plot", "ending", "camera")
FEELING = {"negative": ("dull", "bad", "slow"), "positive": ("fine", "good", "warm")}


def review(label: str, draw: random.Random) -> str:
    words = [draw.choice(FILM) for _ in range(draw.randint(3, 9))]
    words.insert(draw.randrange(len(words)), draw.choice(FEELING[label]))
    return " ".join(words)


def run_of(name: str, folder: Path) -> Path:
    """The run of examples/NAME.toml on 60 short texts."""
    draw = random.Random(0)
    lines = [f"{review(label, draw)},{label}\n" for _ in range(30) for label in FEELING]
    (folder / "reviews.csv").write_text("".join(["review,sentiment\n", *lines]), encoding="utf8")
    for file in (f"{name}.py", f"{name}.toml"):
        shutil.copy(ROOT / "examples" / file, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("exegete.report.drawing.Drawing.save", lambda *where: None)  # figures are looked at elsewhere
        return run_study(load_study(f"{name}.toml"), folder / "run", engine=LocalEngine(1))
