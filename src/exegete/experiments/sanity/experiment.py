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
from typing import Literal, NamedTuple

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import ExegeteError, UsageError
from exegete.base.noise import stable_seed
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.experiment import Question
from exegete.experiments.common.summaries import by_keys, columns, interval_of, or_none
from exegete.experiments.sanity.axioms import axioms
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.checks import finite
from exegete.importance.contract import Importance, Quantity, Target, refusal
from exegete.importance.sharing import sharing
from exegete.measures.rank import kendall
from exegete.models.ours.perturbations import parts, randomise, shift_weights, unshiftable
from exegete.tasks.batching import batches_of_one_length

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

    of_summary = ("randomisation",)

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
        before = score_words(subject, allowed)
        frames = [_toys(name, method) for name, method in allowed.items()]
        for name, found in before.items():
            if found.error is not None:
                frames.append(_frame(subject, (name, "completeness", "", 0), {"value": found.error}))
        for state, of, draw in self.perturbations(subject):
            with state:
                after = score_words(subject, allowed)
            for name in allowed:
                measured = compare_scores(before[name].values, after[name].values)
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
                yield Perturbation(randomise(model, names[: last + 1], seed), both if last == 0 else both[:1], draw)
            for name in names[1:]:
                yield Perturbation(randomise(model, (name,), seed), (("independent", name),), draw)
        if unshiftable(model) is None:
            check_shift(subject, self.seed)
            yield Perturbation(shift_weights(model, self.seed), (("shift", "embedding"),))

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By method, test and part: n, mean τ with interval, τ of absolute scores, texts unchanged, change."""
        compared = rows.filter(pl.col("unchanged").is_not_null())
        return by_keys(compared, KEYS, _numbers)

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """Which axioms each method keeps."""
        return {"axioms": axioms_table(rows)}


def check_shift(subject: Subject, seed: int) -> None:
    """A shifted model must predict what the model predicts, or the test would blame methods for our mistake."""
    model = subject.model
    longest = max(subject.examples, key=len)
    batch = model.collate([longest, *subject.examples[:31]])
    with torch.no_grad():
        before = model.logits(batch)
        with shift_weights(model, seed):
            apart = (model.logits(batch) - before).abs().max() / before.abs().max().clamp(min=1)
    if not apart < EQUAL:
        raise ExegeteError(f"the shifted model is not the same function: its logits differ by {apart:.1e}")


def _toys(name: str, method: Importance) -> pl.DataFrame:
    """The numbers of the axioms on toy functions, which have no example."""
    found = [{"method": name, "test": axiom, "part": "", "value": value} for axiom, value in axioms(method).items()]
    return pl.DataFrame(found, schema=_SCHEMA)


def _frame(subject: Subject, what: tuple[str, str, str, int], found: Mapping[str, Tensor]) -> pl.DataFrame:
    """Rows of one method, test, part and draw; what is undefined is null."""
    n = len(subject.examples)
    facts = subject.facts() | {
        key: [value] * n for key, value in zip(("method", "test", "part", "draw"), what, strict=True)
    }
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
        "mean": or_none(by_text["value"].mean()),
        "low": or_none(interval.low),
        "high": or_none(interval.high),
        "absolute": or_none(group["tau_absolute"].mean()),
        "unchanged": or_none(group["unchanged"].mean()),
        "change": or_none(group["value"].mean()),
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


CLOSE = 1e-3  # of the largest score: words that are nearer than that have no order that rounding couldn't turn


class Rescored(NamedTuple):
    """What one method says of all texts."""

    values: Tensor  # [example, word], NaN beyond a text's end
    error: Tensor | None  # [example], where the method states one


def score_words(subject: Subject, methods: Mapping[str, Importance]) -> dict[str, Rescored]:
    """All words of all texts by every method, for the class that `subject` holds, whatever the model predicts now."""
    model, n = subject.model, len(subject.examples)
    longest = max(map(len, subject.examples), default=0)
    values = {name: torch.full((n, longest), torch.nan, dtype=torch.float64) for name in methods}
    errors = {name: torch.full((n,), torch.nan, dtype=torch.float64) for name in methods}
    for members in batches_of_one_length(subject.examples, size=64, budget=4096):
        batch = model.collate([subject.examples[i] for i in members])
        width, label = len(subject.examples[members[0]]), subject.predicted[members].to(batch.ids.device)
        with sharing():
            for name, method in methods.items():
                found = method(model, batch, Target(label, of=_quantity(method)))
                finite(name, found, batch)
                values[name][members, :width] = found.values[batch.words].double().view(len(members), width).cpu()
                if found.error is not None:
                    errors[name][members] = found.error.double().cpu()
    return {name: Rescored(values[name], None if errors[name].isnan().all() else errors[name]) for name in methods}


def _quantity(method: Importance) -> Quantity:
    """What a method explains by its own settings; the change of all classes together is one of probabilities."""
    of: Quantity | Literal["tvd"] = getattr(method, "of", "logit")
    return "probability" if of == "tvd" else of


def compare_scores(before: Tensor, after: Tensor) -> dict[str, Tensor]:
    """Of [example, word] twice: τ-b of the scores and of their size, whether the ranking stayed, and the change.

    The change is max |after − before|, relative to the largest score of either: 0 for equal scores, at most 2.
    """
    largest = torch.maximum(_largest(before), _largest(after))
    return {
        "tau": kendall(before, after).tau,
        "tau_absolute": kendall(before.abs(), after.abs()).tau,
        "unchanged": torch.tensor([_same_order(*pair) for pair in zip(before, after, strict=True)], dtype=torch.bool),
        "value": torch.where(largest > 0, _largest(after - before) / largest, 0.0),
    }


def _largest(values: Tensor) -> Tensor:
    """max |value| of every text; 0 for a text without words."""
    return torch.nn.functional.pad(values, (0, 1)).nan_to_num().abs().amax(-1)


def _same_order(before: Tensor, after: Tensor) -> bool:
    """Whether two words that one list keeps apart, by more than rounding could, are in that order in the other."""
    a, b = (_apart(values[~values.isnan()]) for values in (before, after))
    return not bool((((a > CLOSE) & (b <= 0)) | ((b > CLOSE) & (a <= 0))).any())


def _apart(values: Tensor) -> Tensor:
    """All differences of the scores of a text, relative to the largest score: [word, word]."""
    largest = _largest(values)
    return (values[:, None] - values) / torch.where(largest > 0, largest, 1.0)
