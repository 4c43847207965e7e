"""All tests of the audit, in the order of the scorecard: that of the experiments, then of each one's `tests.py`.

A plugin's come last; it declares one as we do, and adds it.
"""

from functools import cache
from importlib import import_module

from exegete.base.errors import UsageError
from exegete.experiments.catalogue import EXPERIMENTS, module_beside
from exegete.experiments.common.test import PARTS, Test
from exegete.report.section import Note

_ADDED: dict[str, Test] = {}


@cache
def built_in_tests() -> dict[str, Test]:
    """Ours."""
    modules = [module for name in EXPERIMENTS if (module := module_beside(name, "tests"))]
    every = [test for module in modules for test in getattr(import_module(module), "TESTS", ())]
    return {test.name: test for test in every}


def all_tests() -> dict[str, Test]:
    """Every test by name."""
    return built_in_tests() | _ADDED


def label_of(name: str) -> str:
    """A test as people read it; one that nobody declares any more by its name.

    >>> label_of("ranks"), label_of("of_a_plugin_that_is_gone")
    ('orders words by effect (Γ)', 'of a plugin that is gone')
    """
    return all_tests()[name].label if name in all_tests() else name.replace("_", " ")


def by_part() -> list[Test]:
    """Every test, with those first that look at words, then at weights, and last at people."""
    return sorted(all_tests().values(), key=lambda test: PARTS.index(test.part))


def judged_experiments() -> list[str]:
    """The experiments that tests rest on."""
    return list(dict.fromkeys(test.experiments[0] for test in all_tests().values()))


def add_test(test: Test) -> None:
    """Let the audit ask a test of your own; the last declaration of a name counts."""
    if test.name in (*built_in_tests(), "version"):  # criteria files have a version beside the tests
        raise UsageError(f"there is already a test '{test.name}': choose another name")
    _ADDED[test.name] = test


def note_of(experiment: str) -> Note | None:
    """How an experiment of ours is measured, and what misleads."""
    module = module_beside(experiment, "tests")
    return None if module is None else import_module(module).NOTE
