"""Faithfulness: which importance finds the words that a prediction hangs on? (DeYoung et al. 2020)

Every method's words are removed, or kept alone, in three ways: a removal takes texts off the data (Hooker et al. 2019),
so a ranking of methods is believed only if it survives the change of removal. Methods that score words by erasing them
nearly optimise the measure when both erase alike: they are marked, and the best is named also without them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.base.names import parse
from exegete.base.places import places as axis
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.experiment import Question
from exegete.experiments.common.parts import AllRows
from exegete.importance.blocking import unblocked
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.erasure import Removal
from exegete.importance.sharing import sharing
from exegete.measures.faithfulness import (
    FRACTIONS,
    Ranking,
    flips,
    prediction_loss,
    removal_curves,
    without_words,
    word_order,
)
from exegete.measures.robustness import infidelity, sensitivity_max
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example, Task
from exegete.tasks.selection import choose_texts

METHODS = (
    "attention", "attention_x_gradient", "attention_x_norm", "gradient:norm=l2", "gradient_x_input", "smoothgrad",
    "integrated_gradients", "lrp", "deeplift", "occlusion", "leave_one_out:of=logit", "replacement", "lime",
    "kernel_shap", "random",
)  # fmt: skip
TEST = "test"
AOPC = "aopc"  # the mean over fractions
ALL = "all"  # of a measure that has no fractions
NO_REMOVAL = "none"
TEXTS, WORDS = 512, 16_384  # asked about together: bounds memory


class ValueKey(NamedTuple):
    """What a value is of."""

    method: str
    removal: str
    ranking: str
    measure: str
    fraction: str


ValueStream = Iterator[tuple[ValueKey, Tensor]]


class _AskedBatch(NamedTuple):
    """A batch, the class that is explained in each of its texts, and the orders in which words go."""

    model: Predictor
    batch: Batch
    label: Tensor  # [text]
    orders: Tensor  # [order, text, word], each once
    places: dict[tuple[str, Ranking], int]  # which order a method has


@dataclass(frozen=True)
class Faithfulness(Question):
    """What removing the words of every method does to the prediction."""

    methods: tuple[str, ...] = METHODS
    removals: tuple[Removal, ...] = ("delete", "zero", "unknown")
    fractions: tuple[float, ...] = FRACTIONS
    choose_on: str = "dev"  # the split on which the best method is chosen; it is reported on test
    texts: int | None = None  # of each split; all, unless given
    robustness: int = 0  # texts of each split for infidelity and sensitivity_max, which take long
    seed: int = 0  # of the order of ties

    def __post_init__(self) -> None:
        names = {parse(method).name for method in self.methods}
        if not {"attention", "random"} <= names:
            raise UsageError("experiment 'faithfulness' holds methods against attention and random: name both")
        if len(set(self.methods)) < len(self.methods):
            raise UsageError("experiment 'faithfulness': name every method once")
        if not self.removals or len(set(self.removals)) < len(self.removals):
            raise UsageError("experiment 'faithfulness': name at least one removal, and each once")
        if not self.fractions or not all(0 < q <= 1 for q in self.fractions):
            raise UsageError("experiment 'faithfulness': a fraction of the words lies above 0 and is at most 1")
        if self.choose_on == TEST:
            raise UsageError("experiment 'faithfulness': choose the best method on another split than test")
        if self.robustness < 0:
            raise UsageError("experiment 'faithfulness': `robustness` is a number of texts, 0 for none")

    @property
    def importances(self) -> tuple[str, ...]:
        """Every method."""
        return self.methods

    @property
    def builds(self) -> tuple[str, ...]:
        """Methods that are asked again, here."""
        return self.methods if self.robustness else ()

    @property
    def splits(self) -> tuple[str, ...]:
        """One to choose the best method on, one to report it on."""
        return (self.choose_on, TEST)

    def unsuited(self, task: Task, model: Predictor) -> str | None:  # noqa: ARG002
        """Words can be blocked only where they act through attention alone."""
        return unblocked(model) if "blocked" in self.removals else None

    def caveats(self, task: Task) -> list[str]:
        """A word that training never showed has no meaning that could be put in another's place."""
        if "unknown" not in self.removals or task.min_df > 1:
            return []
        return [
            "no training text has an unknown word, so the removal `unknown` is much like `zero`: give the task min_df=2"
        ]

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example, method, removal, ranking, measure and fraction; what is undefined is null."""
        model = subject.model
        found: dict[ValueKey, Tensor] = {}
        few = self._few(subject)  # [example]
        for members in _portions(subject.examples):
            asked = self._asked(model, subject, members)
            for key, values in self._of_batch(asked, subject, members, few[members]):
                column = found.setdefault(key, torch.full((len(subject.examples),), torch.nan, dtype=torch.float64))
                column[members] = values.cpu()
        return _frame(subject, found, few)

    def _asked(self, model: Predictor, subject: Subject, members: Sequence[int]) -> _AskedBatch:
        """A batch and every different order: scores without a sign have the same one by value and by size."""
        batch = model.collate([subject.examples[i] for i in members])
        orders: list[Tensor] = []
        places: dict[tuple[str, Ranking], int] = {}
        for method, values in _scores(self.methods, subject, members).items():
            for by in ("signed", "magnitude"):
                if by == "signed" or subject.signed[method]:
                    orders.append(word_order(values, batch.ids, by, self.seed))
                places[method, by] = len(orders) - 1
        return _AskedBatch(model, batch, subject.predicted[members].to(batch.ids.device), torch.stack(orders), places)

    def _of_batch(self, asked: _AskedBatch, subject: Subject, members: Sequence[int], few: Tensor) -> ValueStream:
        for by in self.removals:
            with sharing():  # one block per removal: no erased text is common to two
                for measure, fraction, values in self._erasures(asked, by):
                    for (method, ranking), place in asked.places.items():
                        if ranking == "signed" or fraction in (AOPC, ALL):
                            yield ValueKey(method, by, ranking, measure, fraction), values[place]
                if few.any():
                    yield from self._infidelity(asked, _scores(self.methods, subject, members), by, few)
        if few.any():
            yield from self._sensitivity(asked, subject, few)

    def _erasures(self, asked: _AskedBatch, by: Removal) -> Iterator[tuple[str, str, Tensor]]:
        """Measure, fraction, and values [order, text]."""
        model, batch, label, orders, _ = asked
        nothing = torch.zeros_like(orders[0], dtype=torch.bool)
        whole = without_words(model, batch, axis(label), nothing, by)
        left = removal_curves(model, batch, orders, by, self.fractions)
        for measure, logits in (("comprehensiveness", left.without), ("sufficiency", left.only)):
            by_fraction = prediction_loss(whole, logits, label)  # [order, text, fraction]
            yield measure, AOPC, by_fraction.mean(-1)
            yield from ((measure, f"{q:g}", by_fraction[..., i]) for i, q in enumerate(self.fractions))
            yield f"{measure}_logit", AOPC, prediction_loss(whole, logits, label, "logit").mean(-1)
        yield "log_odds", AOPC, prediction_loss(whole, left.without, label, "log_odds").mean(-1)
        found = flips(model, batch, orders, label, by)
        yield "flip", ALL, found.share
        yield "never_flips", ALL, found.never.double()

    def _infidelity(self, asked: _AskedBatch, scores: Mapping[str, Tensor], by: Removal, few: Tensor) -> ValueStream:
        batch = asked.batch.rows(few)
        for method, values in scores.items():
            measured = infidelity(asked.model, batch, values[few], asked.label[few], by)
            yield ValueKey(method, by, "signed", "infidelity", ALL), _only(few, measured)

    def _sensitivity(self, asked: _AskedBatch, subject: Subject, few: Tensor) -> ValueStream:
        batch = asked.batch.rows(few)
        for method in (method for method in self.methods if method not in subject.refused):
            measured = sensitivity_max(IMPORTANCES.make(method), asked.model, batch)
            yield ValueKey(method, NO_REMOVAL, "signed", "sensitivity_max", ALL), _only(few, measured)

    def _few(self, subject: Subject) -> Tensor:
        """Which texts are asked about robustness: the first of their split in a keyed order, the one of `texts`."""
        first = choose_texts(subject.task.split(subject.split), self.robustness)
        ids = {e.id for e in first}
        return torch.tensor([e.id in ids for e in subject.examples], dtype=torch.bool)

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By split, method, removal, ranking and measure: n, mean, interval, chance, differences from the controls."""
        from exegete.experiments.faithfulness.leaderboard import summarise_faithfulness

        return summarise_faithfulness(rows)

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """The leaderboard, whether it survives the change of removal, and the best method, chosen on other texts."""
        from exegete.experiments.faithfulness import leaderboard

        return {
            "leaderboard": leaderboard.leaderboard_table(rows, self.removals[0]),
            "survival": leaderboard.survival(rows),
            "best": leaderboard.best(rows, self.choose_on),
        }

    @property
    def shown(self) -> None:
        """None: its charts are of the summary."""

    @property
    def judged(self) -> pl.Expr:
        """Means over fractions."""
        return pl.col("fraction") == AOPC

    def streamed(self, parts: AllRows) -> tuple[pl.DataFrame, Mapping[str, pl.DataFrame]]:
        """Summary and tables of rows on disk, a measure at a time."""
        from exegete.experiments.faithfulness import leaderboard

        found = leaderboard.stream_summary(parts)
        return found, {
            "leaderboard": leaderboard.board_of(found, self.removals[0]),
            "survival": leaderboard.stream_survival(parts),
            "best": leaderboard.best_of(found, self.choose_on),
        }

    def figures(self, rows: pl.DataFrame, summary: pl.DataFrame) -> Mapping[str, Any]:  # noqa: ARG002
        """The leaderboard, and the ranks of all methods under every removal."""
        from exegete.experiments.faithfulness import figure
        from exegete.experiments.faithfulness.leaderboard import removal_of

        erasing = {method: removal_of(method) for method in self.methods}
        charts = {"leaderboard": figure.leaderboard(summary, self.removals[0], erasing)}
        return charts | ({"removals": figure.removals(summary, erasing)} if len(self.removals) > 1 else {})


def _portions(examples: Sequence[Example]) -> Iterator[list[int]]:
    """All texts, short ones first, `TEXTS` and `WORDS` at a time: the more together, the fuller the passes."""
    some: list[int] = []
    for i in sorted(range(len(examples)), key=lambda i: len(examples[i])):
        if some and (len(some) == TEXTS or (len(some) + 1) * len(examples[i]) > WORDS):
            yield some
            some = []
        some.append(i)
    if some:
        yield some


def _scores(methods: Sequence[str], subject: Subject, members: Sequence[int]) -> dict[str, Tensor]:
    """By method that the model allows: scores of some texts, [text, word], as wide as the longest."""
    width = max(len(subject.examples[i]) for i in members)
    where = subject.model.device
    return {name: subject.scores[name][members, :width].to(where) for name in methods if name not in subject.refused}


def _only(few: Tensor, values: Tensor) -> Tensor:
    """Values of few texts among all of a batch, NaN elsewhere."""
    return torch.full((len(few),), torch.nan, dtype=torch.float64).masked_scatter(few, values.double().cpu())


def _frame(subject: Subject, found: Mapping[ValueKey, Tensor], few: Tensor) -> pl.DataFrame:
    """Tidy rows, example by example; of robustness only those that were asked about."""
    examples = pl.DataFrame(subject.facts() | {"few": few.tolist()})
    keys = pl.DataFrame(list(found), schema=list(ValueKey._fields), orient="row")
    values = torch.stack(list(found.values()), 1).flatten().numpy()  # [example · key]
    tidy = examples.join(keys, how="cross", maintain_order="left_right")
    asked = pl.col("few") | ~pl.col("measure").is_in(["infidelity", "sensitivity_max"])
    return tidy.with_columns(pl.Series("value", values).fill_nan(None)).filter(asked).drop("few")
