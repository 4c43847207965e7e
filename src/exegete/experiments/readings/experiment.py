"""Readings: which way of reading a transformer's attention orders words by what they do, through what is read?

People read attention in many ways: the last layer's row of CLS, the mean over layers, one head, rollout, flow, column
means (exegete.experiments.readings.candidates). Every one is asked what `mediation` asks of the readout. With e_t, what
the predicted class loses without word t, and w_t, what it loses with the edges to t cut where the reading looks
(exegete.experiments.readings.cuts), of every text

    ranks      Γ(|e| | s)                                  whether the reading orders words by how much they matter
    reads      M = 1 − Σ_t (e_t − w_t)² / Σ_t e_t²         whether words act through the edges that it looks at
    carried    Γ(|e| | s without heads that nobody reads)  whether its order is that of weights that are read

An order can come from heads that nobody reads while words act through others of the same reading: M is high then, and
only `carried` tells (exegete.experiments.readings.idle_heads).

All that is chosen is chosen on other texts than those that judge: which layer and which head is asked for M, which
heads are unread, the direction of positions and the effects of word types. Rows of both are here, by `on`: where texts
chose, words are deleted from whole texts alone; where they judge, in all ways that are set.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.experiment import Question
from exegete.experiments.mediation.corpus import corpus
from exegete.experiments.mediation.effects import (
    LEAST,
    SCALES,
    Company,
    MediationRemoval,
    RemovalInCompany,
    RemovalPlan,
    effects_in_ways,
)
from exegete.experiments.mediation.experiment import SPECIFICATION, TEST, mattering, mediation_share
from exegete.experiments.readings.cuts import Cuts
from exegete.experiments.readings.selection import CHOOSING, Choice, WeighedTexts, chosen_by, trace_texts
from exegete.importance.rollout import without_layers
from exegete.measures.gini import gini_correlation
from exegete.models.capabilities import Writing
from exegete.models.contract import Predictor
from exegete.models.openings import unopened
from exegete.tasks.example import Task
from exegete.tasks.selection import choose_texts

BASELINE = "baseline"
SAID = (*SPECIFICATION, "on", "reading", "kind", "site", "head", "query")
NUMBERS = ("ranks", "carried", "reads")
SCHEMA = pl.Schema(
    {"example": pl.Int64, "n": pl.Int64, "words": pl.Int64, "void": pl.Boolean}
    | dict.fromkeys(SAID, pl.String)
    | dict.fromkeys(NUMBERS, pl.Float64)
    | {"left_out": pl.Int64}  # heads of the reading that nobody reads
)


@dataclass(frozen=True)
class Readings(Question):
    """Γ, M and what is left of Γ without unread heads, of every reading, beside baselines."""

    of_summary = ("readings",)

    removals: tuple[MediationRemoval, ...] = ("delete", "resample")
    companies: tuple[Company, ...] = ("alone", "company")
    draws: int = 2  # halves, and words in a word's place
    words: int = 16  # of a text that are asked about, at most
    choose_on: str = "dev"  # the split on which all is chosen
    choosing: int = 60  # of its texts
    flattened: int = 16  # of these, those that tell which heads are unread
    texts: int | None = 100  # that judge
    seed: int = 0

    def __post_init__(self) -> None:
        for kind, given, known in (("removal", self.removals, MediationRemoval), ("company", self.companies, Company)):
            if not given or not set(given) <= set(get_args(known)) or len(set(given)) < len(given):
                raise UsageError(f"experiment 'readings': {kind} is one or more of {', '.join(get_args(known))}")
        if min(self.draws, self.flattened, self.choosing) < 1 or self.words < LEAST:
            raise UsageError(f"experiment 'readings': draws and numbers of texts are 1 or more, words {LEAST} or more")
        if self.choose_on in ("", TEST):
            raise UsageError("experiment 'readings': choose on another split than test")

    def unsuited(self, task: Task, model: Predictor) -> str | None:
        """There must be layers to read, a class, and texts to choose on."""
        if isinstance(model, Writing):
            return "it reads the attention from which a class is predicted, and this model writes texts"
        if (reason := without_layers("readings", model) or unopened(model)) is not None:
            return reason
        there = task.splits.get(self.choose_on, ())
        return None if there else f"what is read is chosen on {self.choose_on} texts, and the task has none"

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example, specification and reading; M only of readings that could be chosen."""
        if (reason := self.unsuited(subject.task, subject.model)) is not None:
            raise UsageError(f"experiment 'readings': {reason}")
        with torch.no_grad():
            parts = list(self._parts(subject))
        return pl.concat(parts).sort("on", "example", maintain_order=True)

    def _parts(self, subject: Subject) -> Iterator[pl.DataFrame]:
        """First all that chooses, then all that judges."""
        model, task = subject.model, subject.task
        texts = choose_texts(task.split(self.choose_on), self.choosing)
        words = corpus(task, model, self.choose_on)
        first = [
            self._removed(model, seen, RemovalPlan(CHOOSING, words, _nothing)) for seen in self._seen(model, texts)
        ]
        if not first:
            raise UsageError(f"experiment 'readings': no {self.choose_on} text has {LEAST} words or more")
        choice = chosen_by(model, task, first, self.flattened)
        cuts = Cuts(model, [each.reading for each in choice.asked])
        for seen in first:
            cut = cuts.effects(model, seen.batch, seen.label, seen.asked)[cuts.way]
            yield _frame(
                seen, CHOOSING, self.choose_on, _measured(score_readings(model, choice, seen, False), seen.removed, cut)
            )
        for seen in self._seen(model, subject.examples):
            scores = score_readings(model, choice, seen, True)
            for asking in self._askings():
                found = effects_in_ways(model, seen.batch, seen.label, seen.asked, RemovalPlan(asking, words, cuts))
                here, cut = seen._replace(removed=found[0]), found[1:][cuts.way]
                yield _frame(here, asking, TEST, _measured(scores, here.removed, cut))

    def _seen(self, model: Predictor, examples: Any) -> Iterator[WeighedTexts]:
        return trace_texts(model, examples, self.words, self.seed)

    def _removed(self, model: Predictor, seen: WeighedTexts, how: RemovalPlan) -> WeighedTexts:
        return seen._replace(removed=effects_in_ways(model, seen.batch, seen.label, seen.asked, how)[0])

    def _askings(self) -> Iterator[RemovalInCompany]:
        for removal in self.removals:
            yield from (RemovalInCompany(removal, company, self.draws, self.seed) for company in self.companies)

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By specification and reading: means over texts that are not void, with n and interval."""
        from exegete.experiments.readings.statistics import summarise_readings

        return summarise_readings(rows)


def _nothing(model: Predictor, left: Any, asked: Tensor) -> tuple[Tensor, Tensor]:
    """A way of zeroing that zeroes nothing: only words go."""
    logits = model.logits(left).double()
    return logits, logits.new_empty(0, int(asked.sum()), logits.shape[-1])


class ScoredReading(NamedTuple):
    """A reading or a baseline of some texts."""

    said: dict[str, Any]
    scores: Tensor  # [text, token]
    carried: Tensor | None  # without heads that nobody reads; None: no reading
    way: int | None  # its place among those that are asked for M


def score_readings(model: Predictor, choice: Choice, seen: WeighedTexts, judging: bool) -> list[ScoredReading]:
    """All readings, then the baselines, of the words asked about."""
    batch, found = seen.batch._replace(words=seen.asked), []  # a flow takes long, and is of one word
    for each in choice.candidates:
        without = choice.left_out(model, each)
        scores = each.reading.of(model, seen.trace, batch)
        carried = each.reading.of(model, seen.trace, batch, without) if without else scores
        said = {"reading": each.name, "kind": each.kind, "left_out": len(without), **each.place._asdict()}
        found.append(ScoredReading(said, scores, carried, choice.asked.index(each) if each in choice.asked else None))
    known = choice.baselines.scores(seen.examples, seen.batch, judging)
    return [*found, *(ScoredReading({"reading": name, "kind": BASELINE}, s, None, None) for name, s in known.items())]


def _measured(scores: list[ScoredReading], removed: Tensor, cut: Tensor) -> Iterator[dict[str, Any]]:
    """Γ, carried and M on every scale, by what words do, [scale, …], and by what cuts do, [reading, scale, …]."""
    for each in scores:
        for scale, name in enumerate(SCALES):
            found = each.said | {"scale": name, "ranks": _gamma(each.scores, removed[scale])}
            found |= {} if each.carried is None else {"carried": _gamma(each.carried, removed[scale])}
            yield found | ({} if each.way is None else {"reads": mediation_share(removed[scale], cut[each.way, scale])})


def _gamma(scores: Tensor, removed: Tensor) -> Tensor:
    return gini_correlation(scores, removed.abs())


def _frame(seen: WeighedTexts, asking: RemovalInCompany, on: str, parts: Iterable[dict[str, Any]]) -> pl.DataFrame:
    """All parts as rows."""
    said = {"removal": asking.removal, "company": asking.company, "on": on}
    return pl.concat([_rows(seen, part | said) for part in parts])


def _rows(seen: WeighedTexts, part: dict[str, Any]) -> pl.DataFrame:
    """A part as rows; what it doesn't have is null."""
    texts = len(seen.examples)
    facts = {
        "example": seen.batch.ids, "n": seen.batch.lengths, "words": seen.asked.sum(-1),
        "void": ~mattering(seen.removed)[SCALES.index(part["scale"])],
    }  # fmt: skip
    columns = {name: (facts | part).get(name) for name in SCHEMA}
    filled = {n: v.cpu().numpy() if isinstance(v, Tensor) else [v] * texts for n, v in columns.items()}
    return pl.DataFrame(filled, schema=SCHEMA).with_columns(pl.col(pl.Float64).fill_nan(None))
