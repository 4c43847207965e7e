"""Exegete: may I read a model's attention as an explanation of its predictions, and if not, what should I read?"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from exegete.audits.scorecard import Audit
    from exegete.explanations.question import Of, Text
    from exegete.explanations.result import Explanation
    from exegete.explanations.vouch import Model
    from exegete.models.own.adapter import OwnModel as OwnModel
    from exegete.models.own.adapter import OwnPooling as OwnPooling

__version__ = "0.2.0"


def audit(model: str, task: str, out: str | Path | None = None) -> "Audit":
    """The scorecard of a model (a name with settings, or a checkpoint folder) on a task, from a run in `out`.

    >>> result = audit("bilstm:vectors=glove-50", "rotten_tomatoes")  # doctest: +SKIP
    >>> print(result.answer)  # doctest: +SKIP
    """
    from exegete.audits.audit import audit as run

    return run(model, task, out)


def explain(
    model: "Model",
    text: "Text",
    methods: Sequence[str] | None = None,
    target: str | None = None,
    of: "Of" = "logit",
) -> "Explanation":
    """What every method says of the prediction for a text, and whether attention may be read here.

    `model` is a checkpoint or its folder; None is the default audit's model, which is trained into `runs/audit` if it
    isn't there. `methods` are names of importances with settings, all of them unless given; `target` is the class to
    explain, the predicted one unless given. For a model of pairs, `text` is (passage, question).

    >>> found = explain(None, "a charming and often affecting journey")  # doctest: +SKIP
    >>> found["integrated_gradients"].scores, found.reading.sentences  # doctest: +SKIP
    >>> found.save("journey.html")  # doctest: +SKIP
    """
    from exegete.explanations.explain import explain as run

    return run(model, text, methods, target, of)


def tokens(task: str, splits: Sequence[str] = ("test",)) -> "pl.DataFrame":
    """The words of a task's texts, one row each: split, example, token, word; add a column `score`, and
    `given:file=…` judges it.

    >>> tokens("rotten_tomatoes").write_parquet("scores.parquet")  # doctest: +SKIP
    """
    from exegete.importance.given import tokens_of
    from exegete.tasks.catalogue import load_task

    return tokens_of(load_task(task), splits)


def __getattr__(name: str) -> Any:
    """The base classes of own models, imported only when they are asked for: torch is heavy."""
    if name in ("OwnModel", "OwnPooling"):
        from exegete.models import own

        return getattr(own, name)
    raise AttributeError(f"module 'exegete' has no attribute '{name}'")
