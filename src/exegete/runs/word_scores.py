"""Word scores: what methods say of every word of a task's texts, as one tidy frame, without a run."""

from collections.abc import Sequence

import polars as pl

from exegete.base.errors import UsageError
from exegete.base.progress import Progress, silent
from exegete.base.threads import one_thread
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import Importance, refusal
from exegete.importance.given import absence, for_texts, tokens_of
from exegete.runs.objects import AnyModel, AnyTask, checkpoint_for, task_for
from exegete.runs.shards import Shards, score_frames
from exegete.tasks.example import Task
from exegete.tasks.selection import choose_texts
from exegete.training.checkpoint import Checkpoint


def word_score_frame(
    model: AnyModel,
    task: AnyTask,
    methods: Sequence[str],
    split: str = "test",
    texts: int | None = None,
    progress: Progress = silent,
) -> pl.DataFrame:
    """Example, token, word, method, score: a row for every word and method."""
    if not methods or texts == 0:
        raise UsageError("name at least one method, and ask about one text or more")
    built: dict[str, Importance] = {name: IMPORTANCES.make(name) for name in methods}
    read = task_for(model, task)
    examples = choose_texts(read.split(split), texts)
    with one_thread():
        found = checkpoint_for(model, read)
        _allowed(built, found, read, split)
        ready = {name: for_texts(importance, read, split, examples) for name, importance in built.items()}
        frames = [score_frames(found.classifier, ready, shard, progress) for shard in Shards(examples)]
    rows = [frame.select("example", "scores", method=pl.lit(name)) for part in frames for name, frame in part.items()]
    words = tokens_of(read, [split]).drop("split")
    return _tidy(pl.concat(rows), words, list(methods))


def _allowed(built: dict[str, Importance], found: Checkpoint, task: Task, split: str) -> None:
    """Refuse a method that is not for this model or these texts, with the reason."""
    for name, importance in built.items():
        reason = refusal(importance, found.model) or absence(importance, task, split)
        if reason is not None:
            raise UsageError(f"{name} can't score these texts: {reason}")


def _tidy(rows: pl.DataFrame, words: pl.DataFrame, methods: list[str]) -> pl.DataFrame:
    """A row per word, in the order of texts, words and methods."""
    single = rows.with_columns(token=pl.int_ranges(pl.col("scores").list.len())).explode("scores", "token")
    order = pl.col("method").replace_strict({name: place for place, name in enumerate(methods)})
    return (
        single.join(words, on=["example", "token"], how="left")
        .sort("example", "token", order)
        .select("example", "token", "word", "method", pl.col("scores").alias("score"))
    )
