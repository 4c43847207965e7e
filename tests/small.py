"""Small texts and models that tests share."""

import random
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch.nn.functional import pad

from exegete.experiments.common.pooling import Pooled
from exegete.models.build import build, make_classifier
from exegete.models.contract import Predictor
from exegete.models.openings import OpenedPooling
from exegete.models.ours.classifier import Classifier, PoolingClassifier
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example, Task
from exegete.tasks.vocabulary import PAD, Vocabulary, fit_vocabulary

LETTERS = "abcdefghij"
SEPARATING = ("value_zeroing", "alti", "globenc", "contribution")  # methods for models that are `Separable`
SPECS = (
    "bilstm:size=7,hidden=6,scale=1",
    "bilstm:size=7,hidden=6,scale=1,attention=dot,projection=sparsemax",
    "bilstm:size=7,hidden=6,scale=1,projection=entmax,outputs=classes",
    "average:size=7,hidden=6,scale=1,projection=entmax,learned=true",
    "average:size=7,hidden=6,scale=1,activation=relu",
    "cnn:size=7,hidden=8,scale=1,projection=sparsegen,lam=0.5",
)
TRANSFORMERS = (
    "transformer:size=7,hidden=6,heads=2,inner=10,scale=1",
    "transformer:size=6,hidden=6,heads=1,inner=10,scale=1,layers=1,norm=post,projection=entmax,attention=tanh",
    "transformer:size=7,hidden=6,heads=3,inner=10,scale=1,projection=sparsemax,every=false,outputs=classes",
)
PAIRS = (
    "pair:size=7,hidden=4,scale=1",
    "pair:size=7,hidden=4,scale=1,encoder=bigru,encoding=conditional,reads=context",
    "pair:size=7,hidden=6,scale=1,encoder=average,attention=dot,projection=sparsemax,shared=true",
    "pair:size=7,hidden=8,scale=1,encoder=cnn,projection=entmax,reads=context",
    "pair:size=7,hidden=4,scale=1,encoding=conditional,attention=dot",
)
PERSONS, PLACES = "abc", ("kitchen", "office", "garden")


def texts(n: int, seed: int = 0, longest: int = 9, classes: int = 2) -> tuple[Example, ...]:
    """Random texts of 1 to `longest` letters; an even number of the letter a decides the label."""
    draw = random.Random(seed)
    words = [tuple(draw.choice(LETTERS) for _ in range(draw.randint(1, longest))) for _ in range(n)]
    return tuple(Example(i, (w,), w.count("a") % classes) for i, w in enumerate(words))


def without_repeats(examples: Sequence[Example]) -> tuple[Example, ...]:
    """The same texts with every word once: equal words tie, and an order among them is nobody's."""
    return tuple(replace(e, texts=tuple(tuple(dict.fromkeys(text)) for text in e.texts)) for e in examples)


def pairs(n: int, seed: int = 0, explained: int = 0, candidates: bool = False) -> tuple[Example, ...]:
    """Passages of 1 to 7 letters, questions of 1 to 4; three classes, of which some examples may choose only two."""
    draw = random.Random(seed)
    found = []
    for i in range(n):
        passage, question = (tuple(draw.choice(LETTERS) for _ in range(draw.randint(1, most))) for most in (7, 4))
        some = (i % 3, (i + 1) % 3) if candidates and i % 2 else ()
        found.append(Example(i, (passage, question), i % 3, candidates=some, explained=explained))
    return tuple(found)


def pair_task(n: int = 120) -> Task:
    """Stories of three persons in three places, in any order, with fillers; where is one of them? Gold: two words."""
    draw = random.Random(2)
    examples = []
    for i in range(n):
        passage: list[str] = []
        where = {person: draw.choice(PLACES) for person in PERSONS}
        for person in draw.sample(PERSONS, len(PERSONS)):
            passage += [person, where[person], *["so"] * draw.randint(0, 1)]
        asked = PERSONS[i % 3]
        place = passage.index(asked)
        question = ("where", asked) if i % 2 else ("where", "is", asked)
        examples.append(Example(i, (tuple(passage), question), PLACES.index(where[asked]), (place, place + 1)))
    splits = {"train": tuple(examples), "dev": tuple(examples[:40]), "test": tuple(examples[40:80])}
    return Task("small_pairs", PLACES, splits, "made up", kind="pair")


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
) -> PoolingClassifier:
    """An untrained model with weights large enough to tell texts apart."""
    torch.manual_seed(0)
    model = make_classifier(spec, vocabulary(examples, wrap), labels).eval()
    assert isinstance(model, PoolingClassifier)
    with torch.no_grad():
        for part in ("encoder", "question_encoder", "scorer", "decoder"):
            for parameter in getattr(model, part).parameters() if hasattr(model, part) else ():
                parameter.mul_(3)
    return model


def small_classifier(
    spec: str, examples: Sequence[Example], wrap: bool = False, labels: tuple[str, ...] = ("no", "yes")
) -> Classifier:
    """The same where it has one encoder and one attention, and nothing else."""
    model = small_model(spec, examples, wrap, labels)
    assert isinstance(model, Classifier)
    return model


def pooling(spec: str, task: Task, seed: int = 0) -> PoolingClassifier:
    """An untrained model of a task, as it is built, that pools."""
    model = build(spec, task, seed)
    assert isinstance(model, PoolingClassifier)
    return model


def vocabulary(examples: Sequence[Example], wrap: bool = False) -> Vocabulary:
    return fit_vocabulary(examples, wrap=wrap)


def decoder_of(part: Pooled) -> OpenedPooling:
    """Texts of a model that pools, as they were encoded."""
    assert isinstance(part.opened, OpenedPooling)
    return part.opened


def padded(batch: Batch, left: int, right: int) -> Batch:
    """The same texts with more padding on both sides."""
    fills = {"tokens": PAD, "present": False, "words": False, "part": -1, "sentence": -1}
    wider = {name: pad(getattr(batch, name), (left, right), value=fill) for name, fill in fills.items()}
    return Batch(**batch._asdict() | wider)


def batch_of(model: Predictor, examples: Sequence[Example]) -> Batch:
    return model.collate(examples)
