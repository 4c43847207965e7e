"""Axioms: what must hold of any explanation, on functions whose answer is known (Sundararajan et al. 2017, section 2).

Sensitivity: where one word alone changes the prediction, that word gets a score. Dummy (their sensitivity b): a word
that never changes the prediction gets 0. Implementation invariance: two models that compute the same function get the
same scores. The functions are classifiers of ours with weights set by hand, so that every method can be asked.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from exegete.base.noise import normal
from exegete.importance.contract import Importance, refusal
from exegete.models.build import plain_classifier
from exegete.models.contract import Predictor
from exegete.models.ours.classifier import Classifier
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import SPECIAL, Vocabulary

LABELS = ("no", "yes")
LETTERS = tuple("abcdefg")
EACH = 6  # texts on which two implementations are compared


def sensitivity(importance: Importance) -> float:
    """The share of all scores that the word gets which alone moves the prediction; must be above 0.

    f = 1 − mean_t relu(1 − e_t), their example. e = 2 for "on" lies where relu is flat: its gradient is 0, but without
    the word, by whatever removal, f falls. "off" has e = ½.
    """
    model = _toy("average:size=1,hidden=1,activation=relu,attention=dot", ("off", "on"))
    _set(model, embedding=[[0.5], [2.0]], linear=([[-1.0]], [1.0]), query=[[0.0]], decoder=([[-1.0]], 1.0))
    scores = _scores(importance, model, ("on", "off", "off")).abs()
    return _ratio(scores[0].item(), scores.sum().item())


def dummy(importance: Importance) -> float:
    """The largest score of a word that changes nothing, relative to the largest of all; must be 0.

    Sparse attention reads "good" if it is there; "filler" has no weight beside it, and its value is 0 without it. So f
    is the same with and without "filler", whatever else is there, and with "good" or an unknown word in its place.
    """
    model = _toy("average:size=2,hidden=2,activation=relu,attention=dot,projection=sparsemax", ("filler", "good"))
    identity = torch.eye(2).tolist()
    embedding = [[-1.0, 1.0], [2.0, 0.0]]
    _set(model, embedding=embedding, linear=(identity, [0.0, 0.0]), query=[[4.0, 0.0]], decoder=([[1.0, 0.0]], 0.0))
    scores = _scores(importance, model, ("filler", "good", "filler")).abs()
    return _ratio(scores[[0, 2]].max().item(), scores.max().item())


def implementation(importance: Importance) -> float:
    """The largest change of scores between two models of one function, relative to the largest score; must be 0.

    A BiLSTM, and one in which each unit has become two that share its work, with two more that the decoder reads with
    opposite signs.
    """
    narrow, wide = equal_functions()
    changes = []
    for i in range(EACH):
        order = normal(1, i, torch.arange(len(LETTERS))).argsort()[: 2 + i % 5].tolist()
        words = tuple(LETTERS[letter] for letter in order)
        a, b = (_scores(importance, model, words, i) for model in (narrow, wide))
        changes.append(_ratio((a - b).abs().max().item(), max(a.abs().max().item(), b.abs().max().item())))
    return max(changes)


AXIOMS: dict[str, Callable[[Importance], float]] = {
    "sensitivity": sensitivity,
    "dummy": dummy,
    "implementation": implementation,
}


def axioms(importance: Importance) -> dict[str, float]:
    """The number of each axiom, for those whose model the importance allows."""
    models = {"sensitivity": "average", "dummy": "average", "implementation": "bilstm"}
    return {
        name: ask(importance)
        for name, ask in AXIOMS.items()
        if refusal(importance, _toy(f"{models[name]}:size=1,hidden=2", LETTERS)) is None
    }


def equal_functions() -> tuple[Classifier, Classifier]:
    """Two BiLSTM classifiers with 3 and with 8 units per direction that predict alike."""
    narrow, wide = (_toy(f"bilstm:size=4,hidden={hidden},attention=dot", LETTERS) for hidden in (3, 8))
    with torch.no_grad():
        for place, parameter in enumerate(narrow.parameters()):
            parameter.copy_(normal(0, place, torch.arange(parameter.numel())).view_as(parameter))
    with torch.no_grad():
        _widen(narrow, wide)
    return narrow, wide


def _widen(narrow: Classifier, wide: Classifier) -> None:
    """Units 0 1 2 as 0 1 2 0 1 2, each with half the effect, and 0 0, which only the decoder reads, as + and as −."""
    unit = torch.tensor([0, 1, 2, 0, 1, 2, 0, 0])
    effect = torch.tensor([0.5] * 6 + [0.0] * 2)
    wide.embedding.weight.copy_(narrow.embedding.weight)
    old, new = (dict(model.encoder.named_parameters()) for model in (narrow, wide))
    for name, parameter in old.items():
        gates = parameter.view(4, 3, *parameter.shape[1:])[:, unit]  # [gate, unit, …]
        new[name].copy_((gates[..., unit] * effect if "weight_hh" in name else gates).flatten(0, 1))
    both = torch.cat([unit, 3 + unit])  # forward and backward states side by side
    query = narrow.scorer.linear.weight[:, both] * effect.repeat(2)
    wide.scorer.linear.weight.copy_(query * math.sqrt(len(both) / 6))  # its scores are divided by √size
    cancelling = torch.tensor([0.0] * 6 + [2.0, -2.0]).repeat(2)
    wide.decoder.weight.copy_(narrow.decoder.weight[:, both] * effect.repeat(2) + cancelling)
    wide.decoder.bias.copy_(narrow.decoder.bias)


def _toy(spec: str, words: tuple[str, ...]) -> Classifier:
    with torch.random.fork_rng(devices=[]):
        return plain_classifier(spec, Vocabulary(tuple(sorted(words))), LABELS).eval()


def _set(model: Classifier, embedding: object, linear: tuple[object, object], query: object, decoder: object) -> None:
    """Give an `average` model its weights; unknown word, start and end are zero vectors."""
    values = (embedding, *linear, query, *decoder)  # type: ignore[misc]
    of = (
        model.embedding.weight[len(SPECIAL) :],
        *model.encoder.linear.parameters(),  # type: ignore[union-attr]
        model.scorer.linear.weight,
        model.decoder.weight,
        model.decoder.bias,
    )
    with torch.no_grad():
        model.embedding.weight.zero_()
        for tensor, value in zip(of, values, strict=True):
            tensor.copy_(torch.tensor(value))


def _scores(importance: Importance, model: Predictor, words: tuple[str, ...], number: int = 0) -> Tensor:
    """The scores of one text, [word]."""
    batch = model.collate([Example(number, (words,), 1)])
    return importance(model, batch).values[0].double()


def _ratio(part: float, whole: float) -> float:
    """Where nothing gets a score, none is the share of anything."""
    return part / whole if whole else 0.0
