"""Texts to show: where attention and the best saliency method disagree most, found again in a run's stages.

A method's words are ranked by the size of their scores, as attention's are by their weights: attention has no sign. The
texts with the lowest Kendall's τ-b are shown, and the one with the highest beside them.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from exegete.answers.pages.verdicts import TaskAndModel, labels_by_place, plain, task_and_model
from exegete.base.files import read_json
from exegete.base.names import parse
from exegete.base.parquet import read_parquet
from exegete.measures.rank import tau
from exegete.report.columns import class_label, decimal
from exegete.report.heatmap import HeatMap, HeatRow
from exegete.report.labels import method_label
from exegete.report.section import Verdict
from exegete.runs.shards import pad_rows
from exegete.runs.store import DONE, read_shards

SHORTEST, LONGEST = 6, 40  # words of a text that is shown, where there are such texts
APART, ALONE = 3, 6  # texts that disagree, of a single model; models that are shown, where there are several
CONTENT = ("data", "weights", "model", "split", "texts")  # what tells the texts and the model of a stage
NOT = ("attention", "random")


class ScoredTexts(NamedTuple):
    """The words of some texts with attention and another method's scores."""

    experiment: str
    method: str
    signed: bool
    frame: pl.DataFrame  # example, gold, predicted, probabilities, words, attention, other, tau


class HeatMaps(NamedTuple):
    """Heat maps, and the experiment in whose section they belong."""

    experiment: str
    maps: tuple[HeatMap, ...]
    title: str
    sentence: str


def telling_texts(
    run: Path, cells: Sequence[Mapping[str, Any]], split: str, tests: Sequence[Verdict]
) -> HeatMaps | None:
    """The most telling texts of a run; None if it holds no scores of attention and of another method."""
    against, found = best_methods(tests), {}
    for place, cell in one_each(cells).items():
        scored = text_scores(run, cell, split, against.get(plain(*place), ""))
        if scored is not None:
            found[place] = scored._replace(frame=_easily_read(scored.frame))
    if not found:
        return None
    labels = labels_by_place(list(found))
    shown = list(found.items())[:ALONE]
    maps = [drawn for place, scored in shown for drawn in _maps(scored, labels[place], several=len(found) > 1)]
    one = next(iter(found.values()))
    return HeatMaps(one.experiment, tuple(maps), *_said(one, several=len(found) > 1))


def one_each(cells: Sequence[Mapping[str, Any]]) -> dict[TaskAndModel, Mapping[str, Any]]:
    """The first seed of every task and model, without tasks with planted words where there are others."""
    every: dict[TaskAndModel, Mapping[str, Any]] = {}
    for cell in cells:
        every.setdefault((cell["task"], cell["model"]), cell)
    unplanted = {place: cell for place, cell in every.items() if plain(*place) == place}
    return unplanted or every


def best_methods(tests: Sequence[Verdict]) -> dict[TaskAndModel, str]:
    """What attention was held against on every task and model, where that is a single method."""
    return {task_and_model(test): test.against for test in reversed(tests) if _is_method(test.against)}


def _is_method(name: str) -> bool:
    from exegete.importance.catalogue import IMPORTANCES

    return bool(name) and " " not in name and parse(name).name in IMPORTANCES and parse(name).name not in NOT


def text_scores(run: Path, cell: Mapping[str, Any], split: str, wanted: str) -> ScoredTexts | None:
    """Attention and the wanted method, or else the first other one, from an experiment that scored both."""
    found = stages_of(run, cell, split, wanted)
    if found is None:
        return None
    method = wanted if wanted in found.scores else others_of(found.scores)[0]
    two = (stage_frame(run, found.scores[each]) for each in (attention_of(found.scores), method))
    return _scored(found.experiment, method, found.texts, *two)


class Stages(NamedTuple):
    """The texts of an experiment, and the stages of the methods that scored them."""

    experiment: str
    texts: pl.DataFrame  # example, gold, predicted, probabilities, words
    scores: Mapping[str, str]  # by method


def stages_of(run: Path, cell: Mapping[str, Any], split: str, wanted: str) -> Stages | None:
    """Those of the first experiment that scored attention and the wanted method, or else attention and any other."""
    stages = {name: at[split] for name, at in cell["experiments"].items() if split in at}
    by_name = {name: _stage(run, at).get("scores", {}) for name, at in stages.items()}
    able = {name: scores for name, scores in by_name.items() if attention_of(scores) and others_of(scores)}
    if not able:
        return None
    name = next((name for name, scores in able.items() if wanted in scores), next(iter(able)))
    texts = _texts(run, _stage(run, stages[name]))
    return None if texts is None else Stages(name, texts, able[name])


def _stage(run: Path, name: str) -> dict[str, Any]:
    path = run / "stages" / name / DONE
    return read_json(path, "stage") if path.is_file() else {}


def attention_of(scores: Mapping[str, str]) -> str:
    """The method that is attention; empty if there is none."""
    return next((name for name in scores if parse(name).name == "attention"), "")


def others_of(scores: Mapping[str, str]) -> list[str]:
    """Methods that attention can be held against."""
    return [name for name in scores if parse(name).name not in NOT]


def _texts(run: Path, stage: Mapping[str, Any]) -> pl.DataFrame | None:
    """The words and predictions of the texts that a stage is about."""
    for path in sorted((run / "stages").glob(f"predict-*/{DONE}")):
        facts = read_json(path, "stage")
        if all(facts.get(key) == stage.get(key) for key in CONTENT):
            return stage_frame(run, path.parent.name)
    return None


def stage_frame(run: Path, name: str) -> pl.DataFrame:
    """A stage's table."""
    return read_parquet(read_shards(run / "stages" / name))


def _scored(
    experiment: str, method: str, texts: pl.DataFrame, attention: pl.DataFrame, other: pl.DataFrame
) -> ScoredTexts | None:
    """One row per text with a τ between the two, the lowest first."""
    joined = texts.join(attention.select("example", attention="scores"), on="example", maintain_order="left")
    joined = joined.join(other.select("example", other="scores"), on="example", maintain_order="left")
    shown = pl.col("words").list.len() == pl.col("attention").list.len()  # a pair's question has no scores
    whole = ~pl.concat_list(pl.col("attention", "other")).list.eval(pl.element().is_nan()).list.any()
    kept = joined.filter(shown & whole)
    if kept.is_empty():
        return None
    sizes = [pad_rows([[abs(v) for v in row] for row in kept[name].to_list()]) for name in ("attention", "other")]
    ranked = kept.with_columns(tau=pl.Series(tau(*sizes).numpy())).filter(pl.col("tau").is_not_nan())
    signed = bool(other["signed"].any())
    return ScoredTexts(experiment, method, signed, ranked.sort("tau", "example")) if ranked.height else None


def _easily_read(frame: pl.DataFrame) -> pl.DataFrame:
    """Texts that are neither a word or two nor a page, where there are such texts."""
    short = frame.filter(pl.col("words").list.len().is_between(SHORTEST, LONGEST))
    return short if short.height else frame


def _maps(scored: ScoredTexts, where: str, several: bool) -> Iterator[HeatMap]:
    """The texts that disagree most and, of a single model, the one that agrees most."""
    frame, label = scored.frame, method_label(scored.method)
    shown = frame.head(1) if several else pl.concat([frame.head(APART), frame[APART:].tail(1)])
    for row in shown.iter_rows(named=True):
        said = _title(row)
        yield HeatMap(
            title=f"{where}. {said}" if several else said,
            words=tuple(row["words"]),
            rows=(
                HeatRow("attention", tuple(row["attention"]), signed=False, main=True),
                HeatRow(label, tuple(row["other"]), signed=scored.signed),
            ),
            toward=class_label(row["predicted"]),
        )


def _title(row: Mapping[str, Any]) -> str:
    """What was predicted, whether that is right, and how far the two agree."""
    sure = f" (p = {max(row['probabilities']):.2f})" if row["probabilities"] else ""
    wrong = "nobody said its class" if row["gold"] is None else f"wrong: it is {class_label(row['gold'])}"
    right = "right" if row["gold"] == row["predicted"] else wrong
    return f"Predicted {class_label(row['predicted'])}{sure}, {right}. τ = {decimal(row['tau'], 2)}."


def _said(scored: ScoredTexts, several: bool) -> tuple[str, str]:
    """A title and a sentence."""
    label = "another method" if several else method_label(scored.method)
    by = "by Kendall’s τ-b of the weights and the sizes of the scores"
    n, mean = len(scored.frame), decimal(float(scored.frame["tau"].mean()), 2)  # type: ignore[arg-type]
    last = ", and last the one on which they agree most" if n > APART else ""
    one = f"Of {n:,} texts these are the ones on which the two disagree most, {by}{last}. "
    one += f"The mean τ-b is {mean}: these are the extremes, not typical texts."
    many = f"Of every model the text on which the two disagree most, {by}. These are the extremes, not typical texts."
    return f"Where attention and {label} disagree most", many if several else one
