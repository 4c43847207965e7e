"""Small documents of several sentences, and hierarchical and flat models over them."""

import random
from collections.abc import Sequence

import torch

from exegete.models.build import make_classifier
from exegete.models.ours.classifier import PoolingClassifier
from exegete.models.ours.hierarchical import Hierarchical
from exegete.models.ours.last_state import LastState
from exegete.models.ours.module import Model
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import Vocabulary
from tests.small import vocabulary

WORDS = ("bu", "cu", "du", "eu", "fu", "gu", "hu")  # longer than initials, after which no sentence ends
SMALL = "size=7,hidden=4,scale=1"
HIERARCHICAL = (
    f"hierarchical:{SMALL}",
    f"hierarchical:{SMALL},attention=dot,projection=sparsemax",
    f"hierarchical:{SMALL},encoder=conv,projection=entmax,learned=true",
    f"hierarchical:{SMALL},encoder=none",
)
FLAT = (f"flat:{SMALL}", f"flat:{SMALL},encoder=conv", f"flat:{SMALL},encoder=none,outputs=classes")


def documents(n: int, seed: int = 0, sentences: int = 4, longest: int = 5, classes: int = 2) -> tuple[Example, ...]:
    """1 to `sentences` sentences of 1 to `longest` words each: the last word of all but perhaps the last is a mark.

    The first document is one word, the second one sentence without a mark, the third two sentences of one word each.
    """
    draw = random.Random(seed)
    texts = [("bu",), ("bu", "cu", "a"), (".", "a")]
    for _ in range(n - len(texts)):
        words: list[str] = []
        for _ in range(draw.randint(1, sentences)):
            words += [draw.choice(WORDS) for _ in range(draw.randint(0, longest - 1))] + [draw.choice(".!?")]
            words += [draw.choice(WORDS)]  # so that marks don't run together; it begins the next sentence
        texts.append(tuple(words[: None if draw.random() < 0.5 else -1]))
    return tuple(Example(i, (text,), i % classes) for i, text in enumerate(texts[:n]))


def document_model(
    spec: str, examples: Sequence[Example], labels: tuple[str, ...] = ("no", "yes"), wrap: bool = False
) -> PoolingClassifier:
    """An untrained model with weights large enough to tell texts apart."""
    model = _large(spec, vocabulary(examples, wrap), labels)
    assert isinstance(model, PoolingClassifier)
    return model


def last_state(spec: str, examples: Sequence[Example], labels: tuple[str, ...] = ("no", "yes")) -> LastState:
    """The same without attention."""
    model = _large(spec, vocabulary(examples), labels)
    assert isinstance(model, LastState)
    return model


def _large(spec: str, words: Vocabulary, labels: tuple[str, ...]) -> Model:
    torch.manual_seed(0)
    model = make_classifier(spec, words, labels).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.startswith(("embedding", "project", "word_project")):
                parameter.mul_(3)
    return model


def hierarchical(spec: str, examples: Sequence[Example], labels: tuple[str, ...] = ("no", "yes")) -> Hierarchical:
    model = document_model(spec, examples, labels)
    assert isinstance(model, Hierarchical)
    return model
