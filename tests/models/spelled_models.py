"""Models whose words have several pieces, and texts for them."""

import random

import torch

from exegete.models.build import make_classifier
from exegete.models.ours.piece_transformer import Spelled
from exegete.tasks.example import Example, Task
from tests.small import vocabulary

WORDS = ("a", "bad", "movie", "charming", "unbelievably", "dull", "of", "plot", "terrific", "ok")
POOLED = "spelled:size=5,hidden=6,heads=2,inner=10,scale=1"
FIRST, MEAN = f"{POOLED},pool=first", f"{POOLED},pool=mean,wrap=false,norm=post"
SPELLED = (POOLED, f"{POOLED},width=2,projection=sparsemax,wrap=false", FIRST, f"{FIRST},outputs=classes", MEAN)


def sentences(n: int, seed: int = 0, longest: int = 6) -> tuple[Example, ...]:
    """Random texts of different words, of one to four pieces; whether one is charming decides the label."""
    draw = random.Random(seed)
    texts = [tuple(draw.sample(WORDS, draw.randint(1, longest))) for _ in range(n)]
    return tuple(Example(i, (text,), int("charming" in text)) for i, text in enumerate(texts))


def spelled_task(n: int = 60) -> Task:
    examples = sentences(n, seed=1)
    splits = {"train": examples, "dev": examples[: n // 3], "test": examples[n // 3 : 2 * n // 3]}
    return Task("sentences", ("no", "yes"), splits, "made up")


def spelled_model(spec: str, examples: tuple[Example, ...] | None = None) -> Spelled:
    """An untrained model with weights large enough to tell texts apart."""
    torch.manual_seed(0)
    wrap = "wrap=false" not in spec
    model = make_classifier(spec, vocabulary(examples or sentences(40), wrap), ("no", "yes")).eval()
    assert isinstance(model, Spelled)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.startswith("embedding"):
                parameter.mul_(2)
    return model
