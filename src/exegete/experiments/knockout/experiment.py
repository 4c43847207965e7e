"""Knockout: in which layers does a word reach the prediction? (Geva et al. 2023, section 5)

The edges to one word are cut in a window of layers, with all positions kept: those of every token (`all`), or those of
the token from which the prediction is read alone (`readout`: CLS, or the last one), which says where the word is read
directly rather than through others. Per text, word and window

    loss = ± (log-odds of ĉ as the model is − log-odds of ĉ with the edges cut)

ĉ being the class predicted by the model as it is, with the sign that the same loss has where the word is cut at all
sites: above 0 the window does a part of that. Words are a keyed choice of so many of a text; the one that does most
where it is cut everywhere is the `strongest`, all others are told beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.base.noise import stable_seed, uniform
from exegete.base.places import places
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.experiment import Question
from exegete.experiments.common.side_by_side import float_column
from exegete.experiments.common.summaries import by_keys
from exegete.experiments.common.tallies import mean_with_interval
from exegete.interventions.cut import Cut
from exegete.measures.divergence import class_log_odds
from exegete.models.capabilities import SelfAttentive, Writing
from exegete.models.contract import Predictor, Readout
from exegete.tasks.batching import Batch
from exegete.tasks.example import Task
from exegete.training.evaluation import prediction_passes

EdgeSource = Literal["all", "readout"]
CELL = ("task", "model", "split")
KEYS = (*CELL, "words", "source", "first", "last", "of")
STRONGEST, OTHERS = "strongest", "others"


class Window(NamedTuple):
    """Whose edges are cut, and where."""

    source: EdgeSource
    first: int | None  # layer; None: at all sites
    last: int | None
    sites: tuple[str, ...] | None


@dataclass(frozen=True)
class Knockout(Question):
    """What cutting the edges to a word costs, window by window."""

    window: int = 3  # layers that are cut together
    sources: tuple[EdgeSource, ...] = ("all", "readout")
    words: int = 6  # of a text that are asked about, at most
    seed: int = 0  # of the choice of words
    texts: int | None = 100
    of_summary = ("windows",)

    def __post_init__(self) -> None:
        for name in ("window", "words"):
            if getattr(self, name) < 1:
                raise UsageError(f"experiment 'knockout': {name} is 1 or more, not {getattr(self, name)}")
        if not self.sources or len(set(self.sources)) < len(self.sources):
            raise UsageError("experiment 'knockout': sources are all and readout, each once")

    def unsuited(self, task: Task, model: Predictor) -> str | None:  # noqa: ARG002
        """There must be a class, and layers of self-attention."""
        if isinstance(model, Writing) or not (isinstance(model, SelfAttentive) and model.self_attention):
            return (
                "it cuts edges between tokens, layer by layer, and this model has no layers of self-attention that "
                "predict a class: ask permutation or single_weight"
            )
        return None

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example, word, source and window, and one with the word cut at all sites."""
        if (reason := self.unsuited(subject.task, subject.model)) is not None:
            raise UsageError(f"experiment 'knockout': {reason}")
        windows = self._windows(subject.model)
        parts = [
            self._asked(subject, members, windows)
            for several in prediction_passes(subject.model, subject.examples)
            for members in _cut_up(several, max(1, len(several) // self.words))  # a text is copied for every word
        ]
        return pl.concat(parts).sort("example", "place", maintain_order=True)

    def _windows(self, model: Predictor) -> list[Window]:
        """All sites first; then windows of neighbouring layers, from the words up, by source."""
        assert isinstance(model, SelfAttentive)
        layers = model.self_attention
        size = min(self.window, len(layers))
        query = None if model.readout is None else model.readout.query
        sources = [source for source in self.sources if source == "all" or query in ("first", "last")]
        return [
            Window("all", None, None, None),
            *(
                Window(source, first, first + size - 1, layers[first : first + size])
                for source in sources
                for first in range(len(layers) - size + 1)
            ),
        ]

    def _asked(self, subject: Subject, members: Sequence[int], windows: Sequence[Window]) -> pl.DataFrame:
        """Every window for the words of some texts."""
        model, label = subject.model, subject.predicted[list(members)]
        batch = model.collate([subject.examples[i] for i in members])
        text, token = knockout_words(batch, self.words, self.seed).nonzero(as_tuple=True)
        word, here = places(batch.tokens) == token[:, None], text.cpu()  # [ask, token]; what is counted is on the CPU
        with torch.no_grad():
            own = class_log_odds(model.logits(batch).cpu(), label)[here]
            copies = batch.rows(text)
            cuts = (_cut(each, word, model.readout) for each in windows)
            found = [own - class_log_odds(model.logits(copies, intervene=cut).cpu(), label[here]) for cut in cuts]
        everywhere = found[0]
        strongest = _strongest(everywhere.abs(), here)
        said = {
            "place": (batch.words.cumsum(-1) - 1)[text, token].tolist(),
            "words": [STRONGEST if first else OTHERS for first in strongest.tolist()],
        }
        facts = pl.DataFrame(subject.facts())[[members[i] for i in text.tolist()]].with_columns(
            **{name: pl.Series(values) for name, values in said.items()}
        )
        of = len(model.self_attention) if isinstance(model, SelfAttentive) else 0
        return pl.concat(
            [
                facts.with_columns(
                    source=pl.lit(each.source),
                    first=pl.lit(each.first, pl.Int64),
                    last=pl.lit(each.last, pl.Int64),
                    of=pl.lit(of, pl.Int64),
                    value=float_column(everywhere.sign() * loss),
                )
                for each, loss in zip(windows, found, strict=True)
            ]
        )

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By words, source and window: seeds, n, mean loss and its interval over texts; 0 is no effect.

        Of several words of a text the mean is taken first. `first` and `last` are null where all sites are cut.
        """
        keys = [*KEYS, "seed", "example"]
        texts = rows.group_by(keys, maintain_order=True).agg(pl.col("value").mean())
        return by_keys(texts, KEYS, lambda group: mean_with_interval(group, "value", least=-torch.inf, most=None))


def _cut(window: Window, word: Tensor, readout: Readout | None) -> Cut:
    return Cut(word, window.sites, readout if window.source == "readout" else None)


def knockout_words(batch: Batch, most: int, seed: int) -> Tensor:
    """At most so many words of every text, at random, by text and place: [batch, token]."""
    noise = uniform(stable_seed("knockout", seed), batch.ids[:, None], batch.words.cumsum(-1))
    rank = noise.masked_fill(~batch.words, torch.inf).argsort(-1).argsort(-1)
    return batch.words & (rank < most)


def _cut_up(members: list[int], size: int) -> list[list[int]]:
    return [members[start : start + size] for start in range(0, len(members), size)]


def _strongest(size: Tensor, text: Tensor) -> Tensor:
    """Whether a word has the largest size of its text, the first of equals: [ask]."""
    found = torch.zeros_like(size, dtype=torch.bool)
    for each in text.unique():
        own = (text == each).nonzero()[:, 0]
        found[own[size[own].argmax()]] = True
    return found
