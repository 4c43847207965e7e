"""Questions: what is asked of a text, in a person's words, checked before anything is computed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from exegete.answers.explanation import Unit
from exegete.answers.translations import piece_named
from exegete.base.errors import ExegeteError, UsageError, unknown
from exegete.base.names import parse
from exegete.importance.catalogue import IMPORTANCES, computable
from exegete.models.capabilities import Continuing, Paired, Writing
from exegete.tasks.records import whole_characters
from exegete.training.checkpoint import Checkpoint

Of = Literal["logit", "probability"]
TextInput = str | tuple[str, str]  # a text, or a passage and its question


class Contrast(NamedTuple):
    """Why this class and not that one?"""

    target: str | None  # the predicted one unless given
    against: str


class Word(NamedTuple):
    """One word of a translator's output, counted from 1: why this one, or another in its place, and not a third?"""

    step: int = 1
    target: str | None = None  # the word that was written unless given
    against: str | None = None  # its foil


Wanted = str | Contrast | Word | None  # what is explained: a class, or a word; the predicted one unless given
SETTINGS = {"gradient": "norm=l2", "leave_one_out": "of={of}"}  # of methods that nobody has set


def read_texts(path: Path) -> list[str]:
    """The texts of a file, one per line; empty lines are no texts."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        raise ExegeteError(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ExegeteError(
            f"{path} can't be read as text ({error}): give a UTF-8 file with one text per line"
        ) from None
    texts = [line for line in lines if line.strip()]
    if not texts:
        raise UsageError(f"{path} has no text: write one per line")
    return texts


def quantity(of: str) -> Of:
    """What is explained, if there is such a thing."""
    if of not in get_args(Of):
        raise unknown("quantity", of, get_args(Of))
    return of  # type: ignore[return-value]


def unit(by: str) -> Unit:
    """What is shaded, if there is such a thing."""
    if by not in get_args(Unit):
        raise unknown("unit", by, get_args(Unit))
    return by  # type: ignore[return-value]


def methods_in(written: str) -> list[str]:
    """Methods separated by commas, which separate settings too: `key=value` belongs to the method before it.

    >>> methods_in("lrp,smoothgrad:samples=20,seed=1,attention")
    ['lrp', 'smoothgrad:samples=20,seed=1', 'attention']
    """
    found: list[str] = []
    for piece in filter(None, map(str.strip, written.split(","))):
        if found and "=" in piece and ":" not in piece.partition("=")[0]:
            found[-1] += f",{piece}"
        else:
            found.append(piece)
    return found


def methods_of(asked: Sequence[str] | None, of: str) -> tuple[str, ...]:
    """The methods as written, or all; a wrong name is found before a model is loaded."""
    quantity(of)
    if isinstance(asked, str):
        asked = methods_in(asked)
    if asked is None:
        asked = [f"{name}:{SETTINGS[name].format(of=of)}" if name in SETTINGS else name for name in computable()]
    if not asked:
        raise UsageError("name at least one method, or none of them to have all")
    for name in asked:
        IMPORTANCES.make(name)
    return tuple(dict.fromkeys(str(parse(name)) for name in asked))


def step_of(target: Wanted, checkpoint: Checkpoint) -> int:
    """Which word of the output is explained, counted from 1."""
    step = target.step if isinstance(target, Word) else 1
    if step != 1 and not isinstance(checkpoint.model, Writing):
        raise UsageError("this model predicts one class of a text, and writes no words: leave the step out")
    return step


def classes_of(target: Wanted, checkpoint: Checkpoint) -> tuple[str | None, str | None]:
    """The class to explain, and the one that it is set against."""
    asked = target[-2:] if isinstance(target, Contrast | Word) else (target, None)
    label, against = (_class_of(each, checkpoint) for each in asked)
    if label is not None and label == against:
        raise UsageError(f"'{label}' can't be set against itself: name another class as contrast")
    return label, against


def _class_of(target: str | None, checkpoint: Checkpoint) -> str | None:
    """A class, if the model has it."""
    model = checkpoint.model
    if target is not None and isinstance(model, Writing):
        if (word := piece_named(target, model.words)) not in model.words:
            raise UsageError(f"this model never writes '{target}': choose one of its {len(model.words):,} words")
        return word
    if isinstance(model, Continuing):  # any text may come next
        return target
    labels = model.labels
    if target is not None and target not in labels:
        target = target.removeprefix("class ")  # as explanations call it
    if target is not None and target not in labels:
        raise UsageError(f"this model has no class '{target}': choose from {', '.join(labels)}")
    return target


def text_parts(text: TextInput) -> tuple[str, ...]:
    """A text, or a passage and its question, none of them empty."""
    parts: tuple[str, ...] = (text,) if isinstance(text, str) else text
    if not isinstance(parts, tuple) or len(parts) not in (1, 2) or not all(isinstance(part, str) for part in parts):
        raise UsageError("a text is a string, or a pair of strings, (passage, question): for several, call explain_all")
    if not all(part.strip() for part in parts):
        raise UsageError(
            f"the {'text' if len(parts) == 1 else 'passage or the question'} is empty: give at least one word"
        )
    return tuple(map(whole_characters, parts))


def check_parts(parts: tuple[str, ...], checkpoint: Checkpoint) -> None:
    """A model of pairs needs a question, another has no use for one."""
    model = checkpoint.model
    pair = isinstance(model, Paired) and not isinstance(model, Writing)
    if pair and len(parts) == 1:
        raise UsageError("this model reads two texts: give the question (or hypothesis) too, with --question")
    if len(parts) == 2 and not pair:
        raise UsageError("this model reads one text: leave the question out")
