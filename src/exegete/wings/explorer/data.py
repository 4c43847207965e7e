"""Data: the test texts of a run and its words, page by page, from parquet that a worker wrote once; no torch is here.

A table is scanned lazily, and in a thread: a question about 100,000 texts stops nobody else's.
"""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from exegete.plugins import ExegeteError, Reply, UsageError, Warm, digest_of, read_json
from exegete.wings.explorer.messages import RunTexts, RunWords
from exegete.wings.explorer.queue import Room
from exegete.wings.explorer.replies import ServedCell

KEEP = "exegete.wings.explorer.run_texts:prepare_run"
DEFAULT = Path("runs", "audit")  # as in `answers.trust`, which imports torch; so are these names of files
MADE, STUDY, REPORT, WRITTEN = "manifest.json", "study.json", "report.html", "report.json"
DOWN = {"tau": False, "jsd": True, "confidence": False, "error": True, "n": True}  # what a person wants to see first
LIKED = {"count": pl.col("count"), "loved": pl.col("attention") - pl.col("other")}
LIKED |= {"needed": -LIKED["loved"]}


def run_of(source: str | None) -> Path | None:
    """The run folder that a word of the command line stands for; None: it is a model alone."""
    if source is None:
        return DEFAULT if (DEFAULT / MADE).is_file() else None
    folder = Path(source)
    return folder if any((folder / name).is_file() for name in (MADE, STUDY)) else None


class Data:
    """What a run says of its texts; it is read when somebody asks, and every part of it once."""

    def __init__(self, run: Path) -> None:
        self.run, self.room = run, Room()
        self._kept: dict[tuple[str, int], asyncio.Future[Reply]] = {}
        self._worker: Warm | None = None
        self._place: TemporaryDirectory[str] | None = None

    async def about(self, number: int) -> Reply:
        """The run, its models, and whether there is a report of it."""
        found = await self._once("about")
        return found | {"run": number, "report": self.page is not None}

    async def card(self, number: int) -> Reply:
        """The scorecard, as the report has it."""
        return await self._once("card") | {"run": number, "report": self.page is not None}

    async def texts(self, asked: RunTexts) -> Reply:
        """A page of texts."""
        with self.room.place():
            found = await self._once("texts", asked.cell)
            cell = ServedCell.model_validate(found["cell"])
            return await asyncio.to_thread(page_of_texts, Path(found["texts"]), asked, cell)

    async def words(self, asked: RunWords) -> Reply:
        """Words over all texts that both scored."""
        with self.room.place():
            found = await self._once("texts", asked.cell)
            cell = ServedCell.model_validate(found["cell"])
            if cell.method is None:
                raise UsageError(cell.said)
            return await asyncio.to_thread(frequent_words, Path(found["words"]), asked, cell)

    @property
    def page(self) -> Path | None:
        """The run's report, if it is there as it was written: a file that somebody changed is not shown."""
        page, written = self.run / REPORT, self.run / WRITTEN
        if not page.is_file() or not written.is_file():
            return None
        try:
            kept = read_json(written, "report").get("page")
        except ExegeteError:  # damaged: nobody can say that the page is as it was
            return None
        return page if kept == digest_of(page) else None

    def close(self) -> None:
        """Let the worker go, and what it wrote."""
        if self._worker is not None:
            self._worker.close()
        if self._place is not None:
            self._place.cleanup()

    async def _once(self, name: str, cell: int = 0) -> Reply:
        """One answer for all who ask; what went wrong may be right the next time, when a run is complete."""
        key = (name, cell)
        if key not in self._kept or (self._kept[key].done() and self._kept[key].exception() is not None):
            self._kept[key] = asyncio.ensure_future(self._ask(name, cell))
        return await asyncio.shield(self._kept[key])

    async def _ask(self, name: str, cell: int) -> Reply:
        if self._worker is None or (self._worker.made.done() and self._worker.made.exception() is not None):
            self._place = self._place or TemporaryDirectory(prefix="exegete-")
            self._worker = Warm(KEEP, str(self.run), self._place.name)
        await asyncio.wrap_future(self._worker.made)
        return await asyncio.wrap_future(self._worker.ask(name, {"cell": cell})[1])


def page_of_texts(path: Path, asked: RunTexts, cell: ServedCell) -> Reply:
    """The texts that match, sorted, from `first` on; those without the number that they are sorted by come last."""
    found = pl.scan_parquet(path, glob=False)
    for word in asked.search.lower().split():
        padded = " " + pl.col("text").str.to_lowercase() + " "
        found = found.filter(padded.str.contains(f" {word} ", literal=True))
    if asked.only != "all":
        found = found.filter(pl.col("wrong") == (asked.only == "wrong"))
    down = DOWN[asked.sort] != asked.turned
    sorted_ = found.sort(asked.sort, "example", descending=[down, False], nulls_last=True, maintain_order=True)
    total, rows = pl.collect_all([found.select(pl.len()), sorted_.slice(asked.first, asked.count)])
    return {"cell": cell.model_dump(), "total": total.item(), "first": asked.first, "rows": rows.to_dicts()}


def frequent_words(path: Path, asked: RunWords, cell: ServedCell) -> Reply:
    """The words that occur often enough: the most frequent, or those that one of the two likes more than the other."""
    found = pl.scan_parquet(path, glob=False).filter(pl.col("count") >= asked.least)
    rows = found.sort(LIKED[asked.order], pl.col("word"), descending=[True, False]).head(asked.count)
    total, listed = pl.collect_all([found.select(pl.len()), rows])
    return {"cell": cell.model_dump(), "total": total.item(), "rows": listed.to_dicts()}
