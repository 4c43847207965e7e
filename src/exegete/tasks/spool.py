"""Spool: the task of a file that is too large to be held: the steps of `prepare`, with its texts on disk.

Every row is read, cut into words and written once, with its words as numbers; what splits, filters and limits need of
it (a place, lengths, a class) is 96 bytes in arrays. Of a file that takes long, rows are cut on all cores. The task is
the one that `prepare` would make, its hash included. It is kept in a cache, named by what is in the files and by the
code that reads them, so that workers read it once together; the folder may be removed at any time.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from exegete.base.files import read_json, whole_folder, write_json
from exegete.base.lease import hold_lease
from exegete.base.names import Spec
from exegete.base.parallel_map import map_in_parallel
from exegete.base.processes import hands
from exegete.base.progress import tell
from exegete.base.source import digest_of
from exegete.tasks.class_names import name_classes, plain_names, sort_classes
from exegete.tasks.cut_rows import ROWS, CutRow, RowGroup, cut_rows, groups
from exegete.tasks.data_check import DataCheck, check_data, refuse_unlearnable
from exegete.tasks.disk import INDEX, Stored
from exegete.tasks.example import Task, unlearnt
from exegete.tasks.partition import first_by_place, number_classes, with_all_splits, within_lengths
from exegete.tasks.prepare import SourceRow, SplitCounts
from exegete.tasks.settings import TaskSettings
from exegete.tasks.splits import SPLITS, left_out
from exegete.tasks.text_files import is_gzip
from exegete.tasks.word_numbers import KEPT, NUMBERS, SENTENCES, WORDS

MB = 1_000_000
LARGE = 4 * MB  # bytes of text that are spooled: words in memory take some twenty times as many
PACKED = 4  # bytes of text that a byte of a compressed file stands for, about
SPEED = 4 * MB  # bytes of text that are read in a second, as measured on a core of a small server
FED = 20 * MB  # the same, however many cores there are: one process hands the rows to all others
CACHE = "EXEGETE_CACHE"
TEXTS, FACTS = "texts.tsv", "task.json"
SEEN = "seen"  # what a hash is of, until it is known
WRITTEN = (TEXTS, SEEN, NUMBERS, SENTENCES)
SHARED = 20 * MB  # bytes of text that are cut on several cores: fewer are done before other processes begin
RowReader = Callable[[Counter[str]], Iterator[tuple[str, SourceRow]]]  # rows with their splits; others are counted


def is_large(files: Iterable[Path]) -> bool:
    """Whether the texts of some files are better not held in memory."""
    return text_size(files) > LARGE


def text_size(files: Iterable[Path]) -> int:
    """Bytes of text in some files, about."""
    sizes = ((path, path.stat().st_size) for path in files if path.is_file())
    return sum(size * (PACKED if is_gzip(path) or path.suffix == ".parquet" else 1) for path, size in sizes)


def cache() -> Path:
    """Where prepared texts are kept: EXEGETE_CACHE, else the user's own folder for such things."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(os.environ.get(CACHE) or Path(home) / "exegete")


@dataclass(frozen=True)
class SpooledTask(Task):
    """A task whose texts are on disk; its hash was computed when they were written."""

    known_hash: str = ""

    @cached_property
    def hash(self) -> str:
        """The fingerprint that the same task in memory has."""
        return self.known_hash


def spool_task(spec: Spec, files: Mapping[str, Path], settings: TaskSettings, rows: RowReader, unlabelled: str) -> Task:
    """The task of large files, written to the cache unless it is there."""
    folder = spool_folder(spec, files)
    if not (folder / FACTS).is_file():
        with hold_lease(folder.with_name(f".{folder.name}.lock")):
            if not (folder / FACTS).is_file():
                with whole_folder(folder, FACTS) as beside:
                    _Spool(beside, settings).write(spec, rows, unlabelled, text_size(files.values()))
    return _opened(folder, str(spec), settings, ", ".join(path.name for path in files.values()))


def spool_folder(spec: Spec, files: Mapping[str, Path]) -> Path:
    """Where the texts of files are kept: named by what is in the files and by the code that reads them."""
    code = digest_of(*sorted(Path(__file__).parent.glob("*.py")))
    name = sha256(f"{spec} {list(files)} {digest_of(*files.values())} {code}".encode()).hexdigest()[:16]
    return cache() / "tasks" / name


def announcement(spec: Spec, files: Mapping[str, Path]) -> str:
    """How large files are and about how long it takes to read them; nothing where they are small or were read."""
    if not is_large(files.values()) or (spool_folder(spec, files) / FACTS).is_file():
        return ""
    size = text_size(files.values())
    named, seconds = ", ".join(path.name for path in files.values()), size / min(FED, SPEED * _hands(size))
    lasts = f"{seconds:.0f} seconds" if seconds < 90 else f"{seconds / 60:.0f} minutes"
    return f"reading {named} ({size / 1e6:,.0f} MB of text) takes about {lasts}, once: it is kept in {cache()}"


def _hands(size: int) -> int:
    """Processes that cut so many bytes of text into words."""
    return hands() if size > SHARED else 1


def _opened(folder: Path, name: str, settings: TaskSettings, origin: str) -> Task:
    facts: dict[str, Any] = read_json(folder / FACTS, "prepared task")
    return SpooledTask(
        name=name,
        labels=name_classes(tuple(facts["written"]), name),
        written=tuple(facts["written"]),
        splits={s: Stored(folder / TEXTS, np.load(folder / f"{s}.npy"), settings.explained) for s in SPLITS},
        origin=origin,
        notes=tuple(facts["notes"]),
        min_df=settings.min_df,
        lower=settings.lower,
        tokenizer=settings.tokenizer,
        kind=facts["kind"],
        check=DataCheck.of(facts["check"]),
        known_hash=facts["hash"],
    )


@dataclass
class _Split:
    """What is known of one split of a source, as it is read."""

    seen: SplitCounts = field(default_factory=SplitCounts)
    parts: list[NDArray[Any]] = field(default_factory=list)

    def index(self) -> NDArray[Any]:
        return np.concatenate([np.empty(0, ROWS), *self.parts])


class _Spool:
    """The writing of one task into a folder."""

    def __init__(self, folder: Path, settings: TaskSettings) -> None:
        self.folder, self.settings = folder, settings
        self.found: dict[str, _Split] = {}
        self.classes: dict[str, int] = {}
        self.words: defaultdict[str, int] = defaultdict()  # numbers of words since the list began anew
        self.words.default_factory = self.words.__len__
        self.listed = 0  # words before these

    def write(self, spec: Spec, rows: RowReader, unlabelled: str, size: int) -> None:
        """Texts, an index of each split, and last what else there is to know."""
        missing: Counter[str] = Counter()
        read = 0
        with ExitStack() as opened:
            files = [opened.enter_context((self.folder / name).open("wb")) for name in WRITTEN]
            work = map_in_parallel(partial(cut_rows, self.settings), groups(rows(missing)), _hands(size))
            for group, done in opened.enter_context(closing(work)):
                self._add(files, group, done)
                read += len(done.lines)
                tell("reading, MB", min(read, size) // MB, max(1, size // MB))
            self._list_words()
        notes = [left_out(count, "row", split, unlabelled) for split, count in missing.items()]
        for split, found in self.found.items():
            found.seen.tell(split, self.settings, notes)
        name, columns = str(spec), {split: each.index() for split, each in self.found.items()}
        if count := sum(map(len, columns.values())):
            refuse_unlearnable(name, sort_classes(plain_names(self.classes).values()), count)
        whole = with_all_splits(name, columns, notes, self.settings.split_column)
        kept = {}
        for split in SPLITS:
            fitting = within_lengths(split, whole[split], self.settings.lengths, notes)
            kept[split] = first_by_place(fitting, self.settings.limits[split])
        labels, _ = number_classes(kept, self.classes)
        for split, each in kept.items():
            new = ~np.isin(each["label"], kept["train"]["label"])
            if new.any():
                raise unlearnt(labels[each["label"][new.argmax()]], split)
        check = check_data(kept, name_classes(labels, name))
        for split, index in kept.items():
            np.save(self.folder / f"{split}.npy", index[list(INDEX.names or ())].astype(INDEX))
        kind = "pair" if any(found.seen.pairs for found in self.found.values()) else "classification"
        facts = {"written": labels, "notes": notes, "kind": kind, "check": check.facts}
        write_json(self.folder / FACTS, facts | {"hash": self._hash(labels, kept)})

    def _hash(self, labels: Sequence[str], kept: Mapping[str, NDArray[Any]]) -> str:
        """As `Task.hash`, of what was written of every example while it was read."""
        digest = sha256(repr((tuple(labels), self.settings.min_df)).encode())
        more = f", (), {self.settings.explained}" if self.settings.explained else ""
        done, total = 0, sum(map(len, kept.values()))
        with (self.folder / SEEN).open("rb") as file:
            for split in sorted(kept):
                digest.update(split.encode())
                for row in kept[split][["id", "label", "seen", "seen_size"]]:
                    id_, label, start, size = row.item()
                    texts, marked, written = os.pread(file.fileno(), size, start).split(b"\t")
                    digest.update(b"(%d, %b, %d, %b%b%b)" % (id_, texts, label, marked, more.encode(), written))
                done += len(kept[split])
                tell("hashing, texts", done, total)
        (self.folder / SEEN).unlink()
        return digest.hexdigest()[:16]

    def _add(self, files: Sequence[BinaryIO], group: RowGroup, done: CutRow) -> None:
        """What was made of some rows, written behind what is there, and their places kept."""
        for (split, row), lengths in zip(group, done.lengths, strict=True):
            self.found.setdefault(split, _Split()).seen.add(row.record.texts, lengths)
        codes = [self.classes.setdefault(label, len(self.classes)) for label in done.classes]
        done.rows["label"] = np.array(codes, np.int64)[done.rows["label"]]
        texts, seen, numbers, sentences = files
        for column, place in (("offset", texts.tell()), ("seen", seen.tell()), ("numbers", numbers.tell() // 4)):
            done.rows[column] += place
        texts.write(done.lines)
        seen.write(done.seen)
        number = np.array(list(map(self.words.__getitem__, done.words)), np.int32) + np.int32(self.listed)
        numbers.write(number[done.numbers].tobytes())
        sentences.write(done.sentences.tobytes())
        for code, split in enumerate(done.splits):
            self.found[split].parts.append(done.rows[done.split == code])
        if len(self.words) > KEPT:
            self._list_words()

    def _list_words(self) -> None:
        """Write down the words that have numbers, and begin anew."""
        with (self.folder / WORDS).open("a", encoding="utf8", newline="\n") as file:
            file.writelines(f"{word}\n" for word in self.words)
        self.listed += len(self.words)
        self.words.clear()
