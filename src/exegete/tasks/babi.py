"""bAbI tasks 1 to 3: where somebody or something is, from 1, 2 or 3 of a story's sentences (Weston et al. 2015).

As Jain & Wallace (2019) read them: the statements so far are the passage, the question loses its question mark, case
stays. Every statement ends with a full stop of its own, so it is one sentence. The supporting facts are the rationale.
Classes are the answers that occur, six places; Jain & Wallace let their model choose from all words.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, Literal

from pydantic import Field, field_validator

from exegete.base.errors import ExegeteError, UsageError
from exegete.base.names import Spec
from exegete.tasks import babi_archive, folder
from exegete.tasks.example import Record, Task
from exegete.tasks.prepare import SourceRow, prepare
from exegete.tasks.settings import PairSource

SIZES = {"10k": "en-10k", "1k": "en"}  # how many training questions, and the archive's name for it
OFFICIAL = {"10k": 10_000, "1k": 1_000}


class BabiTask(PairSource):
    """Which of the tasks, and how many training questions it has."""

    number: int = Field(1, alias="task")  # 1, 2 or 3: as many facts does a question need
    size: Literal["10k", "1k"] = "10k"

    @field_validator("number")
    @classmethod
    def _known(cls, number: int) -> int:
        if number not in (1, 2, 3):
            raise UsageError(f"task 'babi': task is 1, 2 or 3, not {number}: the others are not about where things are")
        return number

    def task(self, spec: Spec) -> Task:
        """Read it from EXEGETE_DATA, else from the archive on the hub."""
        for name in (f"babi/{SIZES[self.size]}/qa{self.number}", f"babi/{SIZES[self.size]}-partial/qa{self.number}"):
            if folder.has(name):
                rows = {split: list(each) for split, each in folder.read_folder(name, make=statements).items()}
                notes = self._notes(len(rows["train"]) + len(rows.get("dev", ())))
                return prepare(str(spec), rows, self, f"{folder.VARIABLE}/{name}", notes)
        rows = {split: self._made(each) for split, each in self._online().items()}
        return prepare(str(spec), rows, self, f"hf:{babi_archive.HUB}", [babi_archive.NOTE])

    def _notes(self, found: int) -> list[str]:
        """A part of the training data is a harder task than the whole: say so."""
        whole = OFFICIAL[self.size]
        part = f"The training data are a part: {found:,} of the {whole:,} questions of train and dev together."
        return [part] if found < whole else []

    def _online(self) -> dict[str, list[dict[str, Any]]]:
        try:
            return babi_archive.read_archive(SIZES[self.size], self.number)
        except ExegeteError as error:
            raise ExegeteError(
                f"task 'babi' is not here: set {folder.VARIABLE} to a folder that holds "
                f"babi/{SIZES[self.size]}/qa{self.number}/train.jsonl.gz, dev.jsonl.gz and test.jsonl.gz (a line is "
                '{"passage": [statements], "question": …, "label": …, "supporting": [places]}), use '
                f"stories:facts={self.number}, or let the hub give it: {error}"
            ) from None

    def _made(self, lines: Sequence[Mapping[str, Any]]) -> list[SourceRow]:
        where = f"hf:{babi_archive.HUB}, question"
        return [SourceRow(row, statements(fields, f"{where} {row + 1}")) for row, fields in enumerate(lines)]


def statements(row: Mapping[str, Any], where: str) -> Record:
    """The record of a question: statements as sentences, supporting ones as spans of words."""
    told, asked, label = (row.get(name) for name in ("passage", "question", "label"))
    if not isinstance(told, list) or not all(isinstance(each, str) for each in told):
        raise ExegeteError(f"{where}: 'passage' is not a list of statements but {told!r:.40}: write one string each")
    if not isinstance(asked, str) or not isinstance(label, str):
        raise ExegeteError(f"{where}: 'question' and 'label' are not two strings: give every row both")
    sentences = [f"{each.strip().removesuffix('.').rstrip()} ." for each in told]
    ends = [0, *accumulate(len(sentence.split()) for sentence in sentences)]
    spans = tuple((ends[place], ends[place + 1]) for place in _places(row.get("supporting") or [], len(told), where))
    return Record((" ".join(sentences), asked.strip().removesuffix("?").rstrip()), label, spans)


def _places(value: Any, statements: int, where: str) -> list[int]:
    """Positions of statements."""
    if not isinstance(value, list) or not all(isinstance(place, int) and 0 <= place < statements for place in value):
        raise ExegeteError(
            f"{where}: 'supporting' is not a list of places among {statements} statements: {value!r:.40}"
        )
    return value
