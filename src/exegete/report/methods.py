"""Methods: the formula of every experiment, what misleads, and the page that says more."""

import tomllib
from functools import cache
from importlib.resources import files

from exegete.page.section import Note

# Which experiment a test of the audit rests on, where it has another name.
TESTS = {
    "agrees": "agreement",
    "agrees_beyond_ties": "agreement",
    "beats_chance": "agreement",
    "faithful": "faithfulness",
    "beats_random": "faithfulness",
    "faithful_as_best": "faithfulness",
    "faithful_by_size": "faithfulness",
    "sufficient": "faithfulness",
    "ranks_decisions": "importance_sets",
    "plausible": "plausibility",
    "finds_facts": "supporting_facts",
    "used": "permutation",
    "unique": "adversary_search",
    "needed": "necessity",
    "stable": "seed_stability",
    "informative": "diagnostic",
    "hard_to_fake": "adversary_training",
    "forgets": "sanity",
}


def experiment_of(test: str) -> str:
    """The experiment that a test rests on; one that is not in the list is named as its experiment.

    >>> experiment_of("used"), experiment_of("known_answer")
    ('permutation', 'known_answer')
    """
    return TESTS.get(test, test)


@cache
def notes() -> dict[str, Note]:
    """A note for every experiment of ours."""
    read = tomllib.loads(files("exegete.report").joinpath("methods.toml").read_text(encoding="utf8"))
    return {name: Note(**entry) for name, entry in read.items()}
