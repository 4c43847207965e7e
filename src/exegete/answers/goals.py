"""Goals: whom an explanation is for, what for, and which tests decide then (Bastings & Filippova 2020, section 2).

*Faithful*: a developer asks which words a prediction rests on. What people find convincing has no say: plausibility
never enters. *Plausible*: somebody asks whether attention marks what a person would mark; what the model does with
these words has no say. *Sanity*: somebody only checks that the weights do something and find what is known to decide.

A test decides only if calibration showed that what it decides is right of models whose truth is known (`votes.toml`,
written by `exegete calibrate`), by the same criteria, asked in the same way.
"""

import hashlib
import tomllib
from functools import lru_cache
from importlib import resources
from typing import Any, get_args

from exegete.answers.criteria import Criteria, load_criteria
from exegete.base.errors import unknown
from exegete.experiments.common.test import Goal
from exegete.experiments.tests import all_tests
from exegete.runs.study import Study, read_study

ASKED = ("removals", "companies", "draws", "words")  # settings of the experiment that decides

USERS: dict[Goal, str] = {
    "faithful": "a developer of the model, who wants to know which words its predictions rest on",
    "plausible": "a reader of its predictions, who wants to see the words that a person would give as the reason",
    "sanity": "a developer of the model, who checks that its attention does something and finds what must be found",
}


def goal(name: str) -> Goal:
    """A goal by its name."""
    for known in get_args(Goal):
        if name == known:
            return known  # type: ignore[no-any-return]
    raise unknown("goal", name, get_args(Goal))


@lru_cache(maxsize=1)
def read_calibration() -> dict[str, Any]:
    """What calibration kept: its version of the criteria, the hash of its settings, and every test's vote."""
    found = resources.files("exegete.answers") / "votes.toml"
    return tomllib.loads(found.read_text(encoding="utf8")) if found.is_file() else {}


def silenced_tests() -> dict[str, str]:
    """Tests that calibration took the vote from, and why."""
    kept = read_calibration().items()
    return {name: said["why"] for name, said in kept if isinstance(said, dict) and not said["votes"]}


def settings_hash(study: Study | None = None) -> str:
    """A fingerprint of how the experiment that decides is asked, by a study or by our own audits.

    How many texts there are, of which methods and splits, changes how sure an answer is, not what is asked.
    """
    built = (study or read_study("audit")).built_experiments().get("mediation")
    told = {name: getattr(built, name, None) for name in ASKED}
    return hashlib.sha256(repr(sorted(told.items())).encode()).hexdigest()[:16]


def uncalibrated(criteria: Criteria, study: Study | None = None) -> str:
    """Why the votes that came with exegete don't count for an audit, as a sentence; empty if they do."""
    kept = read_calibration()
    if not kept:
        return "Nothing was calibrated (`exegete calibrate`), so that no test may decide."
    if criteria.version != kept["version"] or criteria.model_dump() != load_criteria().model_dump():
        return (
            f"These are criteria of version {criteria.version}, and calibration was of ours of version "
            f"{kept['version']}: no test may decide. Calibrate them with `exegete calibrate --criteria`."
        )
    if settings_hash(study) not in kept["settings"]:
        return (
            "Mediation was asked in another way than where it was calibrated (removals, companies, draws, words): no "
            "test may decide."
        )
    return ""


def votes(test: str, aim: Goal, criteria: Criteria | None = None, study: Study | None = None) -> bool:
    """Whether a test decides the answer for a goal, by these criteria, ours unless given."""
    if aim not in all_tests()[test].goals or test in silenced_tests():
        return False
    return test not in read_calibration() or criteria is None or not uncalibrated(criteria, study)
