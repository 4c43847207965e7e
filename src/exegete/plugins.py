"""Plugins: everything that code of your own needs to add to Exegete or to ask it, from one place that stays.

Rooms may be laid anew from one version to the next; these names stay. A file of yours imports them, and a study names
the file in `plugins`. Nothing heavy is imported before a name is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exegete.annotation.draw import Draw as Draw
    from exegete.annotation.draw import draw as draw
    from exegete.annotation.results import read_answers as read_answers
    from exegete.base.errors import ExegeteError as ExegeteError
    from exegete.base.errors import UsageError as UsageError
    from exegete.base.noise import stable_seed as stable_seed
    from exegete.base.noise import uniform as uniform
    from exegete.experiments.catalogue import EXPERIMENTS as EXPERIMENTS
    from exegete.experiments.common.contract import Subject as Subject
    from exegete.experiments.common.statistic import Evidence as Evidence
    from exegete.experiments.common.statistic import Measured as Measured
    from exegete.experiments.common.statistic import by_seed as by_seed
    from exegete.experiments.common.summaries import columns as columns
    from exegete.experiments.common.summaries import interval_of as interval_of
    from exegete.experiments.common.summaries import means as means
    from exegete.experiments.common.test import Test as Test
    from exegete.experiments.tests import add_test as add_test
    from exegete.explanations.explain import explain_all as explain_all
    from exegete.explanations.explain import explain_file as explain_file
    from exegete.importance.alti import own_share as own_share
    from exegete.importance.catalogue import IMPORTANCES as IMPORTANCES
    from exegete.importance.contract import Scores as Scores
    from exegete.importance.contract import Target as Target
    from exegete.importance.contract import cost as cost
    from exegete.importance.contract import explained as explained
    from exegete.importance.contract import on_words as on_words
    from exegete.importance.contract import predicted as predicted
    from exegete.importance.derivative import derivative as derivative
    from exegete.importance.erasure import Removal as Removal
    from exegete.importance.erasure import erased as erased
    from exegete.importance.sharing import sharing as sharing
    from exegete.interventions.at import AtHeads as AtHeads
    from exegete.interventions.at import AtSites as AtSites
    from exegete.interventions.catalogue import INTERVENTIONS as INTERVENTIONS
    from exegete.interventions.contract import Drawn as Drawn
    from exegete.interventions.contract import Rewrite as Rewrite
    from exegete.interventions.contract import bound as bound
    from exegete.interventions.contract import mask_of as mask_of
    from exegete.interventions.contract import noise as noise
    from exegete.interventions.contract import scaled as scaled
    from exegete.interventions.cut import Cut as Cut
    from exegete.interventions.impose import Impose as Impose
    from exegete.interventions.permute import permuted as permuted
    from exegete.interventions.table import WeightTable as WeightTable
    from exegete.interventions.where import Head as Head
    from exegete.measures.bleu import bleu_counts as bleu_counts
    from exegete.measures.bleu import bleu_difference as bleu_difference
    from exegete.measures.bleu import bleu_interval as bleu_interval
    from exegete.measures.bleu import corpus_bleu as corpus_bleu
    from exegete.measures.catalogue import MEASURES as MEASURES
    from exegete.models.capabilities import Encoded as Encoded
    from exegete.models.capabilities import Pooling as Pooling
    from exegete.models.contract import Predictor as Predictor
    from exegete.models.contract import Readout as Readout
    from exegete.models.contract import Site as Site
    from exegete.models.contract import Trace as Trace
    from exegete.models.opened import Opened as Opened
    from exegete.models.opened import opened as opened
    from exegete.models.ours.generation import beam as beam
    from exegete.models.own.adapter import OwnModel as OwnModel
    from exegete.models.own.adapter import OwnPooling as OwnPooling
    from exegete.page.theme import themed as themed
    from exegete.runs.engine.local import LocalEngine as LocalEngine
    from exegete.runs.run import run_study as run_study
    from exegete.runs.study import Study as Study
    from exegete.runs.study import load_study as load_study
    from exegete.tasks.batching import Batch as Batch
    from exegete.tasks.catalogue import load_task as load_task
    from exegete.training.checkpoint import load_checkpoint as load_checkpoint
    from exegete.training.evaluation import evaluate as evaluate
    from exegete.training.evaluation import predict as predict
    from exegete.training.fit import Fit as Fit
    from exegete.training.recipe import Recipe as Recipe
    from exegete.training.settings import TrainingSettings as TrainingSettings

_ROOMS: dict[str, tuple[str, ...]] = {
    # catalogues: `.add(name, thing, summary)` gives a thing of yours a name, `.make("name:key=value")` builds one
    "importance.catalogue": ("IMPORTANCES",),
    "interventions.catalogue": ("INTERVENTIONS",),
    "measures.catalogue": ("MEASURES",),
    "experiments.catalogue": ("EXPERIMENTS",),
    # an importance
    "importance.contract": ("Scores", "Target", "cost", "explained", "on_words", "predicted"),
    "importance.alti": ("own_share",),
    "importance.derivative": ("derivative",),
    "importance.erasure": ("Removal", "erased"),
    "importance.sharing": ("sharing",),
    # an intervention
    "interventions.at": ("AtHeads", "AtSites"),
    "interventions.contract": ("Drawn", "Rewrite", "bound", "mask_of", "noise", "scaled"),
    "interventions.cut": ("Cut",),
    "interventions.impose": ("Impose",),
    "interventions.permute": ("permuted",),
    "interventions.table": ("WeightTable",),
    "interventions.where": ("Head",),
    # an experiment
    "experiments.common.contract": ("Subject",),
    "experiments.common.summaries": ("columns", "interval_of", "means"),
    "training.recipe": ("Recipe",),
    # its test of the audit
    "experiments.common.statistic": ("Evidence", "Measured", "by_seed"),
    "experiments.common.test": ("Test",),
    "experiments.tests": ("add_test",),
    "page.theme": ("themed",),
    # a model and its texts
    "models.capabilities": ("Encoded", "Pooling"),
    "models.contract": ("Predictor", "Readout", "Site", "Trace"),
    "models.opened": ("Opened", "opened"),
    "models.ours.generation": ("beam",),
    "models.own.adapter": ("OwnModel", "OwnPooling"),
    "tasks.batching": ("Batch",),
    "tasks.catalogue": ("load_task",),
    "training.checkpoint": ("load_checkpoint",),
    "training.evaluation": ("evaluate", "predict"),
    "training.fit": ("Fit",),
    "training.settings": ("TrainingSettings",),
    # studies, translations, people
    "runs.engine.local": ("LocalEngine",),
    "runs.run": ("run_study",),
    "runs.study": ("Study", "load_study"),
    "explanations.explain": ("explain_all", "explain_file"),
    "measures.bleu": ("bleu_counts", "bleu_difference", "bleu_interval", "corpus_bleu"),
    "annotation.draw": ("Draw", "draw"),
    "annotation.results": ("read_answers",),
    # what everything stands on
    "base.errors": ("ExegeteError", "UsageError"),
    "base.noise": ("stable_seed", "uniform"),
}
_HOME = {name: f"exegete.{room}" for room, names in _ROOMS.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """A name of the list above, from the room where it lives today."""
    if name not in _HOME:
        raise AttributeError(f"module 'exegete.plugins' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """The names that stay."""
    return __all__
