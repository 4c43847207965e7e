"""Small texts and models that tests share."""

import random
from collections.abc import Sequence

import torch

from exegete.models.classifier import Classifier
from exegete.tasks.batching import Batch, collate
from exegete.tasks.example import Example, Task
from exegete.tasks.vocabulary import Vocabulary, fit_vocabulary

LETTERS = "abcdefghij"
SPECS = (
    "bilstm:size=7,hidden=6,scale=1",
    "bilstm:size=7,hidden=6,scale=1,attention=dot,projection=sparsemax",
    "bilstm:size=7,hidden=6,scale=1,projection=entmax,outputs=classes",
    "average:size=7,hidden=6,scale=1,projection=entmax,learned=true",
    "average:size=7,hidden=6,scale=1,activation=relu",
    "cnn:size=7,hidden=8,scale=1,projection=sparsegen,lam=0.5",
)


def texts(n: int, seed: int = 0, longest: int = 9, classes: int = 2) -> tuple[Example, ...]:
    """Random texts of 1 to `longest` letters; an even number of the letter a decides the label."""
    draw = random.Random(seed)
    words = [tuple(draw.choice(LETTERS) for _ in range(draw.randint(1, longest))) for _ in range(n)]
    return tuple(Example(i, (w,), w.count("a") % classes) for i, w in enumerate(words))


def small_task(n: int = 120, longest: int = 9) -> Task:
    """A task that a small model can learn: does the letter a occur?"""
    draw = random.Random(1)
    examples = []
    for i in range(n):
        words = [draw.choice("bcdefghij") for _ in range(draw.randint(2, longest))]
        if i % 2:
            words[draw.randrange(len(words))] = "a"
        examples.append(Example(i, (tuple(words),), i % 2))
    return Task(
        "small",
        ("no", "yes"),
        {"train": tuple(examples), "dev": tuple(examples[:40]), "test": tuple(examples[40:80])},
        "made up",
    )


def small_model(
    spec: str, examples: Sequence[Example], wrap: bool = False, labels: tuple[str, ...] = ("no", "yes")
) -> Classifier:
    """An untrained model with weights large enough to tell texts apart."""
    torch.manual_seed(0)
    model = Classifier(spec, vocabulary(examples, wrap), labels).eval()
    with torch.no_grad():
        for parameter in (*model.encoder.parameters(), *model.scorer.parameters(), *model.decoder.parameters()):
            parameter.mul_(3)
    return model


def vocabulary(examples: Sequence[Example], wrap: bool = False) -> Vocabulary:
    return fit_vocabulary(examples, wrap=wrap)


def batch_of(model: Classifier, examples: Sequence[Example]) -> Batch:
    return collate(examples, model.vocabulary)
