"""Verdicts: the tests of an audit as lines of a scorecard, for a page and for a terminal."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from exegete.audits.scorecard import Audit
from exegete.base.names import Spec, parse
from exegete.experiments.tests import declared
from exegete.page.labels import model_labels, shortened, task_labels
from exegete.page.section import Table, Verdict
from exegete.page.section import scorecard as verdict_table

Place = tuple[str, str]  # a task, without what was planted in it, and a model
DECIDES = "◆"  # before the name of a test that decides the answer
NARROW = ("criterion", "paper")  # what a terminal says below the table


def verdicts(audit: Audit, told: Collection[str] = ()) -> list[Verdict]:
    """The scorecard's lines; where there are several models, each says which it is about.

    `told` are the experiments that the page has sections of.
    """
    labels = places(audit.tests)
    return [
        replace(
            test,
            name=name_of(test, audit.tests),
            of=labels[place_of(test)] if len(labels) > 1 else "",
            section=named if (named := experiment_of(test.name)) in told else "",
        )
        for test in audit.tests
    ]


def experiment_of(test: str) -> str:
    """The experiment in whose section a test is told."""
    return declared()[test].experiments[0]


def place_of(test: Verdict) -> Place:
    """What a test is about."""
    return plain(test.task, test.model)


def plain(task: str, model: str) -> Place:
    """A task and a model; words that were planted make no other task.

    >>> plain("sst:min_df=2,planted=token", "bilstm")
    ('sst:min_df=2', 'bilstm')
    """
    name, settings = parse(task)
    return str(Spec(name, {k: v for k, v in settings.items() if not k.startswith("planted")})), model


def places(lines: Sequence[Verdict]) -> dict[Place, str]:
    """Every task and model that is asked about, with its label."""
    return labels_of(list(dict.fromkeys(map(place_of, lines))))


def labels_of(every: Sequence[Place]) -> dict[Place, str]:
    """A label for every task and model, of which each part is only said where it differs."""
    tasks, models = task_labels(task for task, _ in every), model_labels(model for _, model in every)
    several = len(tasks) > 1, len(models) > 1
    return {
        (task, model): " · ".join(
            label for label, said in zip((tasks[task], models[model]), several, strict=True) if said
        )
        for task, model in every
    }


def name_of(test: Verdict, lines: Sequence[Verdict]) -> str:
    """A test's name, with what was planted where several things were."""
    planted = {parse(t.task).settings.get("planted") for t in lines if t.name == test.name}
    own = parse(test.task).settings.get("planted")
    return f"{test.name} ({own})" if own and len(planted) > 1 else test.name


def for_reader(audit: Audit) -> Audit:
    """The audit with the files of tasks and models called by their own names in all that it says."""
    named = {each for test in audit.tests for each in (test.task, test.model)}
    untested = tuple(shortened(line, named) for line in audit.untested)
    tests = tuple(replace(test, doubt=shortened(test.doubt, named)) for test in audit.tests)
    return replace(audit, answer=shortened(audit.answer, named), untested=untested, tests=tests)


def scorecard(audit: Audit) -> Table:
    """The scorecard for a terminal: a narrow table, in which what decides is marked; `questions` says what all mean."""
    lines = verdicts(audit)
    whole = verdict_table([replace(line, name=f"{DECIDES} {line.name}") if line.votes else line for line in lines])
    return replace(whole, columns=[c for c in whole.columns if c.title not in NARROW], caption="")


def questions(audit: Audit) -> list[str]:
    """What every test asks, its criterion, and the paper it comes from."""
    asked = {
        test.name: f"{test.name}: {test.question} Holds if {test.criterion} ({test.paper})." for test in audit.tests
    }
    return list(asked.values())
