"""Exegete: may I read a model's attention as an explanation of its predictions, and if not, what should I read?"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exegete.studies.audit import Audit

__version__ = "0.1.0"


def audit(model: str, task: str, out: str | Path | None = None) -> "Audit":
    """The scorecard of a model (a name with settings, or a checkpoint folder) on a task, from a run in `out`.

    >>> result = audit("bilstm:vectors=glove-50", "rotten_tomatoes")  # doctest: +SKIP
    >>> print(result.answer)  # doctest: +SKIP
    """
    from exegete.studies.auditing import audit as run

    return run(model, task, out)
