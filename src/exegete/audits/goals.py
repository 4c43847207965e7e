"""Goals: whom an explanation is for, what for, and which tests decide then (Bastings & Filippova 2020, section 2).

*Faithful*: a developer asks which words a prediction rests on. What people find convincing has no say: plausibility
never enters. *Plausible*: somebody asks whether attention marks what a person would mark; what the model does with
these words has no say. *Sanity*: somebody only checks that the weights do something and find what is known to decide.

A test decides only if calibration showed that it can tell a model that is faithful by construction from one that is
not (`votes.toml`, written by `exegete calibrate`).
"""

import tomllib
from functools import lru_cache
from importlib import resources
from typing import get_args

from exegete.base.errors import unknown
from exegete.experiments.common.test import Goal
from exegete.experiments.tests import declared

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
def silenced() -> dict[str, str]:
    """Tests that calibration took the vote from, and why."""
    found = resources.files("exegete.audits") / "votes.toml"
    if not found.is_file():
        return {}
    kept = tomllib.loads(found.read_text(encoding="utf8"))
    return {name: said["why"] for name, said in kept.items() if isinstance(said, dict) and not said["votes"]}


def votes(test: str, aim: Goal) -> bool:
    """Whether a test decides the answer for a goal."""
    return aim in declared()[test].goals and test not in silenced()
