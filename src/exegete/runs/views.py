"""Views: a translator as a classifier of single words, so that what is asked of classes can be asked of it.

An experiment asks about a prediction, and a translation is a row of them. It is asked about one: the word at the step
that the task names (`multi30k:step=…`), after the right words before it. Experiments about whole translations
(`asks_whole`) get the translator as it is.
"""

from dataclasses import replace

from exegete.experiments.common.contract import Experiment, asks_whole
from exegete.models.contract import Writing
from exegete.runs.stages import Case
from exegete.tasks.next_word import next_words
from exegete.training.recipe import Companion


def case_for(case: Case, experiment: Experiment) -> Case:
    """A case as an experiment sees it."""
    return case if asks_whole(experiment) else as_classes(case)


def as_classes(case: Case) -> Case:
    """A case whose predictions are classes."""
    model = case.checkpoint.model
    if not isinstance(model, Writing):
        return case
    companions = {name: _viewed(companion) for name, companion in case.companions.items()}
    return case._replace(
        task=next_words(case.task, model.reader, case.task.step),
        checkpoint=replace(case.checkpoint, model=model.as_classes()),
        companions=companions,
    )


def _viewed(companion: Companion) -> Companion:
    model = companion.model
    return replace(companion, model=model.as_classes()) if isinstance(model, Writing) else companion
