"""A model with other weights for a while: what it learnt is drawn anew, or the same function is written differently.

Both are context managers. The weights come back, bit by bit, also after an exception.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from exegete.base.errors import UsageError
from exegete.base.noise import normal, stable_seed
from exegete.base.places import places
from exegete.models.ours.classifier import Classifier
from exegete.models.ours.encoders import CNN, Identity
from exegete.models.ours.module import Model
from exegete.tasks.vocabulary import PAD

# From the prediction to the words; not every model has all.
PARTS = (
    "decoder", "scorer", "sentence_encoder", "word_scorer", "question_encoder", "encoder", "selector",
    "question_embedding", "embedding",
)  # fmt: skip


def parts(model: object) -> tuple[str, ...]:
    """The parts of a model that can be drawn anew, from the output to the input."""
    found = tuple(part for part in PARTS if _has_weights(getattr(model, part, None)))
    if not found or not isinstance(model, nn.Module):
        raise UsageError(f"{type(model).__name__} has no layers that could be drawn anew: use one of our own models")
    return found


def _has_weights(part: object) -> bool:
    return isinstance(part, nn.Module) and next(part.parameters(), None) is not None


@contextmanager
def restore_after(model: nn.Module) -> Iterator[None]:
    """Inside, parameters may be changed in place; afterwards they are what they were."""
    before = [parameter.detach().clone() for parameter in model.parameters()]
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter, value in zip(model.parameters(), before, strict=True):
                parameter.copy_(value)


@contextmanager
def randomise(model: object, of: Sequence[str], seed: int) -> Iterator[None]:
    """Some parts without what they learnt: keyed normal numbers of the same size (Adebayo et al. 2018, section 3).

    Every tensor keeps its root mean square, so that only what was learnt is gone, and not the scale of things.
    """
    if not isinstance(model, Model):
        raise UsageError(f"{type(model).__name__} has no layers that could be drawn anew: use one of our own models")
    with restore_after(model):
        with torch.no_grad():
            for part in of:
                for name, parameter in getattr(model, part).named_parameters():
                    parameter.copy_(_of_the_same_size(parameter, seed, f"{part}.{name}"))
            for table in model.tables:
                table.weight[PAD] = 0
        yield


def _of_the_same_size(parameter: Tensor, seed: int, name: str) -> Tensor:
    drawn = normal(seed, stable_seed("randomised", name), places(parameter.flatten())).view_as(parameter)
    return drawn * parameter.double().square().mean().sqrt()


def unshiftable(model: object) -> str | None:
    """Why the input of a model can't be shifted without changing its function; None if it can."""
    if not isinstance(model, Classifier):
        return f"{type(model).__name__} reads its embeddings elsewhere than in one first layer"
    if isinstance(model.encoder, CNN):
        return "a convolution sees zeros beyond the ends of a text, which are no words and don't move with them"
    if isinstance(model.encoder, Identity):
        return "without an encoder there is no first layer that could take the shift back"
    return None


@contextmanager
def shift_weights(model: object, seed: int) -> Iterator[None]:
    """Inside, the model's function of a text is written in other coordinates (Kindermans et al. 2017, section 2).

    e'_w = e_w + m for every word w, b' = b − W m in the first layer, so that W e' + b' = W e + b. The shift m has the
    size of an embedding. What is zero in one model is not zero in the other: a method that starts from a zero embedding
    tells of the coordinates, not of the function.
    """
    if (reason := unshiftable(model)) is not None:
        raise UsageError(f"the input can't be shifted: {reason}")
    assert isinstance(model, Classifier)
    with restore_after(model):
        with torch.no_grad():
            table = model.embedding.weight.double()
            m = normal(seed, stable_seed("shifted"), places(table)) * table[PAD + 1 :].square().mean().sqrt()
            model.embedding.weight[PAD + 1 :] = (table[PAD + 1 :] + m).to(model.embedding.weight.dtype)
            for weight, bias in _first_layer(model.encoder):
                bias.copy_(bias.double() - weight.double() @ m)
        yield


def _first_layer(encoder: nn.Module) -> list[tuple[Tensor, Tensor]]:
    """Weights and biases that the embeddings meet first: one linear layer, or one per direction."""
    named = dict(encoder.named_parameters())
    pairs = [(name, name.replace("weight", "bias")) for name in named if "weight_ih" in name or name == "linear.weight"]
    assert pairs, type(encoder)
    return [(named[weight], named[bias]) for weight, bias in pairs]
