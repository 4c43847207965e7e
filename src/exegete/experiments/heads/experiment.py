"""Heads: which heads does a prediction hang on, and where do they look? (Michel et al. 2019, Clark et al. 2019)

One head after the other gives nothing (`silence`), or gives only what it takes from sinks (`silence:sinks=false`), or
the mean of all tokens (`uniform`), in all texts, at inference. Per text and head

    loss = log-odds of ĉ as the model is − log-odds of ĉ with the head silenced,   log-odds = log p_ĉ / (1 − p_ĉ)

ĉ being the class predicted by the model as it is, and whether the prediction is still right. Beside it where the head
looks (`patterns`), how sensitive the loss is to it, and how far the weights that it gives to words rank them as an
importance does. At last heads are pruned, ever more of them, the least important first (`pruning`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.experiment import Question
from exegete.experiments.common.one_site import predict_each
from exegete.experiments.common.side_by_side import float_column
from exegete.experiments.heads.looks import LOOKS, look_at_heads
from exegete.experiments.heads.pruning import (
    Step,
    all_heads,
    by_chance,
    by_sensitivity,
    other_texts,
    silence_heads,
    stairs,
)
from exegete.experiments.heads.tables import PRUNED, UNALTERED, correlations, head_effects, look_table, pruning_curve
from exegete.interventions.catalogue import INTERVENTIONS
from exegete.interventions.restriction import AtHeads
from exegete.interventions.sites import Head
from exegete.measures.divergence import class_log_odds
from exegete.models.capabilities import SelfAttentive, Writing
from exegete.models.contract import Predictor
from exegete.tasks.example import Task
from exegete.training.evaluation import predict

SCHEMA: dict[str, Any] = {
    "how": pl.String,  # unaltered, an intervention, or pruned
    "site": pl.String,
    "layer": pl.Int64,  # of the head's site among all, from 0
    "head": pl.Int64,
    "order": pl.String,  # of pruned heads
    "gone": pl.Int64,
    "of": pl.Int64,  # heads that there are
    "right": pl.Float64,
    "value": pl.Float64,  # the loss of log-odds
} | dict.fromkeys(LOOKS, pl.Float64)


@dataclass(frozen=True)
class Heads(Question):
    """What each head is worth, and where it looks."""

    needs_labels = True

    how: tuple[str, ...] = ("silence", "silence:sinks=false")  # what is done to a head; the first is drawn
    importance: str = "leave_one_out"  # whose ranking of words is held against a head's weights; empty: none
    steps: int = 10  # of the curve of pruned heads; 0: no curve
    draws: int = 3  # random orders of pruning, beside the one by sensitivity
    order_texts: int = 64  # of another split: the order of pruning is found on them
    seed: int = 0
    texts: int | None = 200

    def __post_init__(self) -> None:
        if not self.how or len(set(self.how)) < len(self.how):
            raise UsageError("experiment 'heads': how names what is done to a head, each way once")
        for name, least in (("steps", 0), ("draws", 0), ("order_texts", 1)):
            if getattr(self, name) < least:
                raise UsageError(f"experiment 'heads': {name} is {least} or more, not {getattr(self, name)}")
        for way in self.how:
            INTERVENTIONS.make(way)  # a name that isn't there is refused before anything is computed

    @property
    def importances(self) -> tuple[str, ...]:
        """The one that heads are held against."""
        return (self.importance,) if self.importance else ()

    def unsuited(self, task: Task, model: Predictor) -> str | None:  # noqa: ARG002
        """There must be a class, and layers of self-attention."""
        if isinstance(model, Writing) or not (isinstance(model, SelfAttentive) and model.self_attention):
            return (
                "it silences heads of self-attention, layer by layer, and this model has no layers of it that predict "
                "a class: ask necessity or permutation"
            )
        return None

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example and head as it is and silenced in each way, and per example and step of pruning."""
        if (reason := self.unsuited(subject.task, subject.model)) is not None:
            raise UsageError(f"experiment 'heads': {reason}")
        heads = all_heads(subject.model, subject.examples[0])
        own = class_log_odds(predict(subject.model, subject.examples), subject.predicted)
        asked = _AskedHeads(subject, heads, own)
        scores = subject.scores.get(self.importance)
        parts = [asked.as_it_is(look_at_heads(subject, heads, scores))]
        parts += asked.silenced(self.how)
        parts += self._pruned(asked)
        return pl.concat(parts).sort("example", maintain_order=True)

    def _pruned(self, asked: "_AskedHeads") -> list[pl.DataFrame]:
        if not self.steps:
            return []
        sizes = stairs(len(asked.heads), self.steps)
        texts = other_texts(asked.subject, self.order_texts)
        steps = [
            *by_sensitivity(asked.subject.model, texts, asked.heads, sizes),
            *by_chance(asked.heads, sizes, self.seed, self.draws),
        ]
        together: dict[tuple[str, int], list[Step]] = {}
        for step in steps:
            together.setdefault((step.order, len(step.gone)), []).append(step)
        return [asked.pruned(some) for some in together.values()]

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By way and head: n, the mean loss of log-odds with its interval, accuracy and its change; 0 is no effect."""
        return head_effects(rows)

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """Where heads look, how that goes with what they are worth, and the curve of pruned heads."""
        return {
            "looks": look_table(rows),
            "correlations": correlations(rows, self.how[0]),
            **({"pruning": pruning_curve(rows)} if self.steps else {}),
        }

    def figures(self, rows: pl.DataFrame, summary: pl.DataFrame) -> Mapping[str, Any]:
        """Grids of layers and heads, and the curve."""
        from exegete.experiments.heads import figure

        charts = {"heads": figure.grid_of(summary), "looks": figure.looks(look_table(rows))}
        return charts | ({"pruning": figure.pruning(pruning_curve(rows))} if self.steps else {})


@dataclass(frozen=True)
class _AskedHeads:
    """Texts, the heads of a model, and the log-odds of its predictions as it is."""

    subject: Subject
    heads: Sequence[Head]
    own: Tensor  # [example]

    def as_it_is(self, found: Mapping[str, Tensor]) -> pl.DataFrame:
        """A row per head, with where it looks."""
        right = _right(self.subject, self.subject.predicted)
        parts = [
            self._frame({"how": UNALTERED, **self._named(head)}, right, torch.zeros_like(self.own)).with_columns(
                **{name: float_column(found[name][:, place]) for name in LOOKS}
            )
            for place, head in enumerate(self.heads)
        ]
        return pl.concat(parts)

    def silenced(self, ways: Sequence[str]) -> list[pl.DataFrame]:
        """What is left without each head, in each way: heads of a site together, for below it all is as it was."""
        every = {(way, head): AtHeads((head,), INTERVENTIONS.make(way)) for way in ways for head in self.heads}
        found: dict[tuple[str, Head], Tensor] = {}
        for site in dict.fromkeys(head.site for head in self.heads):
            here = {key: at for key, at in every.items() if key[1].site == site}
            logits = predict_each(self.subject.model, self.subject.examples, site, list(here.values()))
            found |= zip(here, logits, strict=True)
        return [self._left([found[way, head]], {"how": way, **self._named(head)}) for way, head in every]

    def pruned(self, steps: Sequence[Step]) -> pl.DataFrame:
        """What is left without some heads: the mean over orders of one kind."""
        said = {"how": PRUNED, "order": steps[0].order, "gone": len(steps[0].gone)}
        return self._left(
            [predict(self.subject.model, self.subject.examples, silence_heads(s.gone)) for s in steps], said
        )

    def _left(self, logits: Sequence[Tensor], said: Mapping[str, Any]) -> pl.DataFrame:
        """What was predicted, [example, class] each: means."""
        right = torch.stack([_right(self.subject, each.argmax(-1)) for each in logits]).mean(0)
        loss = self.own - torch.stack([class_log_odds(each, self.subject.predicted) for each in logits]).mean(0)
        return self._frame(said, right, loss)

    def _named(self, head: Head) -> dict[str, Any]:
        sites = list(dict.fromkeys(each.site for each in self.heads))
        return {"site": head.site, "layer": sites.index(head.site), "head": head.head}

    def _frame(self, said: Mapping[str, Any], right: Tensor, loss: Tensor) -> pl.DataFrame:
        whole = {"of": len(self.heads), **said}
        columns = [pl.lit(whole.get(name), kind).alias(name) for name, kind in SCHEMA.items()]
        frame = pl.DataFrame(self.subject.facts()).with_columns(*columns)
        return frame.with_columns(right=float_column(right), value=float_column(loss))


def _right(subject: Subject, predicted: Tensor) -> Tensor:
    """1.0 where a prediction is the gold class: [example], float64."""
    return (predicted == torch.tensor([e.label for e in subject.examples])).double()
