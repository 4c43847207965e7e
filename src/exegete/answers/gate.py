"""Gate: an audit as a check that a build can stop at.

What passes: tests that hold, and those that can't tell or are not testable, which are said; where the gate is strict,
only tests that hold. What hangs on how a word is removed does not hold in all ways, and stops a build like a failure.

Beside tests a grade may be named: *grade<partly* stops where the worst that an answer leaves possible is less than
that. *At most partly* may be *hardly*, and stops; what nobody knows stops, too.
"""

from collections.abc import Sequence

from exegete.answers.criteria import SEEDS_FOR_A_RECIPE
from exegete.answers.decision import WORST
from exegete.answers.scorecard import Audit
from exegete.base.errors import ExegeteError, UsageError, unknown
from exegete.experiments.tests import all_tests
from exegete.report.section import Verdict
from exegete.runs.cell import unasked_questions
from exegete.runs.study import Study

STOPS = ("fails", "hangs on")
GRADE = "grade<"
GRADES = {f"{GRADE}partly": 1, f"{GRADE}strong": 2}  # what must be left possible at worst, as `WORST` has it


class AuditFailedError(ExegeteError):
    """A test that had to hold does not: exit code 3, so that a build can tell it from an audit that did not run."""

    exit_code = 3


def named_tests(written: str, study: Study | None = None) -> tuple[str, ...]:
    """Tests and grades, separated by commas; refused at once where the study can't answer one of them."""
    names = tuple(filter(None, ("".join(name.split()) for name in written.split(","))))
    if not names:
        raise UsageError("name at least one test to fail on, as in --fail-on reads,ranks")
    for name in names:
        if name.startswith("grade") and name not in GRADES:
            raise UsageError(f"there is no '{name}' to fail on: write {' or '.join(GRADES)}")
        if name not in (*all_tests(), *GRADES):
            raise unknown("test", name, (*all_tests(), *GRADES))
        if study is not None:
            _answerable(name, study)
    return names


def names_a_grade(written: str) -> bool:
    """Whether one of the names is a grade."""
    return any(name.strip().startswith("grade") for name in written.split(","))


def _resting_on(name: str) -> str:
    """The test whose experiments a name needs: a grade is that of `ranks`."""
    return "ranks" if name in GRADES else name


def refuse_unanswerable(names: Sequence[str], study: Study) -> None:
    """Refuse, before anything is trained, a test that none of a study's tasks and models can answer."""
    if not names:
        return
    reasons = [unasked_questions(study, cell) for cell in study.cells]
    for name in names:
        asked = all_tests()[_resting_on(name)].experiments
        refused = [next((cell[each] for each in asked if each in cell), None) for cell in reasons]
        if None not in refused:
            raise UsageError(f"study '{study.name}' can't answer '{name}': {refused[0]}; or leave it out")


def _answerable(name: str, study: Study) -> None:
    """Refuse a test that a study does not ask, or that its seeds can't settle."""
    test = all_tests()[_resting_on(name)]
    asked = {each for task in study.tasks for each in study.built_experiments(task)}
    missing = [each for each in test.experiments if each not in asked]
    if missing:
        raise UsageError(
            f"study '{study.name}' can't answer '{name}': it does not ask {' and '.join(missing)}; take a study that "
            "does, or leave it out"
        )
    if test.about == "recipe" and len(study.seeds) < SEEDS_FOR_A_RECIPE:
        raise UsageError(
            f"study '{study.name}' can't answer '{name}': a claim about training needs {SEEDS_FOR_A_RECIPE} seeds, and "
            f"it has {len(study.seeds)}; name more, or leave it out"
        )


def check_gate(found: Audit, names: Sequence[str], strict: bool = False) -> list[str]:
    """Raise if a named test does not hold for any model, or a grade may be less than what is named.

    Returns sentences on tests that may pass without, unless `strict`.
    """
    graded = [said for name in names if name in GRADES for said in _below(found, name)]
    asked = {name: [test for test in found.tests if test.name == name] for name in names if name not in GRADES}
    for name, lines in asked.items():
        if not lines:
            raise UsageError(f"this audit does not ask '{name}': take a study that does, or leave it out")
    open_ = [line for lines in asked.values() for line in lines if line.verdict != "holds"]
    failed = [line for line in open_ if strict or line.verdict in STOPS]
    if failed or graded:
        raise AuditFailedError("; ".join([*graded, *map(_said, failed)]))
    return [_said(line) for line in open_]


def _below(found: Audit, name: str) -> list[str]:
    """A sentence for every model whose answer leaves less possible than a grade."""
    if found.goal != "faithful" or not found.decisions:
        raise UsageError(f"this audit grades nothing, which '{name}' needs: ask with the goal faithful")
    needed = name.removeprefix(GRADE)
    return [
        f"attention may be less than {needed} for {model} on {task}: {decision.first}"
        for (task, model), decision in found.decisions.items()
        if WORST[decision.answer] < GRADES[name]
    ]


def _said(line: Verdict) -> str:
    low, high = line.bounds or (None, None)
    number = "" if line.statistic is None or low is None else f" ({line.statistic:.3f} [{low:.3f}, {high:.3f}])"
    why = line.doubt or f"holds if {line.criterion}"
    return f"{line.name} {line.verdict} for {line.model} on {line.task}{number}: {why}"
