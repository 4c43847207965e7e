"""Sanity: do the scores depend on what the model has learnt? (Adebayo et al. 2018, Kindermans et al. 2017)

Three questions. *Randomisation*: layers lose what they learnt, from the decoder down or one at a time; a method whose
ranking stays has not looked at them. *Shift*: the same function in other coordinates must get the same scores. *Axioms*
(Sundararajan et al. 2017): what must hold on functions whose answer is known.

The class explained is always the one that the trained model predicts. Random scores are the control: they don't know
the model, so nothing changes them, and the test must find that.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import ExegeteError, UsageError
from exegete.base.noise import stable_seed
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.experiment import Question
from exegete.experiments.common.summaries import by_keys, columns, interval_of, number
from exegete.experiments.sanity.axioms import axioms
from exegete.experiments.sanity.rescoring import compared, scored
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import Importance, refusal
from exegete.models.ours.perturbed import parts, randomised, shifted, unshiftable

METHODS = (
    "attention", "attention_x_gradient", "attention_x_norm", "gradient:norm=l2", "gradient_x_input", "smoothgrad",
    "integrated_gradients", "lrp", "deeplift", "occlusion", "leave_one_out:of=logit", "replacement",
    "lime:samples=200", "kernel_shap:samples=200", "random",
)  # fmt: skip
KEYS = ("task", "model", "method", "test", "part")
EQUAL = 1e-4  # how far apart the logits of a shifted model may be, relative to the largest: float32 over a long text
TOLERANCE = 0.01  # up to here a number counts as 0
_SCHEMA = {
    "example": pl.Int64, "n": pl.Int64, "gold": pl.String, "predicted": pl.String,
    "method": pl.String, "test": pl.String, "part": pl.String, "draw": pl.Int64,
    "tau": pl.Float64, "tau_absolute": pl.Float64, "unchanged": pl.Boolean, "value": pl.Float64,
}  # fmt: skip


class Perturbation(NamedTuple):
    """The model in another state, and which parts of which tests that state is."""

    state: AbstractContextManager[None]
    of: tuple[tuple[str, str], ...]  # (test, part)
    draw: int = 0


@dataclass(frozen=True)
class Sanity(Question):
    """How much of a ranking of words is left when the model is not what it was."""

    methods: tuple[str, ...] = METHODS
    texts: int | None = 100
    draws: int = 3  # of random weights: a single random layer can turn a ranking round by luck
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.methods or len(set(self.methods)) < len(self.methods):
            raise UsageError("experiment 'sanity': name at least one importance in `methods`, and each only once")
        if self.draws < 1:
            raise UsageError(f"experiment 'sanity' needs draws of 1 or more, not {self.draws}")
        for name in self.methods:
            IMPORTANCES.make(name)

    @property
    def builds(self) -> tuple[str, ...]:
        """Methods that are asked again, here."""
        return self.methods

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example, method, perturbation and draw; one without example for every axiom on a toy function.

        `value` is the change of the scores relative to the largest; for axioms their number (see `axioms_table`).
        """
        built = {name: IMPORTANCES.make(name) for name in self.methods}
        allowed = {name: method for name, method in built.items() if refusal(method, subject.model) is None}
        if not allowed:
            raise UsageError("experiment 'sanity': no importance in `methods` is for this model: name others")
        before = scored(subject, allowed)
        frames = [_toys(name, method) for name, method in allowed.items()]
        for name, found in before.items():
            if found.error is not None:
                frames.append(_frame(subject, (name, "completeness", "", 0), {"value": found.error}))
        for state, of, draw in self.perturbations(subject):
            with state:
                after = scored(subject, allowed)
            for name in allowed:
                measured = compared(before[name].values, after[name].values)
                frames += [_frame(subject, (name, test, part, draw), measured) for test, part in of]
        return pl.concat(frames)

    def perturbations(self, subject: Subject) -> Iterator[Perturbation]:
        """From the decoder down, each layer alone (the decoder is both), and the shift, where the model has one."""
        model = subject.model
        names = parts(model)
        for draw in range(self.draws):
            seed = stable_seed("sanity", self.seed, draw)
            for last, name in enumerate(names):
                both = (("cascade", name), ("independent", name))
                yield Perturbation(randomised(model, names[: last + 1], seed), both if last == 0 else both[:1], draw)
            for name in names[1:]:
                yield Perturbation(randomised(model, (name,), seed), (("independent", name),), draw)
        if unshiftable(model) is None:
            check_shift(subject, self.seed)
            yield Perturbation(shifted(model, self.seed), (("shift", "embedding"),))

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By method, test and part: n, mean τ with interval, τ of absolute scores, texts unchanged, change."""
        compared = rows.filter(pl.col("unchanged").is_not_null())
        return by_keys(compared, KEYS, _numbers)

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """Which axioms each method keeps."""
        return {"axioms": axioms_table(rows)}

    def figures(self, rows: pl.DataFrame, summary: pl.DataFrame) -> Mapping[str, Any]:
        """What is left of every method's ranking as layer after layer is drawn anew."""
        from exegete.experiments.sanity.figure import randomisation

        del rows  # drawn from the summary alone
        return {"randomisation": randomisation(summary)}


def check_shift(subject: Subject, seed: int) -> None:
    """A shifted model must predict what the model predicts, or the test would blame methods for our mistake."""
    model = subject.model
    longest = max(subject.examples, key=len)
    batch = model.collate([longest, *subject.examples[:31]])
    with torch.no_grad():
        before = model.logits(batch)
        with shifted(model, seed):
            apart = (model.logits(batch) - before).abs().max() / before.abs().max().clamp(min=1)
    if not apart < EQUAL:
        raise ExegeteError(f"the shifted model is not the same function: its logits differ by {apart:.1e}")


def _toys(name: str, method: Importance) -> pl.DataFrame:
    """The numbers of the axioms on toy functions, which have no example."""
    found = [{"method": name, "test": axiom, "part": "", "value": value} for axiom, value in axioms(method).items()]
    return pl.DataFrame(found, schema=_SCHEMA)


def _frame(subject: Subject, what: tuple[str, str, str, int], found: Mapping[str, Tensor]) -> pl.DataFrame:
    """Rows of one method, test, part and draw; what is undefined is null."""
    labels, n = subject.task.labels, len(subject.examples)
    facts = {
        "example": [e.id for e in subject.examples],
        "n": [len(e) for e in subject.examples],
        "gold": [labels[e.label] for e in subject.examples],
        "predicted": [labels[c] for c in subject.predicted.tolist()],
    } | {key: [value] * n for key, value in zip(("method", "test", "part", "draw"), what, strict=True)}
    measured = {
        name: found[name].tolist() if name in found else [None] * n
        for name in ("tau", "tau_absolute", "unchanged", "value")
    }
    return pl.DataFrame(facts | measured, schema=_SCHEMA).with_columns(pl.col("tau", "tau_absolute").fill_nan(None))


def _numbers(group: pl.DataFrame) -> dict[str, float | int | None]:
    """Of each text the mean over the draws; the interval is over texts (and seeds)."""
    by_text = group.group_by("seed", "example", maintain_order=True).agg(pl.col("tau").mean().alias("value"))
    interval = interval_of(columns(by_text.with_columns(every=pl.lit(0)), ["every"]).values[0], bound=1.0)
    return {
        "seeds": group["seed"].n_unique(),
        "draws": group["draw"].n_unique(),
        "n": interval.n,
        "undefined": by_text["value"].null_count(),
        "mean": number(by_text["value"].mean()),
        "low": number(interval.low),
        "high": number(interval.high),
        "absolute": number(group["tau_absolute"].mean()),
        "unchanged": number(group["unchanged"].mean()),
        "change": number(group["value"].mean()),
    }


def axioms_table(rows: pl.DataFrame) -> pl.DataFrame:
    """Method × axiom: its number and whether it holds; a completeness error and a shift are means over texts.

    All numbers must be 0 (up to 0.01) but that of sensitivity: the share of the scores that the one word gets that
    matters, which must not be 0. `shift` is the share of texts whose ranking the shift changed.
    """
    keys = ["task", "model", "method", "test"]
    shift = rows.filter(pl.col("test") == "shift").with_columns(value=1.0 - pl.col("unchanged").cast(pl.Float64))
    known = rows.filter(pl.col("test").is_in(["completeness", "sensitivity", "dummy", "implementation"]))
    found = pl.concat([known, shift.select(known.columns)]).group_by(keys, maintain_order=True)
    small = pl.col("number") <= TOLERANCE
    table = found.agg(pl.col("value").mean().alias("number"), pl.col("example").drop_nulls().n_unique().alias("texts"))
    return table.rename({"test": "axiom"}).with_columns(
        holds=pl.when(pl.col("axiom") == "sensitivity").then(~small).otherwise(small)
    )
