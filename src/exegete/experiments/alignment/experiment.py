"""Alignment: does attention say which source word a word translates, or does saliency? (Ding, Xu & Koehn 2019)

Every word of a reference is linked to the source word of the highest score, once by attention, once by each other
method (`aligning`). Where people drew the links, the alignment error rate of Och & Ney (2003) says
who is right; what is found by chance follows exactly from the lengths: a link to any source word is as likely as to
another. Where nobody did, there remains whether a method links as attention does.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import UsageError, unknown
from exegete.base.noise import stable_seed
from exegete.experiments.alignment.links import Aligned, AlignmentOf, AlignmentTarget, PieceRule, align, links_of
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.experiment import Question
from exegete.experiments.common.marked_words import check_methods
from exegete.experiments.common.summaries import interval_of, or_none
from exegete.experiments.common.tallies import clipped_mean, mean_with_interval
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import explains, refusal
from exegete.measures.alignment import (
    agreement,
    alignment_counts,
    alignment_error_rate,
    alignment_precision,
    alignment_recall,
    gold_places,
)
from exegete.measures.resampling import Resample, percentiles
from exegete.models.capabilities import Writing
from exegete.models.contract import Predictor
from exegete.tasks.example import Example, Links, Task
from exegete.tasks.pieces import join_pieces
from exegete.tasks.selection import choose_texts

METHODS = (
    "attention", "attention_x_gradient", "gradient:norm=l2", "gradient_x_input", "smoothgrad:samples=10",
    "integrated_gradients:steps=20", "occlusion", "random",
)  # fmt: skip
ATTENTION = "attention"  # whose links the others are compared with
CELL = ("task", "model", "split")
COUNTS = ("both_sure", "both_possible", "links", "sure")  # |A ∩ S|, |A ∩ P|, |A|, |S|
ERROR_RATE, PRECISION, RECALL, SAME = "error_rate", "precision", "recall", "same_as_attention"
MEASURES: dict[str, Callable[[Tensor], Tensor]] = {
    ERROR_RATE: alignment_error_rate, PRECISION: alignment_precision, RECALL: alignment_recall,
}  # fmt: skip
LEVEL = 0.95
READABLE = 14  # words of either side that a heat map holds
SCHEMA: dict[str, Any] = {
    "example": pl.Int64, "source_words": pl.Int64, "target_words": pl.Int64, "right": pl.Float64, "method": pl.String,
    "signed": pl.Boolean, "aligned": pl.List(pl.Int64), "tied": pl.Int64, "same": pl.Float64,
    **dict.fromkeys((*COUNTS, "possible"), pl.Int64), "gold": pl.List(pl.String),
    "source": pl.List(pl.String), "target": pl.List(pl.String), "scores": pl.List(pl.List(pl.Float64)),
}  # fmt: skip


@dataclass(frozen=True)
class Alignment(Question):
    """Links between words by attention and by saliency, against those of people."""

    whole = True  # it forces whole references on a translator, step by step

    methods: tuple[str, ...] = METHODS
    of: AlignmentOf = "logit"  # of the reference's next piece: what is explained
    pieces: PieceRule = "sum"  # what a source word scores, of the scores of its pieces
    shown: int = 3  # sentences whose scores are kept for heat maps
    seed: int = 0  # of what breaks ties
    texts: int | None = 100  # sentences

    def __post_init__(self) -> None:
        check_methods(self.methods, "alignment")
        for method in self.methods:
            IMPORTANCES.make(method)
        if self.of not in get_args(AlignmentOf):
            raise unknown("quantity to explain", self.of, get_args(AlignmentOf))
        if self.pieces not in get_args(PieceRule):
            raise unknown("way to score a word by its pieces", self.pieces, get_args(PieceRule))
        if self.shown < 0:
            raise UsageError(f"experiment 'alignment': shown is 0 or more, not {self.shown}")

    @property
    def builds(self) -> tuple[str, ...]:
        """Every method, and attention."""
        return tuple(dict.fromkeys((ATTENTION, *self.methods)))

    def unsuited(self, task: Task, model: Predictor) -> str | None:  # noqa: ARG002
        """Only a translation has words to link."""
        if isinstance(model, Writing):
            return None
        return "it links the words of translations, and this model writes none: use translator on a translation task"

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per sentence and method: its links, how many are right, and the share that attention has too."""
        model = subject.model
        if not isinstance(model, Writing):
            raise UsageError(f"experiment 'alignment': {self.unsuited(subject.task, model)}")
        view = model.as_classes()
        made = {method: IMPORTANCES.make(method) for method in self.builds}
        able = {name: one for name, one in made.items() if refusal(one, view) is None and explains(one, self.of)}
        found = align(model, subject.task, subject.examples, able, AlignmentTarget(self.of, self.pieces))
        gold = subject.task.alignments.get(subject.split, {})
        shown = {e.id for e in self._shown(subject)}
        rows = [
            row
            for i, e in enumerate(subject.examples)
            for row in self._sentence(e, i, found, gold.get(e.id), shown=e.id in shown)
        ]
        return pl.DataFrame(rows, schema=SCHEMA)

    def _shown(self, subject: Subject) -> tuple[Example, ...]:
        """A keyed choice among the sentences that a heat map can hold, whatever shard they are in."""
        every = choose_texts(subject.task.split(subject.split), self.texts)
        readable = [e for e in every if all(len(join_pieces(text).split()) <= READABLE for text in e.texts)]
        return tuple(choose_texts(readable or every, self.shown))

    def _sentence(self, e: Example, i: int, found: Aligned, gold: Links | None, *, shown: bool) -> list[dict[str, Any]]:
        links = {
            method: links_of(matrices[i], stable_seed("alignment", self.seed, method), e.id)
            for method, matrices in found.scores.items()
        }
        own = links[ATTENTION][0] if ATTENTION in links else None
        source, target = (join_pieces(text).split() for text in e.texts)
        sentence = {"example": e.id, "source_words": len(source), "target_words": len(target), "right": found.right[i]}
        words = {"source": source, "target": target, "gold": _written(gold)} if shown else {}
        return [
            sentence
            | {"method": method, "signed": found.signed.get(method), "aligned": aligned, "tied": tied}
            | {"same": _same(aligned, own)}
            | _counts(aligned, gold)
            | words
            | ({"scores": found.scores[method][i].tolist()} if shown else {})
            for method, (aligned, tied) in links.items()
            if method in self.methods
        ]

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By method and measure: n sentences, how many have no value, mean, interval and chance.

        Error rate, precision and recall are those of the corpus, where links of people are known, with the difference
        from attention's own, on the same sentences. `same_as_attention` is a mean over sentences. Chance links every
        word to any source word. Intervals are over sentences for one seed, over sentences and seeds for several.
        `right`: the share of the pieces of the references that the model would have chosen itself.
        """
        found = []
        for cell, part in rows.partition_by(CELL, as_dict=True, maintain_order=True).items():
            own = part.filter(pl.col("method") == ATTENTION)
            for (method,), group in part.partition_by("method", as_dict=True, maintain_order=True).items():
                said = dict(zip(CELL, cell, strict=True)) | {"method": method, "signed": group["signed"][0]}
                said |= {"seeds": group["seed"].n_unique(), "right": or_none(group["right"].mean())}
                found += [said | numbers for numbers in _numbers(group, own)]
        return pl.DataFrame(found, infer_schema_length=None)

    def figures(self, rows: pl.DataFrame, summary: pl.DataFrame) -> Mapping[str, Any]:
        """Error rates and agreement by method, and the words of a few sentences."""
        from exegete.experiments.alignment.figure import alignment, matrices

        return {"alignment": alignment(summary)} | matrices(rows, summary)


def _written(gold: Links | None) -> list[str] | None:
    """Links as people write them: sure with a dash, possible with a question mark."""
    return None if gold is None else [f"{link.source}{'-' if link.sure else '?'}{link.target}" for link in gold]


def _same(aligned: list[int], own: list[int] | None) -> float | None:
    """The share of words that attention links alike; undefined where there is no word or no attention."""
    if not aligned or own is None:
        return None
    return sum(a == b for a, b in zip(aligned, own, strict=True)) / len(aligned)


def _counts(aligned: list[int], gold: Links | None) -> dict[str, int]:
    """What error rates are made of; nothing where nobody drew links."""
    if gold is None:
        return {}
    sure, possible = gold_places(gold)
    counts = alignment_counts([{(i, j) for j, i in enumerate(aligned)}], [sure], [possible])[0].tolist()
    return dict(zip(COUNTS, counts, strict=True)) | {"possible": len(possible)}


def _numbers(group: pl.DataFrame, own: pl.DataFrame) -> list[dict[str, Any]]:
    """Every measure of one method; `own` are the rows of attention on the same sentences."""
    known = group.filter(pl.col("sure").is_not_null())
    missing = group.height - known.height
    found = [_against_people(measure, known, own, missing) for measure in MEASURES] if known.height else []
    chance = or_none((1 / group.filter(pl.col("same").is_not_null())["source_words"]).mean())
    shared = mean_with_interval(group, "same")
    shared.pop("seeds")
    return [*found, {"measure": SAME, **shared, "chance": chance} | _no_difference()]


def _against_people(measure: str, known: pl.DataFrame, own: pl.DataFrame, missing: int) -> dict[str, Any]:
    after, before = counts_by_seed(known), counts_by_seed(own.filter(pl.col("sure").is_not_null()))
    other = bool(before) and known["method"][0] != ATTENTION
    return {
        "measure": measure,
        **_interval(measure, after),
        "undefined": missing,
        "chance": _chance(measure, known),
        **(_difference(measure, after, before) if other else _no_difference()),
    }


def counts_by_seed(rows: pl.DataFrame) -> list[Tensor]:
    """Counts [sentence, count] of every seed, in the order of seeds, each in the order of sentences."""
    parts = rows.sort("seed", "example").partition_by("seed", maintain_order=True)
    return [torch.from_numpy(part.select(COUNTS).to_numpy().copy()) for part in parts]


def _interval(measure: str, counts: list[Tensor]) -> dict[str, Any]:
    """n, mean, low, high."""
    if len(counts) > 1:
        return clipped_mean(torch.stack([alignment_pseudo_values(MEASURES[measure], c) for c in counts]))
    found = getattr(agreement(counts[0]), measure)
    return {
        "n": found.n,
        "mean": or_none(found.mean),
        "low": or_none(found.low),
        "high": or_none(found.high),
    }


def _difference(measure: str, after: list[Tensor], before: list[Tensor]) -> dict[str, Any]:
    """From attention to another method, paired by sentence."""
    of = MEASURES[measure]
    if len(after) > 1:
        pairs = zip(after, before, strict=True)
        found = interval_of(
            torch.stack([alignment_pseudo_values(of, a) - alignment_pseudo_values(of, b) for a, b in pairs]), 1.0
        )[:3]
    elif not (mean := of(after[0].sum(0)) - of(before[0].sum(0))).isnan():
        a, b = (of(Resample(len(after[0])).sums(counts)) for counts in (after[0], before[0]))
        found = (mean.item(), *percentiles(a - b, LEVEL))
    else:
        return _no_difference()
    return dict(zip(("difference", "difference_low", "difference_high"), map(or_none, found), strict=True))


def _no_difference() -> dict[str, None]:
    return {"difference": None, "difference_low": None, "difference_high": None}


def _chance(measure: str, known: pl.DataFrame) -> float | None:
    """With every word linked to each of I source words alike, |A ∩ S| is |S| / I on average, and so for P."""
    expected = known.select(
        both_sure=pl.col("sure") / pl.col("source_words"),
        both_possible=pl.col("possible") / pl.col("source_words"),
        links=pl.col("links").cast(pl.Float64),
        sure=pl.col("sure").cast(pl.Float64),
    )
    return or_none(MEASURES[measure](torch.from_numpy(expected.to_numpy().copy()).sum(0)).item())


def alignment_pseudo_values(of: Callable[[Tensor], Tensor], counts: Tensor) -> Tensor:
    """Jackknife pseudo-values of a corpus number, whose mean it is: [sentence, count] -> [sentence].

    Where a sentence alone has what the number needs, its value is the number itself.
    """
    total, n = counts.sum(0), len(counts)
    whole, without = of(total), of(total - counts)
    values = torch.where(without.isnan(), whole, n * whole - (n - 1) * without)
    return values - values.mean() + whole
