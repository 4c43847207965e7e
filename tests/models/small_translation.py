"""A small translation task and small translators that tests share."""

import random
from collections.abc import Sequence

import torch

from exegete.models.build import make_model
from exegete.models.ours.translator import Translator
from exegete.tasks.example import Example, Task
from exegete.tasks.vocabulary import fit_vocabulary

WORDS = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier", "five": "fünf"}
BAHDANAU = "translator:hidden=5,size=4,scale=1"
LUONG = "translator:hidden=5,size=4,scale=1,attention=luong"
SPECS = (
    BAHDANAU,
    LUONG,
    "translator:hidden=5,size=4,scale=1,layers=2,tied=false,projection=sparsemax",
    "translator:hidden=5,size=4,scale=1,layers=2,tied=false,projection=entmax,attention=luong",
)


def sentences(n: int, seed: int = 0, longest: int = 6) -> tuple[Example, ...]:
    """Numbers in English, and in German read from the end; "four" takes two words."""
    draw = random.Random(seed)
    found = []
    for i in range(n):
        source = tuple(draw.choice(list(WORDS)) for _ in range(draw.randint(1, longest)))
        target = tuple(word for w in reversed(source) for word in (WORDS[w], *["doch"] * (w == "four")))
        found.append(Example(i, (source, target), 0))
    return tuple(found)


def translation_task(n: int = 120) -> Task:
    """A task that a small translator can learn."""
    examples = sentences(n, longest=4)
    splits = {"train": examples, "dev": examples[:40], "test": examples[40:80]}
    return Task("numbers", (), splits, "made up", kind="translation")


def small_translator(spec: str, examples: Sequence[Example], strength: float = 3.0) -> Translator:
    """An untrained translator with weights large enough to tell texts apart."""
    torch.manual_seed(0)
    model = make_model(spec, fit_vocabulary(examples, wrap=True), ()).eval()
    assert isinstance(model, Translator)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.startswith(("embedding", "target_embedding", "project")):
                parameter.mul_(strength).add_(0.1)
    return model
