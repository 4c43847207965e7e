"""The audit's tests and goals, as they are declared: the page of tests, and the tables of other pages."""

from pathlib import Path
from typing import get_args

from exegete.answers.goals import USERS, votes
from exegete.experiments.common.test import Goal, Test
from exegete.experiments.tests import built_in_tests, by_part, note_of
from tools.pages.place import to
from tools.pages.table import markdown_table

PAGE = "docs/tests/index.md"
GOALS: tuple[Goal, ...] = get_args(Goal)


def table(page: Path) -> str:
    """All tests, with links to what is said of each."""
    rows = [
        (
            f"[{t.label}]({to(f'{PAGE}#{t.name}', page)})",
            f"`{t.name}`",
            t.question,
            t.source,
            t.about,
            ", ".join(_decides(t)),
        )
        for t in _ordered()
    ]
    return markdown_table(("test", "key", "question", "source", "about", "decides for"), rows)


def goals() -> str:
    """Whom an answer is for, and which tests give it."""
    deciding = {goal: [t.name for t in built_in_tests().values() if goal in _decides(t)] for goal in GOALS}
    rows = [(f"`{goal}`", USERS[goal], ", ".join(f"`{name}`" for name in deciding[goal])) for goal in GOALS]
    return markdown_table(("goal", "for", "tests that decide"), rows)


def every_test(page: Path) -> str:
    """A section for every test."""
    return "\n".join(_section(test, page) for test in _ordered())


def _section(test: Test, page: Path) -> str:
    note = note_of(test.experiments[0])
    assert note is not None
    goals = " and ".join(f"`--goal {goal}`" for goal in _decides(test))
    lines = {
        "in a scorecard": test.label,
        "experiment": ", ".join(f"`{name}`" for name in test.experiments),
        "statistic": test.measures,
        "holds if": test.criterion.format(margin=test.margin),
        "threshold": f"{test.threshold(test.margin):g}".replace("-", "−"),
        "chance": test.chance,
        "decides": f"for {goals}" if goals else "no goal: it informs",
        "more": f"[{note.title}]({to(f'docs/{note.page}', page)})",
    }
    facts = markdown_table(("", ""), [*lines.items()])
    return f"## {test.name}\n\n**{test.question}** ({test.source})\n\n{facts}\n{test.remark}\n"


def _ordered() -> list[Test]:
    """What decides for a developer, then the others by what they look at."""
    first = [test for test in built_in_tests().values() if "faithful" in test.goals]
    return [*first, *(test for test in by_part() if test not in first)]


def _decides(test: Test) -> list[Goal]:
    """The goals that it decides: declared, and calibrated."""
    return [goal for goal in GOALS if votes(test.name, goal)]
