"""The models that must keep the contract: one line per kind, in `KINDS`; `test_contract` runs every property over all.

A kind is a name and a function that makes a small model and texts for it. Its weights should be large enough that its
attention is not flat and its predictions tell texts apart.
"""

import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import torch

from exegete.models.build import make_model
from exegete.models.capabilities import Writing
from exegete.models.contract import Predictor
from exegete.models.huggingface.build import build_from_spec
from exegete.models.settings import MODELS
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import fit_vocabulary
from tests.models.own_models import GENERAL, POOLING, written
from tests.models.small_translation import sentences as translations
from tests.models.spelled_models import MEAN, POOLED, sentences
from tests.models.tiny import bert_folder, in_memory, roberta
from tests.small import pairs, texts

SIZES = "size=7,hidden=6,scale=1"
LAYERS = "size=6,hidden=6,heads=2,inner=10,scale=1"
TRANSLATOR = "translator:hidden=6,size=6,scale=1"


class Case(NamedTuple):
    """A model at rest, and texts of several lengths."""

    model: Predictor
    examples: tuple[Example, ...]


def ours(spec: str, examples: tuple[Example, ...] | None = None, labels: tuple[str, ...] = ("no", "yes")) -> Case:
    """An untrained model of the catalogue."""
    some = examples or texts(6, seed=2)
    torch.manual_seed(0)
    model = make_model(spec, fit_vocabulary(some, wrap=MODELS.make(spec).wrap), labels).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embedding" not in name and "norm" not in name and parameter.requires_grad:
                parameter.mul_(2)
    return Case(model, some)


def documents() -> tuple[Example, ...]:
    """Texts of several sentences."""
    split = [
        tuple(word for letter in e.words for word in ((letter, ".") if letter in "abc" else (letter,)))
        for e in texts(6)
    ]
    return tuple(Example(i, (words,), i % 2) for i, words in enumerate(split))


def own(body: str) -> Case:
    """A module of a user's file."""
    return ours(written(Path(tempfile.mkdtemp()), body))


def next_word(spec: str) -> Case:
    """A translator as a classifier of its next word."""
    case = ours(spec, translations(5))
    assert isinstance(case.model, Writing)
    return case._replace(model=case.model.as_classes())


def pretrained(settings: str = "", examples: tuple[Example, ...] | None = None) -> Case:
    """A tiny random model of transformers, from its folder."""
    torch.manual_seed(0)
    some = examples or sentences(6)
    labels = ("no", "yes") if len(some[0].texts) == 1 else ("x", "y", "z")
    model = build_from_spec(f"hf:{bert_folder(labels)}{settings}", labels)
    with torch.no_grad():
        for head in (p for name, p in model.named_parameters() if not name.startswith("base.")):
            head.mul_(5)
    return Case(model, some)


paired = partial(ours, examples=pairs(6, candidates=True), labels=("x", "y", "z"))
spelled, long = partial(ours, examples=sentences(6)), partial(ours, examples=documents())
translating = partial(ours, examples=translations(5), labels=())

KINDS: dict[str, Callable[[], Case]] = {
    "bilstm": partial(ours, f"bilstm:{SIZES}"),
    "bilstm, wrapped": partial(ours, f"bilstm:{SIZES},wrap=true,attention=dot,projection=sparsemax,outputs=classes"),
    "bilstm without attention": partial(ours, f"bilstm:{SIZES},attention=none"),
    "bigru": partial(ours, f"bigru:{SIZES},projection=entmax"),
    "average": partial(ours, f"average:{SIZES},activation=relu,projection=entmax,learned=true"),
    "average with gates": partial(ours, f"average:{SIZES},projection=gates"),
    "cnn": partial(ours, "cnn:size=7,hidden=8,scale=1,projection=sparsegen,lam=0.5"),
    "flat": partial(long, f"flat:{SIZES}"),
    "flat without encoder": partial(long, f"flat:{SIZES},encoder=none"),
    "hierarchical": partial(long, f"hierarchical:{SIZES}"),
    "hierarchical, dot": partial(long, f"hierarchical:{SIZES},attention=dot,projection=entmax,learned=true"),
    "hierarchical, convolutions": partial(long, f"hierarchical:{SIZES},encoder=conv,projection=sparsemax"),
    "rationale": partial(ours, f"rationale:{SIZES},share=0.6"),
    "ladder": partial(ours, f"ladder:{SIZES},room=4"),
    "ladder, blind": partial(ours, f"ladder:{SIZES},share=0"),
    "transformer": partial(ours, f"transformer:{LAYERS}"),
    "transformer, wrapped": partial(ours, f"transformer:{LAYERS},wrap=true,norm=post,projection=entmax"),
    "transformer, last layer": partial(ours, f"transformer:{LAYERS},projection=sparsemax,every=false,outputs=classes"),
    "pair": partial(paired, f"pair:{SIZES}"),
    "pair, conditional": partial(paired, f"pair:{SIZES},encoder=bigru,encoding=conditional,reads=context"),
    "pair, convolutions": partial(paired, "pair:size=7,hidden=8,scale=1,encoder=cnn,attention=dot,shared=true"),
    "spelled": partial(spelled, POOLED),
    "spelled, two pieces": partial(spelled, f"{POOLED},width=2,projection=sparsemax,wrap=false"),
    "spelled, first": partial(spelled, f"{POOLED},pool=first"),
    "spelled, mean": partial(spelled, MEAN),
    "hf": pretrained,
    "hf, roberta": lambda: Case(in_memory(*roberta()), sentences(6)),
    "hf, mean": partial(pretrained, ":head=mean"),
    "hf, attention": partial(pretrained, ":head=attention"),
    "hf, pair": partial(pretrained, ":pair=true", pairs(6)),
    "own that pools": partial(own, POOLING),
    "own": partial(own, GENERAL),
    "bahdanau": partial(translating, TRANSLATOR),
    "luong": partial(translating, f"{TRANSLATOR},attention=luong,tied=false"),
    "transformer translator": partial(translating, f"{TRANSLATOR},architecture=transformer,heads=2,layers=2"),
    "next word": partial(next_word, TRANSLATOR),
    "next word of a transformer": partial(next_word, f"{TRANSLATOR},architecture=transformer,heads=2,layers=1"),
}  # fmt: skip


FROM_THE_LEFT = {"bilstm", "bilstm, wrapped", "bilstm without attention", "bigru", "flat", "rationale"}  # padded behind


@cache
def case(kind: str) -> Case:
    """A kind's model, made once."""
    return KINDS[kind]()
