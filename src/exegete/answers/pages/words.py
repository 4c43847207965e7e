"""Words of a run: what attention and every other method give each word on average, found again in a run's stages."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from exegete.answers.audit import judge_run
from exegete.answers.pages.texts import attention_of, best_methods, one_each, others_of, stage_frame, stages_of
from exegete.answers.pages.verdicts import labels_by_place, plain
from exegete.answers.trust import checkpoint_of_run
from exegete.base.errors import ExegeteError, UsageError, unknown
from exegete.base.names import parse
from exegete.base.progress import Progress, silent
from exegete.measures.words import LEAST
from exegete.report.families import family
from exegete.report.section import Section, Verdict
from exegete.report.word_shares import Words, figure_of, shares_by_word
from exegete.runs.objects import AnyModel, AnyTask, task_for
from exegete.runs.run import read_manifest, study_of
from exegete.runs.word_scores import word_score_frame
from exegete.training.checkpoint import is_of_hub, is_trained

SHOWN = 3  # models of a page
TEXTS = 500  # that are scored of a task, unless told otherwise
ENOUGH, STABLE = 50, 0.8  # words that are not in many texts, and ρ of their order with that of half the texts
FIRST, MOST = 250, 4000  # texts that are scored anew at first, and at most
SLOW = ("smoothgrad", "flow", "integrated_gradients")  # tens of passes of a text, or as long
ATTENTION, CHEAP = "attention", ("gradient_x_input", "gradient:norm=l2")  # what is scored where nothing is named
SENTENCE = (
    "A word's importance averaged over all texts (Li et al. 2016): what a method looks at in general, not in one text. "
    "A word far below the line is one that attention looks at and the other method does not find important."
)


def words_of_task(
    model: AnyModel,
    task: AnyTask,
    methods: Sequence[str] = (),
    split: str = "test",
    texts: int | None = None,
    least: int = LEAST,
    progress: Progress = silent,
) -> Words:
    """Score texts anew, by attention and by methods, and average over words."""
    every = list(dict.fromkeys([ATTENTION, *(methods or CHEAP)]))
    long = word_score_frame(model, task, every, split, texts, progress)
    lists = long.group_by("example", "method", maintain_order=True).agg("score", "word")
    frame = lists.pivot("method", index="example", values="score", maintain_order=True)
    words = lists.filter(pl.col("method") == ATTENTION).select("example", words="word")
    return shares_by_word(_whole(frame.join(words, on="example", maintain_order="left"), every), every, least)


def words_of_cell(
    run: Path, cell: Mapping[str, Any], split: str, best: str = "", wanted: Sequence[str] = (), least: int = LEAST
) -> Words | None:
    """Attention, what it was held against, then all others that scored the same texts; None if nobody did.

    `wanted` are the only others, in their order.
    """
    found = stages_of(run, cell, split, wanted[0] if wanted else best)
    if found is None:
        return None
    own, others = attention_of(found.scores), others_of(found.scores)
    for name in wanted:
        if name not in others:
            raise unknown(f"method that scored the texts of {run}", name, others)
    methods = [own, *(wanted or sorted(others, key=lambda name: name != best))]
    frame = found.texts.select("example", "words")
    for name in methods:
        scores = stage_frame(run, found.scores[name]).select("example", pl.col("scores").alias(name))
        frame = frame.join(scores, on="example", maintain_order="left")
    return shares_by_word(_whole(frame, methods), methods, least)


def words_of_run(run: Path, least: int = LEAST, number: int = 0, wanted: Sequence[str] = ()) -> Words:
    """Of one model of a run, counted from 0; attention comes first, then what the audit held it against."""
    cells = read_manifest(run)["cells"]
    if number >= len(cells):
        raise UsageError(f"{run} has {len(cells)} models, counted from 0: there is no {number}")
    study, cell = study_of(run), cells[number]
    best = best_methods(judge_run(study, run).tests).get(plain(cell["task"], cell["model"]), "")
    found = words_of_cell(run, cell, study.split, best, wanted, least)
    if found is None:
        raise ExegeteError(
            f"{run} keeps no scores of attention and of another method for the same texts: add agreement or "
            "faithfulness to its study"
        )
    return found


def enough_words(
    run: Path,
    least: int = LEAST,
    number: int = 0,
    wanted: Sequence[str] = (),
    most: int = MOST,
    progress: Progress = silent,
) -> Words:
    """Words of a run; where its texts have few but the most frequent words, more texts are scored, at most so many.

    Texts are doubled until there are words enough and the order in which attention puts them stays.
    """
    before = kept = words_of_run(run, least, number, wanted)
    if len(kept.content) >= ENOUGH:
        return kept
    why = f"the {kept.texts + kept.silent:,} of the run have {len(kept.content):,} words that are not in many of them"
    try:
        model, task, split = _asked_again(run, number)
        examples = len(task_for(model, task).split(split))
        texts = min(FIRST, examples, most)
        while kept.texts + kept.silent < examples:
            found = words_of_task(model, task, wanted or _quick(kept.methods), split, texts, least, progress)
            if texts >= min(examples, most) or (len(found.content) >= ENOUGH and _same_order(before, found)):
                return replace(found, more=f"{texts:,} texts were scored anew: {why}.")
            before, texts = found, min(2 * texts, examples, most)
    except ExegeteError as error:
        return replace(kept, more=f"No more texts could be scored ({error}), and {why}.")
    return kept


def _asked_again(run: Path, number: int) -> tuple[str, str, str]:
    """The model, the task and the split of a cell, by their names."""
    manifest = read_manifest(run)
    names, cell = manifest.get("names", {}), manifest["cells"][number]
    model, task = (names.get(cell[key], cell[key]) for key in ("model", "task"))  # as its study names them
    given = is_of_hub(model) and is_trained(model)
    return model if given else str(checkpoint_of_run(run, number)), task, study_of(run).split


def _quick(methods: Sequence[str]) -> list[str]:
    """The methods of a run that need a pass or a few of every text, two of them at most; else the usual ones."""
    others = [name for name in methods[1:] if family(name) in ("attention", "gradients", "relevance")]
    return [name for name in others if parse(name).name not in SLOW][:2] or list(CHEAP)


def _same_order(before: Words, after: Words) -> bool:
    """Whether attention puts words that are not in many texts into one order twice (Spearman's ρ)."""
    both = before.frame.join(after.content, on=["word", "method"], suffix="_after")
    rho = both.select(pl.corr("mean", "mean_after", method="spearman")).item() if both.height > 2 else None
    return rho is not None and rho >= STABLE


def words_section(
    run: Path, cells: Sequence[Mapping[str, Any]], split: str, tests: Sequence[Verdict]
) -> Section | None:
    """The figure and the words that are furthest apart, of the first models; None if nothing was scored."""
    against, parts = best_methods(tests), []
    every = one_each(cells)
    labels = labels_by_place(list(every))
    for place, cell in list(every.items())[:SHOWN]:
        found = words_of_cell(run, cell, split, against.get(plain(*place), ""))
        if found is not None and len(found):
            title = f"Words over all texts: {labels[place]}" if labels[place] else ""
            parts.append(Section(title, "", [], [found.apart()], [figure_of(found)]))
    if not parts:
        return None
    first = parts[0]
    if not first.title:
        return Section("Words over all texts", "words", [SENTENCE], first.tables, first.figures)
    return Section("Words over all texts", "words", [SENTENCE], parts=parts)


def _whole(frame: pl.DataFrame, methods: Sequence[str]) -> pl.DataFrame:
    """Texts whose words all have a score of every method: a pair's question has none."""
    lengths = [pl.col(name).list.len() == pl.col("words").list.len() for name in methods]
    defined = [~pl.col(name).list.eval(pl.element().is_nan()).list.any() for name in methods]
    return frame.filter(*lengths, *defined)
