"""Budget: an audit goes on asking texts until every model is graded, the split has no more, or the time is up.

What decides is asked of some texts first, with all other questions. Then of more, step by step
(exegete.tasks.selection.steps): after every step the grades of all models are looked at, which betting allows as often
as one likes (exegete.measures.betting). What was asked is kept in the run folder, so that more texts may be asked of a
finished run: nothing is trained again, and only new texts are asked.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from exegete.answers.criteria import Criteria
from exegete.answers.judge import evidence_of, gradings
from exegete.base.progress import Progress, Speaking, heard
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.common.contract import Growing
from exegete.runs.cell import cached_task
from exegete.runs.data import tell_size
from exegete.runs.study import Study
from exegete.tasks.disk import column_of
from exegete.tasks.selection import steps

FEWEST = 50  # texts that are asked at least
LONG = 60  # words of a text in the mean, from which on a quick audit asks fewer words and draws
SHORTER = {"texts": FEWEST, "draws": 4, "words": 24}  # as of models of Hugging Face, and calibrated with them
REST = 0.93  # of the time: then tables, figures and the page are written


@dataclass(frozen=True)
class Budget:
    """How many texts what decides may be asked of, and how long the whole may take."""

    texts: int | None = None  # all that the split has, unless given
    minutes: float = 0.0  # 0: no more than the study says, unless `texts` are given
    quick: bool = False  # of long texts, and of pairs, fewer words are asked; the time is that of the questions
    at_least: int = 0  # texts that are asked also where they take longer


@dataclass
class Asking:
    """Says how a study goes on: with more texts, or None. It remembers how long the last ones took."""

    budget: Budget
    criteria: Criteria
    progress: Progress
    started: float = field(default_factory=time.monotonic)
    last: tuple[float, int] | None = None  # when texts were asked last, and how many there were then

    def __call__(self, study: Study, rows: Mapping[str, pl.DataFrame]) -> Study | None:
        """The study with the next step of texts."""
        now = asked_texts(study)
        if not rows or now is None or self._is_settled(study, rows):
            return None
        more = self._next(study, now)
        if more is None or not self._has_time(now, more):
            return None
        self.last = time.monotonic(), now
        if isinstance(self.progress, Speaking):
            self.progress.say(f"{now} texts do not settle it: asking {more - now} more")
        return with_texts(study, more)

    def trained(self) -> None:
        """Begin to count here where the time is that of the questions: nobody can hurry a training."""
        if self.budget.quick:
            self.started = time.monotonic()

    def _is_settled(self, study: Study, rows: Mapping[str, pl.DataFrame]) -> bool:
        """Whether more texts would change nothing that is said of any model."""
        asked = [
            each for name, frame in rows.items() for each in evidence_of(name, {name: frame}, study, self.criteria)
        ]
        found = gradings(asked, study, "readings" in study.built_experiments())
        return bool(found) and all(grading.is_settled for grading in found.values())

    def _next(self, study: Study, now: int) -> int | None:
        """How many texts the next step ends with, if there is one."""
        have = max(len(cached_task(cell.task).splits.get(study.split, ())) for cell in study.cells)
        most = min(have, have if self.budget.texts is None else self.budget.texts)
        return next((step for step in steps(most) if step > now), None)

    def _has_time(self, now: int, more: int) -> bool:
        """Whether the next step may end in time, if its texts take as long as those of the last."""
        if not self.budget.minutes:
            return self.budget.texts is not None
        if more <= self.budget.at_least:
            return True
        time_now = time.monotonic()
        each = 0.0 if self.last is None else (time_now - self.last[0]) / max(1, now - self.last[1])
        return time_now - self.started + each * (more - now) < REST * 60 * self.budget.minutes


def asked_texts(study: Study) -> int | None:
    """How many texts a study asks of what grows; None where all are asked, or nothing grows."""
    return next((entry.get("texts") for entry in study.experiments if _grows(entry)), None)


def with_texts(study: Study, texts: int | None) -> Study:
    """The study that asks so many."""
    entries = tuple(entry | {"texts": texts} if _grows(entry) else entry for entry in study.experiments)
    return study.model_copy(update={"experiments": entries})


def begin_study(study: Study, budget: Budget, progress: Progress) -> Study:
    """The study with as many texts as it begins with: no more than are allowed."""
    study = _shorter(study, progress) if budget.quick else study
    texts = asked_texts(study)
    if texts is None or budget.texts is None:
        return study
    return with_texts(study, min(texts, max(FEWEST, budget.texts)))


def _shorter(study: Study, progress: Progress) -> Study:
    """A quick study of long texts, or of pairs, with fewer words, texts and draws of what grows."""
    tell_size(study.tasks[0], progress)
    with heard(progress):
        task = cached_task(study.tasks[0])
    lengths = column_of(task.splits.get(study.split, ()), "length")
    if task.kind == "classification" and (not len(lengths) or lengths.mean() < LONG):
        return study
    entries = tuple(
        entry | {name: min(number, entry.get(name, number)) for name, number in SHORTER.items()}
        if _grows(entry)
        else entry
        for entry in study.experiments
    )
    return study.model_copy(update={"experiments": entries})


def _grows(entry: Mapping[str, Any]) -> bool:
    return issubclass(EXPERIMENTS[entry["name"]].load(), Growing)
