"""Translations: what a translator writes for a text, and one word of it as a class, which all methods can explain.

At step k the translator has read the source and written k − 1 words, and chooses the next one from its vocabulary
(Vashishth et al. 2019, section 4): that choice is explained, by words of the source.
"""

from dataclasses import replace
from functools import lru_cache, partial

import torch

from exegete.base.errors import ExegeteError, UsageError
from exegete.base.noise import stable_seed
from exegete.models.capabilities import Writing
from exegete.models.ours.generation import greedy
from exegete.tasks.catalogue import load_task
from exegete.tasks.example import Example
from exegete.tasks.pieces import MARK, Pieces, join_pieces, whole_words, word_of_piece
from exegete.tasks.translation import CutText
from exegete.tasks.vocabulary import END, SPECIAL
from exegete.training.checkpoint import Checkpoint

THE_END = SPECIAL[END]


def translate(checkpoint: Checkpoint, text: str) -> tuple[str, ...]:
    """What the model writes, piece by piece, always the likeliest next; the end symbol last, unless it was cut."""
    model = checkpoint.model
    assert isinstance(model, Writing)
    with torch.no_grad():
        found = greedy(model, model.collate([_example(read_source(checkpoint, text), ())]))
    return (*(model.words[row] for row in found.rows[0]), *([THE_END] if bool(found.ended[0]) else []))


def read_source(checkpoint: Checkpoint, text: str) -> tuple[str, ...]:
    """The source in the pieces of the model's task."""
    cut: CutText = partial(whole_words, lower=checkpoint.lower)
    if checkpoint.tokenizer == "pieces":
        cut = _pieces(checkpoint.task, checkpoint.data_hash).cut
    return cut(text)


@lru_cache(maxsize=4)
def _pieces(task: str, data: str) -> Pieces:
    """The pieces that a task learnt: the same texts give the same ones, and other texts are refused."""
    found = load_task(task)
    if found.hash != data:
        raise ExegeteError(f"the texts of {task} are not those that this model was trained on: its pieces are unknown")
    return Pieces(found.pieces, found.lower)


def at_step(checkpoint: Checkpoint, text: str, output: tuple[str, ...], step: int) -> tuple[Checkpoint, Example]:
    """The model as a classifier of the next word, and the source with what was written before it."""
    if not 1 <= step <= len(output):
        raise UsageError(f"there is no output word {step}: “{spell_output(output)}” has {len(output)}, counted from 1")
    model = checkpoint.model
    assert isinstance(model, Writing)
    return replace(checkpoint, model=model.as_classes()), _example(read_source(checkpoint, text), output[: step - 1])


def spell_output(pieces: tuple[str, ...]) -> str:
    """Output as a person reads it.

    >>> spell_output(("▁low", "er", "▁house", "</s>"))
    'lower house'
    """
    return join_pieces(piece for piece in pieces if piece != THE_END)


def piece_named(word: str, words: tuple[str, ...]) -> str:
    """A word as a person writes it, as the model's vocabulary has it; the word itself where it doesn't.

    >>> piece_named("house", ("</s>", "▁house")), piece_named("the end", ("</s>",))
    ('▁house', '</s>')
    """
    return next((each for each in (word, MARK + word, {"the end": THE_END}.get(word)) if each in words), word)


def piece_owners(pieces: tuple[str, ...]) -> tuple[int, ...]:
    """By piece, the word that it belongs to."""
    return tuple(word_of_piece(pieces))


def _example(source: tuple[str, ...], before: tuple[str, ...]) -> Example:
    return Example(stable_seed(source, before), (source, before), 0)
