"""Necessity: does the model need its attention? (Wiegreffe & Pinter 2019, test 1; Vashishth et al. 2019, tables 1–3)

Attention is replaced by something that knows nothing of the text: uniform weights, random ones, its own on other words;
or the decoder reads the last state and there is no attention. *At inference* only, the trained model gets weights that
it was not made for: what it loses shows how much it had come to rest on its own. *In training* too, another model of
the same kind learns without attention: where it does as well, attention isn't needed, and the data set is unfit for the
debate. All sites are altered together: words and sentences, in a hierarchical model. Of a translator the attention of
every step is altered, and what changes is BLEU.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.base.names import parse, vary
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.experiment import Question
from exegete.experiments.common.summaries import or_none
from exegete.experiments.common.tallies import clipped_mean, f1_by_seed, majority, of_tasks, values_by_seed
from exegete.experiments.common.translations import bleu_change, bleu_scores, count_columns, count_translations
from exegete.experiments.necessity.table import INFERENCE, OWN, TRAINING, own_of, vashishth
from exegete.interventions.catalogue import INTERVENTIONS
from exegete.interventions.contract import Drawn, bound
from exegete.models.capabilities import Trainable, Writing
from exegete.models.contract import Intervention, Predictor
from exegete.tasks.example import Task
from exegete.training.evaluation import predict
from exegete.training.recipe import Recipe

KEYS = ("task", "model", "condition", "when")
NONE = "none"  # no attention: the decoder reads the last state
LAST_STATE = ("bilstm", "bigru", "average", "cnn", "flat")  # models that have one: others have no rows of `none`
SCHEMA = pl.Schema(
    dict.fromkeys((*KEYS, "metric"), pl.String)
    | dict.fromkeys(("seeds", "n", "single"), pl.Int64)
    | dict.fromkeys(("before", "after", "change", "low", "high"), pl.Float64)
    | dict.fromkeys(("f1_before", "f1_after", "f1_change", "f1_low", "f1_high", "flipped", "majority"), pl.Float64)
)


@dataclass(frozen=True)
class Necessity(Question):
    """Accuracy and F1, or BLEU, with other attention, at inference only and in training too."""

    needs_labels = True

    of_summary = ("necessity",)

    whole = True  # of a translator it asks about whole translations

    trained: tuple[str, ...] = ("uniform", "random", "permute", NONE)  # interventions by name, and none
    inferred: tuple[str, ...] = ("uniform", "random", "permute")  # interventions by name
    epochs: int | None = None  # of the trainings, at most: as many as the model's own unless given
    seed: int = 0  # of what is drawn at inference
    texts: int | None = None  # all, unless given

    def __post_init__(self) -> None:
        if not self.trained and not self.inferred:
            raise UsageError("experiment 'necessity': name at least one intervention in `trained` or `inferred`")
        if any(len(set(names)) < len(names) for names in (self.trained, self.inferred)):
            raise UsageError("experiment 'necessity': name every intervention only once")
        if NONE in self.inferred:
            raise UsageError(
                "experiment 'necessity': a model without attention has to be trained: none is for `trained`"
            )
        for name in {*self.trained, *self.inferred} - {NONE}:
            INTERVENTIONS.make(name)
        if self.epochs is not None and self.epochs < 1:
            raise UsageError(f"experiment 'necessity': epochs is 1 or more, not {self.epochs}")

    def unsuited(self, task: Task, model: Predictor) -> str | None:  # noqa: ARG002
        """There must be attention to replace."""
        if not isinstance(model, Trainable):
            return f"it trains models anew, and {type(model).__name__} can't be trained"
        return None if model.sites else "it replaces attention, and this model has none"

    def companions(self, model: str, seed: int) -> Mapping[str, Recipe]:
        """A model for every condition; what is random in one depends on the seed of its training.

        There is no `none` for models that can't be built without attention: see LAST_STATE.
        """
        found = {
            name: Recipe(attention=_seeded(name, seed), epochs=self.epochs) for name in self.trained if name != NONE
        }
        if NONE in self.trained and parse(model).name in LAST_STATE:
            found[NONE] = Recipe(model=vary(model, attention="none"), epochs=self.epochs)
        return found

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example and condition; value is the change: 1 if only the altered model is right, −1 if not.

        `positive` is the class whose F1 counts; null where there are more than two.
        """
        if isinstance(subject.model, Writing):
            return self._of_translations(subject, subject.model)
        labels, gold = subject.task.labels, torch.tensor([e.label for e in subject.examples])
        facts = pl.DataFrame(_text_columns(subject, labels))
        parts = []
        for condition, when, answers in self._answers(subject):
            before, after = ((answer == gold).long() for answer in (subject.predicted, answers))
            found = facts.with_columns(
                condition=pl.lit(condition),
                when=pl.lit(when),
                correct=pl.Series(before.numpy()),
                altered_correct=pl.Series(after.numpy()),
                altered_predicted=pl.Series([labels[c] for c in answers.tolist()], dtype=pl.String),
                value=pl.Series((after - before).double().numpy()),
            )
            parts.append(found)
        return pl.concat(parts).sort("example", maintain_order=True)

    def _answers(self, subject: Subject) -> Iterator[tuple[str, str, Tensor]]:
        """Condition, when, and what is predicted under it: [example]."""
        model = subject.model
        if not model.sites:
            raise UsageError(f"experiment 'necessity': {self.unsuited(subject.task, model)}")
        for name in self.inferred:
            at = bound(INTERVENTIONS.make(_seeded(name, self.seed)), model)
            yield name, INFERENCE, predict(model, subject.examples, at).argmax(-1)
        for name in (name for name in self.trained if name in subject.companions):
            beside = subject.companions[name]
            yield name, TRAINING, predict(beside.classifier, subject.examples, beside.intervene).argmax(-1)

    def _of_translations(self, subject: Subject, model: Writing) -> pl.DataFrame:
        """One row per example and condition, and one for the model as it is: what BLEU needs of the translation."""
        facts = {"example": [e.id for e in subject.examples], "n": [len(e) for e in subject.examples]}
        parts = [
            pl.DataFrame(facts).with_columns(
                condition=pl.lit(condition),
                when=pl.lit(when),
                **count_columns(count_translations(of, subject.examples, at)),
            )
            for condition, when, of, at in self._translators(subject, model)
        ]
        return pl.concat(parts).sort("example", maintain_order=True)

    def _translators(self, subject: Subject, model: Writing) -> Iterator[tuple[str, str, Writing, Intervention | None]]:
        """Condition, when, and who translates with what."""
        yield OWN, "", model, None
        for name in self.inferred:
            yield name, INFERENCE, model, bound(INTERVENTIONS.make(_seeded(name, self.seed)), model)
        for name in (name for name in self.trained if name in subject.companions):
            beside = subject.companions[name]
            assert isinstance(beside.model, Writing)
            yield name, TRAINING, beside.model, beside.intervene

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By condition: accuracy and F1 before and after, and their changes, paired by text, with intervals.

        Of translations it is BLEU, as a share of 100.

        F1 is that of the second class of two, and the mean over the task's gold classes where there are more. Intervals
        are over texts for one seed, over texts and seeds for several; those of F1 rest on its first-order expansion
        (`ratios`). The reference of a change is 0, that of accuracy `majority`: always the most frequent class.
        `single` texts have one word, whose weight is 1 whatever is done.
        """
        found = [
            dict(zip(KEYS, key, strict=True)) | (_numbers(group, classes) if classes else _bleu(group, part))
            for classes, part in of_tasks(rows)
            for key, group in part.partition_by(KEYS, as_dict=True, maintain_order=True).items()
            if key[2] != OWN
        ]
        return pl.DataFrame(found, schema=SCHEMA)  # a study of translations alone has all columns, too

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """Vashishth's table 1."""
        return {"vashishth": vashishth(rows)}


def _seeded(name: str, seed: int) -> str:
    """An intervention by name, with a seed where it draws and has none.

    >>> _seeded("random", 3), _seeded("random:seed=1", 3), _seeded("uniform", 3)
    ('random:seed=3', 'random:seed=1', 'uniform')
    """
    draws = isinstance(INTERVENTIONS.make(name), Drawn)
    return vary(name, seed=str(seed)) if draws and "seed" not in parse(name).settings else name


def _text_columns(subject: Subject, labels: tuple[str, ...]) -> dict[str, Any]:
    return {
        **subject.facts(),
        "positive": pl.Series([labels[1] if len(labels) == 2 else None] * len(subject.examples), dtype=pl.String),
    }


def _numbers(group: pl.DataFrame, classes: Sequence[str]) -> dict[str, Any]:
    change = clipped_mean(values_by_seed(group, pl.col("value").cast(pl.Float64)), -1.0)
    f1 = {name: f1_by_seed(group, name, classes) for name in ("predicted", "altered_predicted")}  # [seed, example] each
    f1_change = clipped_mean(f1["altered_predicted"] - f1["predicted"], -1.0)
    return {
        "metric": "accuracy",
        "seeds": group["seed"].n_unique(),
        "n": change["n"],
        "single": group.filter(pl.col("n") <= 1).height,
        "before": or_none(group["correct"].mean()),
        "after": or_none(group["altered_correct"].mean()),
        "change": change["mean"],
        "low": change["low"],
        "high": change["high"],
        "f1_before": or_none(f1["predicted"].nanmean()),
        "f1_after": or_none(f1["altered_predicted"].nanmean()),
        "f1_change": f1_change["mean"],
        "f1_low": f1_change["low"],
        "f1_high": f1_change["high"],
        "flipped": or_none((group["predicted"] != group["altered_predicted"]).mean()),
        "majority": majority(group),
    }


def _bleu(group: pl.DataFrame, every: pl.DataFrame) -> dict[str, Any]:
    """BLEU as a share of 100."""
    own = own_of(group, every)
    before, after, change = bleu_scores(own), bleu_scores(group), bleu_change(group, own)
    shares = {"before": before["mean"], "after": after["mean"], "change": change["change"]}
    shares |= {"low": change["change_low"], "high": change["change_high"]}
    said = {name: None if value is None else value / 100 for name, value in shares.items()}
    return {"metric": "BLEU", "seeds": group["seed"].n_unique(), "n": after["n"]} | said
