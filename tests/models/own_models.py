"""Own models for tests: files as users write them, right ones and wrong ones."""

from pathlib import Path

import torch

from exegete.models.build import make_classifier
from exegete.models.own.classifier import Own, PooledOwn
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import Vocabulary
from tests.small import LETTERS, vocabulary

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_model.py"
LABELS = ("no", "yes")

POOLING = """
import exegete, torch
from torch import nn

class Adapter(exegete.OwnPooling):
    def __init__(self, words, classes, size=5):
        super().__init__()
        self.table = nn.Embedding(words, size)
        self.layer, self.query, self.out = nn.Linear(size, size), nn.Linear(size, 1), nn.Linear(size, classes)
    def embed(self, tokens):
        return self.table(tokens)
    def states(self, embedded, mask):
        return self.layer(embedded).tanh()
    def scores(self, states, mask):
        return 3 * self.query(states).squeeze(-1)
    def decode(self, context):
        return self.out(context)

def make(words, labels):
    return Adapter(len(words), len(labels))
"""

GENERAL = '''
import exegete, torch
from torch import nn

class Adapter(exegete.OwnModel):
    """Two heads of self-attention over tokens, then two heads that pool."""
    def __init__(self, words, classes, size=6):
        super().__init__()
        self.table = nn.Embedding(words, size)
        self.q, self.k, self.v = (nn.Linear(size, size) for _ in range(3))
        self.pool, self.out = nn.Linear(size, 2), nn.Linear(2 * size, classes)
    def embed(self, tokens):
        return self.table(tokens)
    def forward(self, embedded, mask, attend):
        q, k, v = (f(embedded).unflatten(-1, (2, 3)).transpose(1, 2) for f in (self.q, self.k, self.v))
        x = embedded + (attend("self", q @ k.mT, embedded) @ v).transpose(1, 2).flatten(2)
        return self.out((attend("pool", self.pool(x).mT, x) @ x).flatten(1))

def make(words, labels):
    return Adapter(len(words), len(labels))
'''


def written(folder: Path, text: str, name: str = "mine.py") -> str:
    """A file in a folder, and the model's name with it."""
    (folder / name).write_text(text, encoding="utf8")
    return f"own:file={folder / name}"


def own(spec: str, words: Vocabulary | None = None, labels: tuple[str, ...] = LABELS) -> Own:
    """An untrained own model over letters, with weights from one seed."""
    torch.manual_seed(0)
    model = make_classifier(spec, words or vocabulary([Example(0, (tuple(LETTERS),), 0)]), labels).eval()
    assert isinstance(model, Own)
    model.requires_grad_(False)  # numbers are looked at, not learnt
    return model


def pooled_own(spec: str) -> PooledOwn:
    """The same of a file whose adapter pools."""
    model = own(spec)
    assert isinstance(model, PooledOwn)
    return model
