"""Adversary search: can other weights give the same prediction? (Jain & Wallace 2019, section 4.3, figures 7 and 8)

Per text K candidates are searched for (exegete.interventions.search). ε-max JSD is the largest JSD to the model's own
weights among those candidates whose prediction moves by a TVD of at most ε, and the model's own weights, which are
always within ε: where no candidate is, it is 0, and `met` says so. A text with a single key has no other weights: it is
null, and counted.

Judge it against references, never against 0: a linear decoder fixes one number per free class, so a text of T keys has
T − 2 or more free directions, and the search finds a large JSD for any model. Beside it stand the same
search on models that are faithful and unfaithful by construction, and the JSD after permuting the weights.

Of a model with several layers the same can be asked below the readout (`sites`), one layer at a time, of all its rows
together; a step of the search is then a pass from that layer on, and models of known truth have no such layer.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import polars as pl
import torch

from exegete.base.errors import UsageError
from exegete.base.names import Spec, parse
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.counterfactuals import (
    facts,
    frame,
    furthest,
    group_rows,
    members,
    several_keys,
    spread_columns,
)
from exegete.experiments.common.depth import add_places, at_each, at_readout, check_places
from exegete.experiments.common.experiment import OfDistributions
from exegete.experiments.common.pooling import Pooled, open_pooled
from exegete.experiments.common.side_by_side import permuted_jsd
from exegete.experiments.common.summaries import or_none
from exegete.experiments.common.tallies import SAME
from exegete.interventions.search import Adversaries, Search, find_each
from exegete.tasks.example import Example
from exegete.training.recipe import Recipe

KEYS = ("task", "model", "split", "sites", "who", "epsilon")
MODEL = "model"
REFERENCES = {"faithful": "1", "unfaithful": "0"}  # and the share of the weights that is attention
SHARED = ("vectors", "size", "scale", "trainable")  # what a reference has in common with the model
SHOWN = 25  # words up to which a text's weights are kept, to be looked at
LISTS: dict[str, pl.DataType] = {
    "words": pl.List(pl.String),
    "attention": pl.List(pl.Float64),
    "adversary": pl.List(pl.Float64),
}


@dataclass(frozen=True)
class AdversarySearch(Search, OfDistributions):
    """The farthest weights with the same prediction."""

    epsilons: tuple[float, ...] = (0.01, 0.05)
    references: bool = False  # search on models that are faithful and unfaithful by construction too
    sites: tuple[str, ...] = ("readout",)  # where; also layers such as "encoder.2", or "each" of them: slow
    texts: int | None = None  # all, unless given

    def __post_init__(self) -> None:
        super().__post_init__()
        check_places("adversary_search", self.sites)
        proper = all(0 <= epsilon <= 1 for epsilon in self.epsilons)
        if not self.epsilons or not proper or len(set(self.epsilons)) < len(self.epsilons):
            raise UsageError(
                "experiment 'adversary_search': epsilons are changes of a probability, from 0 to 1, each once"
            )

    def companions(self, model: str, seed: int) -> Mapping[str, Recipe]:  # noqa: ARG002
        """Models with known truth that read the same vectors; there are none for pairs of texts."""
        name, own = parse(model)
        if not self.references or name == "pair":
            return {}
        shared = {key: own[key] for key in SHARED if key in own}
        return {who: Recipe(model=str(Spec("ladder", {"share": share} | shared))) for who, share in REFERENCES.items()}

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example, place, searched model and ε."""
        return at_each(self.sites, subject.model.sites, lambda site: self._at(subject, site))

    def _at(self, subject: Subject, site: str | None) -> pl.DataFrame:
        pools = list(open_pooled(subject.model, subject.examples, site))
        if site is None:
            return self.measured(subject, pools)
        return _framed([*self._searched(subject, MODEL, pools)], subject)

    def measured(self, subject: Subject, pools: Sequence[Pooled]) -> pl.DataFrame:
        """The rows of texts that the subject's model has encoded already."""
        parts = [*self._searched(subject, MODEL, pools)]
        for who in REFERENCES:
            if who in subject.companions:
                model = subject.companions[who].classifier
                parts += self._searched(subject, who, list(open_pooled(model, subject.examples)))
        return _framed(parts, subject)

    def _searched(self, subject: Subject, who: str, pools: Sequence[Pooled]) -> Iterator[dict[str, Any]]:
        """Rows of one model, which are of its own predictions."""
        for pool, found in zip(pools, find_each([pool.opened for pool in pools], self), strict=True):
            predicted = None if who == MODEL else pool.logits.argmax(-1)
            shuffled = permuted_jsd(pool.weights, pool.weights, pool.mask, pool.ids, self.seed)
            texts = facts(subject, pool, predicted) | {"permuted_jsd": shuffled}
            for epsilon in self.epsilons:
                told = who == MODEL and epsilon == self.epsilons[0]
                shown = _told(members(subject.examples, pool), pool, found, epsilon) if told else {}
                said = {"who": [who] * len(pool.ids), "epsilon": [epsilon] * len(pool.ids)}
                none = {name: [None] * len(pool.ids) for name in LISTS}
                yield texts | said | _best(pool, found, epsilon) | none | shown

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By searched model, ε, class and bin of the largest weight (and all): n, undefined, ε-max JSD with interval.

        `permuted` is the mean JSD after permuting the weights, `ratio` that of the two means; `met` is the share of
        texts with a candidate within ε, `within` the share of candidates.
        """
        return pl.DataFrame(
            [said | _numbers(group) for said, group in group_rows(add_places(rows), KEYS)], infer_schema_length=None
        )

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """The summary by normalised entropy of the weights: models are to be compared at equal entropy."""
        flat = add_places(rows).filter(pl.col("entropy").is_not_null())
        kept = [(said, group) for said, group in group_rows(flat, KEYS, against="entropy") if said["class"] == "all"]
        found = pl.DataFrame([said | _numbers(group) for said, group in kept], infer_schema_length=None)
        empty = self.summary(rows).head(0)  # no text has two keys
        return {"by_entropy": (found if kept else empty).drop("class").rename({"bin": "entropy"})}

    def figures(self, rows: pl.DataFrame, summary: pl.DataFrame) -> Mapping[str, Any]:
        """A histogram, violins over bins of the largest weight, pairs of heat maps, and layers; the first ε."""
        from exegete.experiments.adversary_search.figure import pairs, spread
        from exegete.experiments.common.depth_figure import ALL, dots_by_place
        from exegete.report.violin import Axis, violin

        first = at_readout(rows).filter(pl.col("epsilon") == self.epsilons[0])
        own = first.filter(pl.col("who") == MODEL)
        axis = Axis("ε-max JSD of the weights", log(2), (0, 0.2, 0.4, 0.6))
        charts = {"histogram": spread(first), "violins": violin(own, "jsd", axis), "pairs": pairs(own)}
        return charts | dots_by_place(summary, axis.title, ALL | {"who": MODEL, "epsilon": self.epsilons[0]})


def _framed(parts: Sequence[Mapping[str, Any]], subject: Subject) -> pl.DataFrame:
    return frame(parts, subject.examples, LISTS | {"met": pl.Boolean()})


def _best(pool: Pooled, found: Adversaries, epsilon: float) -> dict[str, Any]:
    """ε-max JSD, the TVD that goes with it, the share of candidates within ε and whether there is any."""
    best, within, several = furthest(pool.weights, found, epsilon), found.tvd <= epsilon, several_keys(pool)
    values = {"jsd": best.jsd, "tvd": best.tvd, "within": within.double().mean(1)}
    met = [any_ if real else None for any_, real in zip(within.any(1).tolist(), several.tolist(), strict=True)]
    return {name: value.where(several, torch.nan) for name, value in values.items()} | {"met": met}


def _told(examples: list[Example], pool: Pooled, found: Adversaries, epsilon: float) -> dict[str, list[Any]]:
    """Words with the model's own and the adversary's weights (means over heads) of short texts whose keys are words."""
    told: dict[str, list[Any]] = {name: [] for name in LISTS}
    for row, (e, best) in enumerate(zip(examples, found.best(epsilon).tolist(), strict=True)):
        real = pool.mask[row]
        fits = best >= 0 and e.explained == 0 and len(e) <= SHOWN and int(real.sum()) == len(e)
        told["words"].append(list(e.words) if fits else None)
        told["attention"].append(pool.key_weights[row, real].tolist() if fits else None)
        told["adversary"].append(found.weights[row, best].mean(0)[real].tolist() if fits else None)
    return told


def _numbers(group: pl.DataFrame) -> dict[str, Any]:
    """ε-max JSD over the texts of a group, and what it is to be held against."""
    found, permuted = spread_columns(group, "jsd", log(2)), or_none(group["permuted_jsd"].mean())
    mean = found["mean"]
    ratio = mean / permuted if mean is not None and permuted is not None and permuted > SAME else None
    held = {"permuted": permuted, "ratio": ratio, "met": group["met"].mean(), "within": group["within"].mean()}
    return {**found, **held}
