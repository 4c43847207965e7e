"""Explanation: what every method says of one prediction, how far they agree, and whether attention may be read here."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
import torch

from exegete.answers.comparison import MethodAgreement
from exegete.answers.text_verdict import TextVerdict, two_places
from exegete.answers.translations import THE_END, spell_output
from exegete.answers.trust import Trust
from exegete.base.errors import UsageError
from exegete.base.extras import to_pandas
from exegete.base.files import write_json, write_text
from exegete.base.names import parse
from exegete.importance.aggregation import aggregate
from exegete.report.heatmap import HeatMap, HeatRow, Matrix
from exegete.report.labels import importance_labels
from exegete.tasks.pieces import MARK, join_pieces

if TYPE_CHECKING:
    from exegete.answers.difference import Difference

Unit = Literal["word", "piece", "sentence"]
SUMMED = {"sentence": "sentences", "word": "whole_words"}  # where JSON has them


@dataclass(frozen=True)
class Method:
    """One method's scores of the words, and what can be said of them."""

    name: str  # as written, with settings
    scores: tuple[float, ...]  # by word
    signed: bool  # for or against the class, or only how much a word matters
    error: float | None  # completeness or conservation error, where the method has one
    forward: int | None  # passes through the model
    backward: int | None
    milliseconds: float  # here, with what other methods had computed already
    complaints: tuple[str, ...]  # what is wrong with the scores, in sentences
    comprehensiveness: float  # on this text: mean loss of the class's probability with the first words deleted
    flip: int | None  # words deleted, in this method's order, when the decision changes; None: never
    vouched: float | None = None  # comprehensiveness over the test texts of a run


@dataclass(frozen=True)
class Explanation:
    """One text, one prediction, all methods side by side."""

    text: str
    model: str  # what it is, and on what it was trained
    words: tuple[str, ...]  # as the model reads them
    unknown: tuple[int, ...]  # places of words that the model doesn't know
    sentences: tuple[int, ...]  # by word: the sentence that it belongs to
    prediction: str
    probabilities: dict[str, float]
    target: str  # the class that is explained
    contrast: str | None  # the class that it is set against, if any
    of: str  # logit or probability
    methods: tuple[Method, ...]  # most trusted first
    refused: dict[str, str]  # methods that are not for this model, and why
    agreement: MethodAgreement
    reading: TextVerdict | None  # None without attention among the methods
    trust: Trust
    notes: tuple[str, ...] = ()
    named: bool = False  # whether the methods were asked for by name; else they are all that there are
    written: tuple[str, ...] = ()  # of a translator: its output in pieces
    step: int | None = None  # and which of them is explained, counted from 1
    pieces: tuple[int, ...] = ()  # where `words` are pieces, the word that each belongs to
    next_word: str | None = None  # of a language model: the likeliest, whose first piece is predicted

    def __getitem__(self, name: str) -> Method:
        """A method by its name, with or without settings."""
        found = [m for m in self.methods if name in (m.name, m.name.partition(":")[0])]
        if not found:
            raise KeyError(name)
        return found[0]

    @property
    def frame(self) -> pl.DataFrame:
        """One row per word and method."""
        return pl.DataFrame(
            [
                {"position": place, "word": word, "method": method.name, "score": method.scores[place]}
                for method in self.methods
                for place, word in enumerate(self.words)
            ]
        )

    def to_pandas(self) -> Any:
        """The frame for pandas (extra `pandas`)."""
        return to_pandas(self.frame)

    def to_json(self, by: Unit = "word") -> dict[str, Any]:
        """For machines; what is undefined is null. By sentence, the sums of their words' scores come too."""
        reading = self.reading
        return {
            **{name: getattr(self, name) for name in ("text", "model", "prediction", "probabilities")},
            **{name: getattr(self, name) for name in ("target", "contrast", "of")},
            "words": list(self.words),
            "unknown": list(self.unknown),
            "methods": [asdict(method) for method in self.methods],
            "refused": self.refused,
            "agreement": asdict(self.agreement),
            "reading": None if reading is None else asdict(reading) | {"sentences": list(reading.sentences)},
            "trust": {
                "run": None if self.trust.run is None else str(self.trust.run),
                "sentence": self.trust.sentence,
                "answer": self.trust.answer,
            },
            "notes": list(self.notes),
            **({} if self.next_word is None else {"next_word": self.next_word}),
            **({} if self.step is None else {"written": list(self.written), "step": self.step}),
            **(
                {} if _owners(self, by) is None else {f"{by}s" if by == "sentence" else "whole_words": self._summed(by)}
            ),
        }

    def _summed(self, by: Unit) -> list[dict[str, Any]]:
        drawn = self.heatmap(by)
        return [
            {
                "text": text,
                "scores": {m.name: row.values[place] for m, row in zip(self.methods, drawn.rows, strict=True)},
            }
            for place, text in enumerate(drawn.words)
        ]

    def save(self, path: str | Path) -> None:
        """Write .json, .html or .csv, by the suffix."""
        from exegete.report.markup import page_of_blocks
        from exegete.runs.tables import write_csv

        path = Path(path)
        if path.suffix == ".json":
            write_json(path, self.to_json())
        elif path.suffix in (".html", ".htm"):
            write_text(path, page_of_blocks(f"What explains “{self.prediction}”?", self.html()))
        elif path.suffix == ".csv":
            write_csv(path, self.frame)
        else:
            raise UsageError(f"an explanation is saved as .json, .html or .csv, not as '{path.name}'")

    def difference(self, second: "Explanation", by: Unit = "word") -> "Difference":
        """What a second text changes, explained by the same model for the same class: `target=first.target`."""
        from exegete.answers.difference import Difference

        return Difference(self, second, by)

    def html(self, by: Unit = "word", first: bool = True) -> Any:
        """The heat map as one block of HTML with its own style."""
        from exegete.report.markup import block

        return block(self.heatmap(by, first))

    def _repr_html_(self) -> str:
        return str(self.html())

    def heatmap(self, by: Unit = "word", first: bool = True) -> HeatMap:
        """What is drawn, on a page or in a terminal; what holds for every text of a model is said of the first one."""
        return heatmap(self, by, first)


SHOWN = 4  # classes whose probabilities are shown
CAPTION = (
    "How far the methods rank the words alike: Kendall’s τ-b on this text; of the scores where both are signed, of "
    "their sizes otherwise."
)


def heatmap(found: Explanation, by: Unit = "word", first: bool = True) -> HeatMap:
    """The map; scores of sentences, and of words that were read in pieces, are sums; all else stays as it was read."""
    vouched = bool(found.trust.comprehensiveness)
    whole = (owner := _owners(found, by)) is None
    return HeatMap(
        title=_title(found),
        words=found.words if owner is None else _joined(found, owner),
        rows=tuple(_row(found, method, by, vouched) for method in found.methods),
        toward=said_of(found, found.target),
        columns=("τ att.", *(("in run", "here") if vouched else ("compr.",)), "flip"),
        unknown=frozenset(found.unknown) if whole else frozenset(),
        notes=(*found.notes, *(_refusals(found) if first else ())),
        question="May attention be read here?",
        reading=_reading(found),
        small_print=_small_print(found, by),
        matrix=Matrix(_labels(found), found.agreement.tau, CAPTION) if len(found.methods) > 1 else None,
        unit=by,
    )


def _refusals(found: Explanation) -> list[str]:
    """Which methods are not for this model; why not, where somebody asked for them."""
    if found.named or not found.refused:
        return [f"{name} is left out: {why}" for name, why in found.refused.items()]
    labels = importance_labels(found.refused)
    return [f"not for this model: {', '.join(labels.values())} (asked for by name, each says why)"]


def _labels(found: Explanation) -> tuple[str, ...]:
    """The methods as people say them, in the order of the agreement."""
    labels = importance_labels(found.agreement.names)
    return tuple(labels[name] for name in found.agreement.names)


def _title(found: Explanation) -> str:
    ranked = sorted(found.probabilities.items(), key=lambda pair: -pair[1])[:SHOWN]
    said = partial(said_of, found)
    odds = ", ".join(f"{said(label)} {p:.3f}" for label, p in ranked)
    against = "" if found.contrast is None else f" minus that of {said(found.contrast)}"
    explained = f"the {found.of} of {said(found.target)}{against}"
    if found.next_word is not None:
        among = "of these two" if len(found.probabilities) == 2 and found.contrast else "of what comes next"
        return f"Next word: {piece_said(found.next_word)} (p {among}: {odds}). Explained: {explained}."
    if found.step is None:
        return f"Predicted: {class_said(found.prediction)} (p: {odds}). Explained: {explained}."
    return f"Written: “{spell_output(found.written)}”. Explained: {explained}, at step {found.step} (p: {odds})."


def said_of(found: Explanation, label: str) -> str:
    """A class of an explanation, for people."""
    return class_said(label) if found.next_word is None else piece_said(label)


def piece_said(piece: str) -> str:
    """What may come next in quotes, as it is written: its space and line breaks are part of it."""
    return "“" + piece.replace("\n", "\\n").replace("\t", "\\t") + "”"


def class_said(label: str) -> str:
    """A class that is only a number says that it is one; a word of a translator is the word."""
    if label in (THE_END, MARK):
        return "the end" if label == THE_END else "a space"
    return f"class {label}" if label.isdigit() else label.removeprefix(MARK)


def _owners(found: Explanation, by: Unit) -> tuple[int, ...] | None:
    """The sentence or word that every part belongs to; None where parts are shown as the model reads them."""
    if by == "piece" and not found.pieces:
        raise UsageError("this model reads words, not pieces: choose word or sentence")
    return found.sentences if by == "sentence" else (found.pieces or None) if by == "word" else None


def _joined(found: Explanation, owner: Sequence[int]) -> tuple[str, ...]:
    groups: list[list[str]] = [[] for _ in range(max(owner) + 1)]
    for word, place in zip(found.words, owner, strict=True):
        groups[place].append(word)
    return tuple(join_pieces(group) if found.pieces else " ".join(group) for group in groups)


def _summed(scores: Sequence[float], owner: Sequence[int] | None) -> tuple[float, ...]:
    """The sum of every sentence's or word's scores; scores as they are, where nobody owns them."""
    if owner is None:
        return tuple(scores)
    values, of = torch.tensor([scores], dtype=torch.float64), torch.tensor([owner])
    return tuple(aggregate(values, of, "sum")[0].tolist())


def _row(found: Explanation, method: Method, by: Unit, vouched: bool) -> HeatRow:
    run = ("–" if method.vouched is None else two_places(method.vouched),) if vouched else ()
    return HeatRow(
        name=importance_labels(each.name for each in found.methods)[method.name],
        values=_summed(method.scores, _owners(found, by)),
        signed=method.signed,
        numbers=(_with_attention(found, method), *run, two_places(method.comprehensiveness), _flip(method)),
        complaint=" ".join(method.complaints),
        main=parse(method.name).name == "attention",
    )


def _with_attention(found: Explanation, method: Method) -> str:
    names = found.agreement.names
    attention = next((name for name in names if name.partition(":")[0] == "attention"), None)
    if attention in (None, method.name):
        return ""
    value = found.agreement.tau[names.index(attention)][names.index(method.name)]
    return "–" if value is None else two_places(value)


def _flip(method: Method) -> str:
    return "–" if method.flip is None else str(method.flip)


def _reading(found: Explanation) -> tuple[str, ...]:
    """What a reader should take away: what the audit answered of this model, then what this text alone says."""
    answer = (found.trust.answer,) if found.trust.answer else ()
    if found.reading is None:
        return answer
    conclusion, *rests_on = found.reading.sentences
    alone = f"This text alone: {conclusion[0].lower()}{conclusion[1:]}" if answer else conclusion
    return (*answer, alone, *filter(None, [" ".join(rests_on)]))


def _small_print(found: Explanation, by: Unit) -> tuple[str, ...]:
    """Who vouches for the methods, and what the numbers beside the words are."""
    vouched = bool(found.trust.comprehensiveness)
    run, here = ("in run: mean comprehensiveness over the run's test texts. ", "here") if vouched else ("", "compr.")
    columns = (
        f"τ att.: Kendall's τ-b with attention. {run}{here}: comprehensiveness on this text, the mean loss of "
        f"p({said_of(found, found.target)}) with the first 1, 5, 10, 20 and 50 % of the words deleted. flip: words "
        "deleted when the decision changes (– never)."
    )
    part, owner = "piece" if found.pieces else "word", _owners(found, by) or ()
    sums = f"A {by}'s score is the sum of its {part}s' scores; all other numbers are by {part}."
    trust = " ".join(filter(None, (found.trust.sentence, found.trust.doubt)))
    return (f"Model: {found.model}. {trust}", columns, *([sums] if len(set(owner)) < len(owner) else []))
