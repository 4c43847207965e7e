"""Explanation: what every method says of one prediction, how far they agree, and whether attention may be read here."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

from exegete.base.errors import UsageError
from exegete.base.files import write_json, write_text
from exegete.explanations.compare import Agreement
from exegete.explanations.verdict import Reading
from exegete.explanations.vouch import Trust
from exegete.page.heatmap import HeatMap

Unit = Literal["word", "sentence"]


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
    of: str  # its logit or its probability
    methods: tuple[Method, ...]  # most trusted first
    refused: dict[str, str]  # methods that are not for this model, and why
    agreement: Agreement
    reading: Reading | None  # None without attention among the methods
    trust: Trust
    notes: tuple[str, ...] = ()

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
        return self.frame.to_pandas()

    def to_json(self, by: Unit = "word") -> dict[str, Any]:
        """For machines; what is undefined is null. By sentence, the sums of their words' scores come too."""
        reading = self.reading
        return {
            **{name: getattr(self, name) for name in ("text", "model", "prediction", "probabilities", "target", "of")},
            "words": list(self.words),
            "unknown": list(self.unknown),
            "methods": [asdict(method) for method in self.methods],
            "refused": self.refused,
            "agreement": asdict(self.agreement),
            "reading": None if reading is None else asdict(reading) | {"sentences": list(reading.sentences)},
            "trust": {"run": None if self.trust.run is None else str(self.trust.run), "sentence": self.trust.sentence},
            "notes": list(self.notes),
            **({} if by == "word" else {"sentences": self._summed()}),
        }

    def _summed(self) -> list[dict[str, Any]]:
        drawn = self.heatmap("sentence")
        return [
            {
                "text": text,
                "scores": {m.name: row.values[place] for m, row in zip(self.methods, drawn.rows, strict=True)},
            }
            for place, text in enumerate(drawn.words)
        ]

    def save(self, path: str | Path) -> None:
        """Write .json, .html or .csv, by the suffix."""
        from exegete.page.heatmap_html import page
        from exegete.runs.tables import write_csv

        path = Path(path)
        if path.suffix == ".json":
            write_json(path, self.to_json())
        elif path.suffix in (".html", ".htm"):
            write_text(path, page(f"What explains “{self.prediction}”?", self.html()))
        elif path.suffix == ".csv":
            write_csv(path, self.frame)
        else:
            raise UsageError(f"an explanation is saved as .json, .html or .csv, not as '{path.name}'")

    def html(self, by: Unit = "word") -> Any:
        """The heat map as one block of HTML with its own style."""
        from exegete.page.heatmap_html import block

        return block(self.heatmap(by))

    def _repr_html_(self) -> str:
        return str(self.html())

    def heatmap(self, by: Unit = "word") -> HeatMap:
        """What is drawn, on a page or in a terminal."""
        from exegete.explanations.table import heatmap

        return heatmap(self, by)
