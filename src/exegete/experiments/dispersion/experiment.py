"""Dispersion: is sparse attention over hidden states a sparse choice of words? (Meister et al. 2021)

Attention weighs states, and a state is made of many words. Four questions, for dense and sparse projections alike: how
evenly does importance spread over the words (normalised entropy H̃), for the output and for every state; what is a
word's share in its own state; does attention rank words as their importance does, and states as theirs; and how do
these numbers move with the dial of sparsity, sparsegen's λ.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.base.names import parse
from exegete.base.places import places
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.experiment import Question
from exegete.experiments.dispersion.state_importance import Output, state_importance
from exegete.experiments.dispersion.state_jacobian import own_word, word_shares
from exegete.experiments.dispersion.summary import (
    COEFFICIENTS,
    ENTROPIES,
    OF_STATES,
    PAIRS,
    paper_tables,
    summarise_dispersion,
    with_dials,
)
from exegete.measures.divergence import normalised_entropy
from exegete.measures.rank import kendall, tau
from exegete.models.capabilities import Pooling
from exegete.models.contract import Predictor
from exegete.models.openings import unpooled
from exegete.tasks.batching import batches_of_one_length
from exegete.tasks.example import Example, Task
from exegete.tasks.selection import choose_texts

ATTENTION, GRADIENT = "attention", "gradient:norm=l2"


@dataclass(frozen=True)
class Dispersion(Question):
    """Entropies of importance, a word's share in its own state, and τ of attention with words and with states."""

    of: Output = "tvd"  # what leave-one-out compares: ½ Σ |Δp|, or |Δ logit| of the predicted class
    detach: bool = False  # which gradient of states the paper's table shows: α part of the function, or constant
    removal: Literal["renormalise", "project"] = "renormalise"  # which leave-one-out of states it shows
    jacobian_texts: int | None = 200  # asked for their states: a backward pass per word; None: all texts
    texts: int | None = None  # all, unless given

    def __post_init__(self) -> None:
        if self.jacobian_texts is not None and self.jacobian_texts < 0:
            raise UsageError(
                "experiment 'dispersion': jacobian_texts is a number of texts, 0 or more, or nothing for all of them, "
                f"not {self.jacobian_texts}"
            )

    @property
    def leave_one_out(self) -> str:
        """The importance of inputs by deletion."""
        return "leave_one_out" if self.of == "tvd" else f"leave_one_out:of={self.of}"

    @property
    def importances(self) -> tuple[str, ...]:
        """Attention, the L2 norm of the gradient with attention part of the function, and leave-one-out."""
        return (ATTENTION, GRADIENT, self.leave_one_out)

    @property
    def builds(self) -> tuple[str, ...]:
        """None by name: importances of states are made here."""
        return ()

    def unsuited(self, task: Task, model: Predictor) -> str | None:
        """The last attention must pool states, one per word."""
        reason = unpooled(model)
        if reason is not None:
            return reason
        assert isinstance(model, Pooling)
        first = next((e for examples in task.splits.values() for e in examples if len(e)), None)
        return None if first is None else _unaligned(model, first)

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example; null where something is undefined (one word, all alike) or was not asked."""
        reason = self.unsuited(subject.task, subject.model)
        if reason is not None:
            raise UsageError(f"experiment 'dispersion' can't be asked about this model: {reason}")
        for name in self.importances:
            if name in subject.refused:
                raise UsageError(f"experiment 'dispersion' needs {name}: {subject.refused[name]}")
        frame = pl.DataFrame(_text_columns(subject))
        found = self._entropies(subject) | self._states(subject) | self._coefficients(subject)
        columns = {name: pl.Series(value.double().numpy()).fill_nan(None) for name, value in found.items()}
        asked = self._asked(subject)
        return frame.with_columns(jacobian=pl.Series([e.id in asked for e in subject.examples]), **columns)

    def _asked(self, subject: Subject) -> set[int]:
        """The texts whose states are asked: a keyed choice of the whole split, whatever the shard."""
        return {e.id for e in choose_texts(subject.task.split(subject.split), self.jacobian_texts)}

    def _entropies(self, subject: Subject) -> dict[str, Tensor]:
        """H̃ of attention, of the gradient and of leave-one-out over the words."""
        return {
            f"entropy_{name}": normalised_entropy(normalise_words(subject.scores[importance].abs()))
            for name, importance in zip(ENTROPIES, self.importances, strict=True)
        }

    def _states(self, subject: Subject) -> dict[str, Tensor]:
        """Means over the states of a text: H̃ of the words' importance for a state; share and rank of its own word."""
        assert isinstance(subject.model, Pooling)
        asked = self._asked(subject)
        examples, places = subject.examples, [i for i, e in enumerate(subject.examples) if e.id in asked and len(e) > 1]
        found = {name: torch.full((len(examples),), torch.nan, dtype=torch.float64) for name in OF_STATES}
        for members in batches_of_one_length([examples[i] for i in places], size=64, budget=4096):
            rows = torch.tensor([places[i] for i in members])
            shares = word_shares(subject.model, subject.model.collate([examples[i] for i in rows.tolist()]))
            of_states = (normalised_entropy(shares), *own_word(shares))  # [text, state] each
            for target, values in zip(found.values(), of_states, strict=True):
                target[rows] = values.nanmean(-1).cpu()
        return found

    def _coefficients(self, subject: Subject) -> dict[str, Tensor]:
        """τ-b of attention with every importance of words and states, its ceiling, their ratio, γ, and τ-b inside."""
        assert isinstance(subject.model, Pooling)
        alpha = subject.scores[ATTENTION]
        states = state_importance(subject.model, subject.examples, subject.predicted, self.of)
        width = alpha.shape[1]
        inputs = (subject.scores[name].abs() for name in self.importances[1:])
        others = (*inputs, *(torch.nn.functional.pad(s, (0, width - s.shape[1]), value=torch.nan) for s in states))
        found: dict[str, Tensor] = {}
        for pair, other in zip(PAIRS, others, strict=True):
            table = kendall(alpha, other)
            inside = tau(alpha.where(alpha > 0, torch.nan), other.where(alpha > 0, torch.nan))
            values = (table.tau, table.maximum, table.corrected, table.gamma, inside)
            found |= {f"{name}_{pair}": value for name, value in zip(COEFFICIENTS, values, strict=True)}
        return found

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By task, model and measure: n, number undefined, mean, std, interval, reference; projection and λ."""
        return summarise_dispersion(rows)

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """Tables 1, 3 and 6 in the paper's layout; with three λ or more also table 2, and how all measures move."""
        states = ("gradient_states_detached" if self.detach else "gradient_states", self._removed)
        return paper_tables(rows, states)

    @property
    def _removed(self) -> str:
        return "leave_one_out_states" if self.removal == "renormalise" else "leave_one_out_states_projected"

    def figures(self, rows: pl.DataFrame, summary: pl.DataFrame) -> Mapping[str, Any]:
        """Figures 1, 2 and 4 of the paper; with three λ or more also figure 3, and entropy by λ."""
        from exegete.experiments.dispersion import figure

        states = ("gradient_states_detached" if self.detach else "gradient_states", self._removed)
        charts = {
            "correlation": figure.correlation(summary, states),
            "entropy": figure.entropy(with_dials(rows)),
        }
        if not figure.swept(summary).is_empty():
            charts["correlation_by_lambda"] = figure.correlation_by_lambda(summary, states)
            charts["entropy_by_lambda"] = figure.entropy_by_lambda(summary)
        return charts


def normalise_words(values: Tensor) -> Tensor:
    """Importance as a distribution over the words of every text, [example, word]; NaN where all have none."""
    return values / values.nansum(1, keepdim=True)


def _unaligned(model: Pooling, example: Example) -> str | None:
    """Why words and states don't go together one to one, as a text shows; None if they do."""
    batch = model.collate([example])
    site = model.sites[-1]
    with torch.no_grad():
        trace = model.trace(batch)
    keys, tokens = trace.states[site].shape[1], batch.tokens.shape[1]
    own = trace.owner[site] == places(batch.tokens)
    if keys <= tokens and bool(own[batch.words].all()):
        return None
    return (
        f"it compares every word with its own state, and the last attention of '{parse(model.spec).name}' has {keys} "
        f"keys for {tokens} tokens that are not their states one by one: ask about a model with one state per word, "
        "such as bilstm, bigru, cnn or average"
    )


def _text_columns(subject: Subject) -> dict[str, Any]:
    """What every row says of its text, and of the task's size (table 3)."""
    task = subject.task
    alpha = subject.scores[ATTENTION]
    return {
        **subject.facts(),
        "support": (alpha.nan_to_num(0) > 0).sum(1).tolist(),
        "train_texts": [len(task.splits.get("train", ()))] * len(subject.examples),
        "split_texts": [len(task.split(subject.split))] * len(subject.examples),
    }
