"""Verdicts: the tests of an audit as lines of a scorecard, for a page and for a terminal."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from exegete.answers.scorecard import Audit
from exegete.base.names import Spec, parse
from exegete.experiments.common.test import PART_TITLES
from exegete.experiments.tests import all_tests, by_part, label_of
from exegete.report.columns import count, estimate, text, verdict
from exegete.report.labels import model_labels, shorten_paths, task_labels
from exegete.report.section import Table, Verdict
from exegete.report.section import scorecard as verdict_table

TaskAndModel = tuple[str, str]  # a task, without what was planted in it, and a model


def verdicts(audit: Audit, told: Collection[str] = ()) -> list[Verdict]:
    """The scorecard's lines; where there are several models, each says which it is about.

    `told` are the experiments that the page has sections of.
    """
    labels = verdict_places(audit.tests)
    return [
        replace(
            test,
            name=name_of_test(test, audit.tests),
            title=title_of(test, audit.tests),
            of=labels[task_and_model(test)] if len(labels) > 1 else "",
            section=named if (named := experiment_of(test.name)) in told else "",
        )
        for test in audit.tests
    ]


def experiment_of(test: str) -> str:
    """The experiment in whose section a test is told."""
    return all_tests()[test].experiments[0]


def task_and_model(test: Verdict) -> TaskAndModel:
    """What a test is about."""
    return plain(test.task, test.model)


def plain(task: str, model: str) -> TaskAndModel:
    """A task and a model; words that were planted make no other task.

    >>> plain("sst:min_df=2,planted=token", "bilstm")
    ('sst:min_df=2', 'bilstm')
    """
    name, settings = parse(task)
    return str(Spec(name, {k: v for k, v in settings.items() if not k.startswith("planted")})), model


def verdict_places(lines: Sequence[Verdict]) -> dict[TaskAndModel, str]:
    """Every task and model that is asked about, with its label."""
    return labels_by_place(list(dict.fromkeys(map(task_and_model, lines))))


def labels_by_place(every: Sequence[TaskAndModel]) -> dict[TaskAndModel, str]:
    """A label for every task and model, of which each part is only said where it differs."""
    tasks, models = task_labels(task for task, _ in every), model_labels(model for _, model in every)
    several = len(tasks) > 1, len(models) > 1
    return {
        (task, model): " · ".join(
            label for label, said in zip((tasks[task], models[model]), several, strict=True) if said
        )
        for task, model in every
    }


def name_of_test(test: Verdict, lines: Sequence[Verdict]) -> str:
    """A test's name, with what was planted where several things were."""
    return f"{test.name}{_planted(test, lines)}"


def title_of(test: Verdict, lines: Sequence[Verdict]) -> str:
    """A test's name in words, with what was planted where several things were."""
    return f"{label_of(test.name)}{_planted(test, lines)}"


def _planted(test: Verdict, lines: Sequence[Verdict]) -> str:
    planted = {parse(t.task).settings.get("planted") for t in lines if t.name == test.name}
    own = parse(test.task).settings.get("planted")
    return f" ({own})" if own and len(planted) > 1 else ""


def for_reader(audit: Audit) -> Audit:
    """The audit with the files of tasks and models called by their own names in all that it says."""
    named = {each for test in audit.tests for each in (test.task, test.model)}
    untested = tuple(shorten_paths(line, named) for line in audit.untested)
    tests = tuple(replace(test, doubt=shorten_paths(test.doubt, named)) for test in audit.tests)
    findings = tuple(shorten_paths(line, named) for line in audit.findings)
    return replace(audit, answer=shorten_paths(audit.answer, named), untested=untested, tests=tests, findings=findings)


def by_group(lines: Sequence[Verdict]) -> tuple[list[Verdict], list[tuple[str, list[Verdict]]]]:
    """The tests that decide, and the others by what they look at."""
    parts: dict[str, list[Verdict]] = {title: [] for title in PART_TITLES.values()}
    for line in lines:
        if not line.votes:
            parts[_part(line)].append(line)
    return [line for line in lines if line.votes], [(title, found) for title, found in parts.items() if found]


def _part(line: Verdict) -> str:
    key = line.name.partition(" ")[0]
    return PART_TITLES[all_tests()[key].part] if key in all_tests() else PART_TITLES["words"]


def scorecards(audit: Audit, everything: bool = False) -> list[Table]:
    """For a terminal: narrow tables of what decides and, if everything is asked for, of what informs."""
    deciding, informing = by_group(verdicts(audit))
    shown = [("What decides", deciding)] if deciding else []
    shown += informing if everything or not deciding else []
    return [_narrow(title, lines) for title, lines in shown]


def _narrow(title: str, lines: Sequence[Verdict]) -> Table:
    """A table that fits a terminal; `questions` says what its tests ask, and when they hold."""
    columns = (
        text("label", "test"),
        verdict("verdict", settled_by="settled_by"),
        estimate("statistic", "low", "high", "found"),
        text("needs"),
        count("n"),
    )
    return replace(verdict_table(lines), title=title, columns=columns, caption="")


def informing(audit: Audit) -> int:
    """How many tests of what was asked inform and don't decide, where some decide."""
    deciding = {test.name for test in audit.tests if test.votes}
    return len({test.name for test in audit.tests if test.verdict != "not testable"} - deciding) if deciding else 0


def unasked_tests(audit: Audit) -> list[str]:
    """Tests, in words, that can't be asked of this model or these data, or that nobody asked for."""
    there = {test.name for test in audit.tests if test.verdict != "not testable"}
    return [test.label for test in by_part() if test.words and not test.kind and test.name not in there]


def questions_of_tests(audit: Audit) -> list[str]:
    """What every test asks, its criterion, and the paper it comes from."""
    asked = {
        test.name: f"{label_of(test.name)} ({test.name}): {test.question} Holds if {test.criterion} ({test.paper})."
        for test in audit.tests
    }
    return list(asked.values())
