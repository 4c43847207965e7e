"""Mediation: does a word act on the prediction through its own weight, and do weights order words by what they do?

Let e_t be what the predicted class loses without word t, and w_t what it loses when the weight of word t is zeroed and
all states stay as they are (exegete.experiments.mediation.effects). Of every text,

    reads      M = 1 − Σ_t (e_t − w_t)² / Σ_t e_t²         how much of what words do goes through their own weights
    ranks      Γ(|e| | α)                                  whether weights order words by how much they matter
    carries    F = |z(α) − z(flat)| / √Σ_t e_t²            whether the differences of weights count (log-odds only)
    locates    Γ(|w| | α)                                  whether weights order *states* by how much they matter

F is defined in exegete.experiments.mediation.flat_weights. Γ is the Gini correlation (exegete.measures.gini). M is 1
where e = w; where weights do nothing it is 0; where they do something else than the words it falls below, without
end: it is cut at −1. `opposed` is the share of attention on words whose removal raises the prediction.

No single order of words is the best under every removal, so Γ has a `ceiling`: what the order of the mean effect over
all specifications that decide scores in each of them, effects taken as shares of their sum. And words with much weight
that do nothing (`idle`) cost an order of words 2/(n − 1) each: how much weight lies on them, which of them has most and
at which place, and Γ without them (`ranks_active`) stand beside.

Texts are asked in a keyed order, some at a time, so that more of them can be asked later: what is known of the first
stays. What to read instead is chosen on `choosing` texts of another split.

Removing a word can be done in several ways, none of which is the right one, so all of them are asked: *specifications*
are removal × company × scale. A text is void in one where no word matters: its largest effect is below ½ log-odds, or
below 0.01 of probability where that is the scale.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, get_args

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import UsageError, unknown
from exegete.base.names import parse
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.experiment import Question
from exegete.experiments.mediation.corpus import CorpusWords, corpus, sees_unknown
from exegete.experiments.mediation.effects import (
    LEAST,
    SCALES,
    Company,
    Effects,
    MediationRemoval,
    RemovalInCompany,
    effects,
    sample_words,
)
from exegete.experiments.mediation.flat_weights import WholeTexts, carried_by_differences, idle_words, open_texts
from exegete.importance.attention import without_attention
from exegete.measures.gini import gini_correlation
from exegete.models.contract import Predictor
from exegete.models.openings import unopened
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example, Task

ATTENTION = "attention"
METHODS = (
    ATTENTION, "attention_x_gradient", "gradient:norm=l2", "gradient_x_input", "integrated_gradients", "lrp", "random",
)  # fmt: skip
MATTERS = 0.5  # log-odds that some word of a text must move, or nothing can be ranked
VISIBLE = 0.01  # and of probability, where that is the scale: near 0 and 1 it hardly moves whatever is removed
FLOOR = -1.0  # of M
ROUNDING = 1e-4  # of the largest effect of a text: what is smaller has no sign
UNREAD = 0.05  # of what words do, √(Σ w² / Σ e²): below it weights do nothing, and have no order
TEST = "test"
TEXTS, WORDS = 16, 1_024  # asked about together: enough for full passes
SPECIFICATION = ("removal", "company", "scale")
RowColumns = dict[str, Any]  # tensors or lists [text], or one word for all


@dataclass(frozen=True)
class Mediation(Question):
    """What words do, what their weights do, and how scores order them."""

    of_summary = ("orders", "mediation")

    methods: tuple[str, ...] = METHODS
    removals: tuple[MediationRemoval, ...] = ("delete", "resample")  # the unknown word may be asked, too, and informs
    companies: tuple[Company, ...] = ("alone", "company")
    draws: int = 16  # halves, and words in a word's place
    words: int = 48  # of a text that are asked about, at most
    choose_on: str = "dev"  # the split on which what to read instead is chosen; none: it is not asked
    choosing: int = 100  # texts of that split
    texts: int | None = None  # of the split that is asked about; all, unless given
    tolerance: float = 0.03  # of Γ: what lies nearer to an edge may be called above or below it
    seed: int = 0

    def __post_init__(self) -> None:
        if ATTENTION not in {parse(method).name for method in self.methods}:
            raise UsageError("experiment 'mediation': methods must hold attention, which is what is asked about")
        for kind, given, known in (("removal", self.removals, MediationRemoval), ("company", self.companies, Company)):
            if not given or len(set(given)) < len(given):
                raise UsageError(f"experiment 'mediation': name at least one {kind}, and each once")
            for name in given:
                if name not in get_args(known):
                    raise unknown(kind, name, get_args(known))
        if self.draws < 1 or self.words < LEAST:
            raise UsageError(f"experiment 'mediation': draws is 1 or more, words {LEAST} or more")
        if self.choosing < 1:
            raise UsageError("experiment 'mediation': choosing is 1 or more texts")
        if not 0 < self.tolerance < 0.2:
            raise UsageError("experiment 'mediation': tolerance lies between 0 and 0.2")
        if self.choose_on == TEST:
            raise UsageError("experiment 'mediation': choose what to read instead on another split than test")

    @property
    def importances(self) -> tuple[str, ...]:
        """Every method."""
        return self.methods

    @property
    def splits(self) -> tuple[str, ...]:
        """One to choose on, if any, and one to report."""
        return (self.choose_on, TEST) if self.choose_on else (TEST,)

    def of_a_text(self) -> "Mediation":
        """Without what changes no text's rows."""
        plain = Mediation()
        return replace(self, texts=plain.texts, choosing=plain.choosing, tolerance=plain.tolerance)

    def texts_of(self, split: str) -> int | None:
        """How many texts of a split it asks about."""
        return self.choosing if split == self.choose_on else self.texts

    def unsuited(self, task: Task, model: Predictor) -> str | None:  # noqa: ARG002
        """There must be weights that can be zeroed."""
        return without_attention(model) or unopened(model)

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example, specification and method; only attention's have more than Γ of words.

        Texts of fewer than four words are asked nothing, and have no rows.
        """
        words, askings = corpus(subject.task, subject.model, subject.split), list(self._askings(subject))
        parts = [
            part for members in portions(subject.examples) for part in self._asked(subject, members, askings, words)
        ]
        return _frame(parts).sort("example", maintain_order=True)

    def _asked(
        self, subject: Subject, members: list[int], askings: Sequence[RemovalInCompany], words: CorpusWords
    ) -> Iterator[RowColumns]:
        """What some texts say in every removal and company."""
        batch = subject.model.collate([subject.examples[i] for i in members])
        asked = sample_words(batch, self.words, self.seed)
        label = subject.predicted[members].to(batch.ids.device)
        whole = open_texts(subject.model, batch, label)
        found = [effects(subject.model, batch, label, asked, asking, words) for asking in askings]
        every = list(zip(askings, found, strict=True))
        neutral = [each.removed[place] for asking, each in every for place, scale in enumerate(SCALES)
                   if is_neutral(asking.removal, scale)]  # fmt: skip
        best = consensus(neutral) if neutral else torch.full(batch.words.shape, torch.nan)
        for asking, each in every:
            asked_of = Asked(batch, whole, asking, each, best, _plain(every))
            yield from self._found(subject, members, asked_of)

    def _askings(self, subject: Subject) -> Iterator[RemovalInCompany]:
        """Every removal that means something to this model, in every company.

        To choose what to read instead, words are removed from whole texts alone and nothing is drawn: that is enough
        for an order of methods, at a tenth of the cost.
        """
        choosing = subject.split == self.choose_on
        for removal in self.removals:
            if (removal == "unknown" and not sees_unknown(subject.task, subject.model)) or (
                choosing and removal == "resample"
            ):
                continue
            for company in self.companies:
                if not choosing or company == "alone":
                    yield RemovalInCompany(removal, company, self.draws, self.seed)

    def _found(self, subject: Subject, members: list[int], asked: "Asked") -> Iterator[RowColumns]:
        """Columns of the texts of a batch, one set per scale and method."""
        batch, found, asking = asked.batch, asked.effects, asked.asking
        words, matters = (~found.removed[0].isnan()).sum(-1), mattering(found.removed)
        labels = [subject.task.labels[c] for c in subject.predicted[members].tolist()]
        for place, scale in enumerate(SCALES):
            removed = found.removed[place]
            facts: RowColumns = {"example": batch.ids, "n": batch.lengths, "words": words, "void": ~matters[place]}
            facts |= {"largest": removed.abs().nan_to_num(0.0).amax(-1), "predicted": labels}
            for method in (method for method in self.methods if method not in subject.refused):
                scores = _on_tokens(subject.scores[method][members], batch)
                columns = facts | {"ranks": gini_correlation(scores.abs(), removed.abs())}
                if parse(method).name == ATTENTION:
                    columns |= _of_weights(scores, asked, place)
                    columns |= _sinks(scores, asked, [subject.examples[i].words for i in members])
                said = zip((*SPECIFICATION, "method"), (asking.removal, asking.company, scale, method), strict=True)
                yield columns | dict(said)

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By specification and method: means over texts that are not void, with n and interval; and pooled."""
        from exegete.experiments.mediation.statistics import summarise_mediation

        return summarise_mediation(rows)


def _on_tokens(scores: Tensor, batch: Batch) -> Tensor:
    """Scores of words, [text, word], at their tokens: [text, token], NaN elsewhere."""
    values = scores.double().to(batch.tokens.device)
    place = (batch.words.cumsum(-1) - 1).clamp(min=0)
    return values.gather(1, place).where(batch.words, torch.nan)


def mattering(removed: Tensor) -> Tensor:
    """Whether some word of a text matters, on each scale, [scale, text], by effects [scale, text, token]."""
    odds, chances = removed.abs().nan_to_num(0.0).amax(-1)  # [text] each
    return torch.stack([odds >= MATTERS, (odds >= MATTERS) & (chances >= VISIBLE)])  # as `SCALES`


def mediation_share(removed: Tensor, unweighted: Tensor) -> Tensor:
    """M of every text, [text], cut at −1; NaN where no word does anything."""
    effect, missed = removed.square().nansum(-1), (removed - unweighted).square().nansum(-1)
    return (1 - missed / effect.where(effect > 0, torch.nan)).clamp(min=FLOOR)


class Asked(NamedTuple):
    """What was found of the texts of a batch in one removal and company."""

    batch: Batch
    whole: WholeTexts
    asking: RemovalInCompany
    effects: Effects
    best: Tensor  # [text, token]: the mean effect over all specifications that decide
    plain: Tensor  # [text, token]: effects in log-odds where words are deleted in company, by which words are idle


def is_neutral(removal: str, scale: str) -> bool:
    """Whether a specification decides.

    Where another word stands in a word's place, it has an effect of its own. Models that are faithful by construction
    fail there if it is the unknown word, to which training gave a meaning, or on the scale of probability, where one
    word in the other direction outweighs many: these only inform.
    """
    return removal == "delete" or (removal == "resample" and scale == "log-odds")


def consensus(effects: Sequence[Tensor]) -> Tensor:
    """The mean over specifications of what words do, as shares of the sum of each: [text, token]."""
    sizes = [removed.abs() / removed.abs().nansum(-1, keepdim=True).clamp(min=1e-30) for removed in effects]
    return torch.stack(sizes).mean(0)


def _plain(every: Sequence[tuple[RemovalInCompany, Effects]]) -> Tensor:
    """The effects by which words are idle, in log-odds: of deletion in company, or what is nearest to it."""
    _, found = min(every, key=lambda pair: (pair[0].removal != "delete", pair[0].company != "company"))
    return found.removed[0]


def _of_weights(attention: Tensor, asked: Asked, place: int) -> RowColumns:
    """What only attention has: M, F, Γ of weights, the share of it on opposed words; sinks, the ceiling, sums of M."""
    batch, removed, unweighted = asked.batch, asked.effects.removed[place], asked.effects.unweighted[place]
    effect = removed.square().nansum(-1)
    missed, moved = (x.square().nansum(-1) for x in (removed - unweighted, unweighted))
    there = ~removed.isnan()
    mass, against = (
        attention.where(there, 0.0),
        removed < -ROUNDING * removed.abs().nan_to_num(0.0).amax(-1, keepdim=True),
    )
    idle = idle_words(attention, asked.plain, batch.lengths)
    carried = SCALES[place] == "log-odds"
    return {
        "reads": mediation_share(removed, unweighted),
        "carries": carried_by_differences(asked.whole, batch, removed, idle) if carried else None,
        "locates": gini_correlation(attention, unweighted.abs()).where(moved >= UNREAD**2 * effect, torch.nan),
        "opposed": (mass * against).sum(-1) / mass.sum(-1).where(mass.sum(-1) > 0, torch.nan),
        "ceiling": gini_correlation(asked.best, removed.abs()),
        "ranks_active": gini_correlation(attention.where(~idle, torch.nan), removed.abs()),
        "effect": effect, "missed": missed, "moved": moved,
    }  # fmt: skip


def _sinks(attention: Tensor, asked: Asked, texts: Sequence[Sequence[str]]) -> RowColumns:
    """How much of the weight idle words have, and the one that has most: its place in the text, and which it is."""
    words, idle = asked.batch.words, idle_words(attention, asked.plain, asked.batch.lengths)
    weights = attention.where(words, 0.0)
    on_idle = weights.where(idle, 0.0)
    total, (most, token) = weights.sum(-1), on_idle.max(-1)
    at = (words.cumsum(-1) - 1).gather(-1, token[:, None])[:, 0].where(most > 0, -1)
    return {
        "idle": on_idle.sum(-1) / total.where(total > 0, torch.nan),
        "idle_place": at.double().where(at >= 0, torch.nan),
        "idle_word": [text[i] if i >= 0 else None for text, i in zip(texts, at.tolist(), strict=True)],
    }


NUMBERS = (
    "ranks", "ceiling", "ranks_active", "reads", "carries", "locates", "opposed", "idle", "idle_place", "effect",
    "missed", "moved", "largest",
)  # fmt: skip
WHOLE, SAID = ("example", "n", "words"), (*SPECIFICATION, "method", "predicted", "idle_word")
SCHEMA = pl.Schema(
    dict.fromkeys(WHOLE, pl.Int64)
    | dict.fromkeys(SAID, pl.String)
    | dict.fromkeys(NUMBERS, pl.Float64)
    | {"void": pl.Boolean}
)


def _frame(parts: Sequence[RowColumns]) -> pl.DataFrame:
    """All columns as rows, one part after the other; what a part doesn't have is null."""
    sizes = [len(part["example"]) for part in parts]
    columns = {name: _joined([part.get(name) for part in parts], sizes) for name in SCHEMA}
    return pl.DataFrame(columns, schema=SCHEMA).with_columns(pl.col(pl.Float64).fill_nan(None))


def _joined(parts: Sequence[Tensor | list[Any] | str | None], sizes: Sequence[int]) -> Any:
    """A column of many parts: numbers, words, null where there are none, or what is the same for a whole part."""
    if any(isinstance(part, str | list) for part in parts):
        return [
            value
            for part, size in zip(parts, sizes, strict=True)
            for value in (part if isinstance(part, list) else [part] * size)
        ]
    filled = [
        part.cpu() if isinstance(part, Tensor) else torch.full((size,), torch.nan, dtype=torch.float64)
        for part, size in zip(parts, sizes, strict=True)
    ]
    return torch.cat(filled).numpy() if filled else []


def portions(examples: Sequence[Example]) -> Iterator[list[int]]:
    """Texts that are long enough, short ones first, some at a time: their places among those given."""
    some: list[int] = []
    order = sorted(range(len(examples)), key=lambda i: len(examples[i]))
    for i in (i for i in order if len(examples[i]) >= LEAST):
        if some and (len(some) == TEXTS or (len(some) + 1) * len(examples[i]) > WORDS):
            yield some
            some = []
        some.append(i)
    if some:
        yield some
