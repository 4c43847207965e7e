"""Parallel texts: `multi30k` at EXEGETE_DATA, two columns of a hub data set, or two files that go line by line."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import model_validator

from exegete.base.errors import ExegeteError, UsageError, unknown
from exegete.base.names import Spec
from exegete.tasks import folder, hub
from exegete.tasks.example import Task
from exegete.tasks.text_files import open_text, read_jsonl
from exegete.tasks.translation import CorpusSettings, SentencePair, align_splits, pair, translation

ON_THE_HUB = "hf:bentrevett/multi30k:source=en,target=de"


class Multi30kTask(CorpusSettings):
    """Multi30k, English to German (Elliott et al. 2016): 29,000 captions of photographs, and four test sets."""

    test: Literal["test", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr"] = "test"  # test: 2016, Flickr

    def task(self, spec: Spec) -> Task:
        """Read it from the data folder, or say how to get it."""
        name = spec.name
        if not folder.has(name):
            raise ExegeteError(
                f"task '{name}' is not here: set {folder.VARIABLE} to a folder that holds {name}/train.jsonl.gz, "
                f'dev.jsonl.gz and test.jsonl.gz (a line is {{"source": …, "target": …}}), or use {ON_THE_HUB}'
            )
        files = {"train": "train", "dev": "dev", "test": self.test}
        home = (folder.data_folder() or Path()) / name
        pairs: dict[str, Iterable[SentencePair]] = {
            split: self._rows(home / f"{file}.jsonl.gz") for split, file in files.items()
        }
        return translation(str(spec), align_splits(pairs, self), self, f"{folder.VARIABLE}/{name}")

    def _rows(self, path: Path) -> Iterator[SentencePair]:
        for row, (line, fields) in enumerate(read_jsonl(path)):
            texts = [fields.get(side) for side in ("source", "target")]
            if not all(isinstance(text, str) for text in texts):
                raise ExegeteError(f"{path}, line {line}: 'source' or 'target' is missing or no text: write both")
            yield pair(row, str(texts[0]), str(texts[1]), self.split_seed)


class HubTranslation(CorpusSettings):
    """A data set of the hub with a column of texts for either language, or with one column `translation`."""

    source: str  # names of columns, or of the languages in the column `translation`
    target: str
    config: str | None = None  # which part of the data set, where it has several

    def task(self, spec: Spec) -> Task:
        """Load the data set that `hf:NAME` names."""
        name = spec.name.removeprefix("hf:")
        splits, notes = hub.splits_of(name, self.config)
        pairs: dict[str, Iterable[SentencePair]] = {split: self._rows(data, name) for split, data in splits.items()}
        return translation(str(spec), align_splits(pairs, self), self, f"hf:{name}", notes)

    def _rows(self, data: Any, name: str) -> Iterator[SentencePair]:
        both = (self.source, self.target)
        columns, within = list(data.features), self._within(data)
        for setting, column in zip(("source", "target"), both, strict=True):
            known = within or columns
            if column not in known:
                raise UsageError(f"{unknown(f'column of {name}', column, known)} (write {setting}=COLUMN)")
        for row, fields in enumerate(data.select_columns(["translation"] if within else [*both])):
            source, target = ((fields["translation"] if within else fields)[column] or "" for column in both)
            if not isinstance(source, str) or not isinstance(target, str):
                raise UsageError(f"columns '{self.source}' and '{self.target}' of {name} are no texts: name others")
            yield pair(row, source, target, self.split_seed)

    def _within(self, data: Any) -> list[str]:
        """The languages of the column `translation`, as many data sets have it; none where columns are named."""
        if self.source in data.features or "translation" not in data.features:
            return []
        feature = data.features["translation"]
        return list(getattr(feature, "languages", None) or feature)


class ParallelTask(CorpusSettings):
    """Two text files that translate each other line by line, and further ones for dev and test.

    `parallel:train.en:target=train.de,dev_source=dev.en,dev_target=dev.de,test_source=…,test_target=…`
    """

    target: Path
    dev_source: Path | None = None
    dev_target: Path | None = None
    test_source: Path | None = None
    test_target: Path | None = None

    @model_validator(mode="after")
    def _both_files_of_a_split(self) -> Self:
        for split, source, target in self._held_out:
            if (source is None) != (target is None):
                missing = f"{split}_target" if source else f"{split}_source"
                raise UsageError(f"{split} needs both of its files: give {missing}=FILE too")
        return self

    @property
    def _held_out(self) -> tuple[tuple[str, Path | None, Path | None], ...]:
        return ("dev", self.dev_source, self.dev_target), ("test", self.test_source, self.test_target)

    def task(self, spec: Spec) -> Task:
        """Read the files that are named."""
        files = {"train": (Path(spec.name.removeprefix("parallel:")), self.target)}
        files |= {split: (source, target) for split, source, target in self._held_out if source and target}
        pairs: dict[str, Iterable[SentencePair]] = {split: self._rows(*found) for split, found in files.items()}
        origin = ", ".join(path.name for found in files.values() for path in found)
        return translation(str(spec), align_splits(pairs, self), self, origin)

    def _rows(self, source: Path, target: Path) -> list[SentencePair]:
        ours, theirs = _lines(source.expanduser()), _lines(target.expanduser())
        if len(ours) != len(theirs):
            longer, shorter = sorted([(len(ours), source), (len(theirs), target)], reverse=True, key=lambda x: x[0])
            raise ExegeteError(
                f"{longer[1]} has {longer[0]:,} lines and {shorter[1]} has {shorter[0]:,}: line {shorter[0] + 1:,} of "
                f"{longer[1].name} has no partner; give both files the same lines"
            )
        return [pair(row, *texts, seed=self.split_seed) for row, texts in enumerate(zip(ours, theirs, strict=True))]


def _lines(path: Path) -> list[str]:
    """Lines end at line feeds only: other marks of a line's end may stand within a sentence."""
    with open_text(path, newline="\n") as file:
        return [line.strip() for line in file]
