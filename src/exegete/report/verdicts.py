"""Verdicts: the tests of an audit as lines of a scorecard, for a page and for a terminal."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from exegete.audits.scorecard import Audit, Test
from exegete.base.names import Spec, parse
from exegete.page.labels import model_labels, task_labels
from exegete.page.section import Table, Verdict
from exegete.page.section import scorecard as verdict_table
from exegete.report.methods import experiment_of

Place = tuple[str, str]  # a task, without what was planted in it, and a model
NARROW = ("criterion", "paper")  # what a terminal says below the table
_NUMBER = r"(-?\d+(?:\.\d+)?)"
_WITHIN = re.compile(rf"at most {_NUMBER} (?:below|above)")  # may be worse by so much
_BEYOND = re.compile(rf"(?:above|more than|margin) {_NUMBER}")  # must be better by so much


def verdicts(audit: Audit, told: Collection[str] = ()) -> list[Verdict]:
    """The scorecard's lines; where there are several models, each says which it is about.

    `told` are the experiments that the page has sections of.
    """
    labels = places(audit.tests)
    return [
        Verdict(
            name=name_of(test, audit.tests),
            verdict=test.verdict,
            statistic=test.statistic,
            interval=None if None in test.interval else test.interval,  # type: ignore[arg-type]
            chance=test.chance,
            n=test.n or None,
            criterion=test.criterion,
            paper=test.paper,
            of=labels[place_of(test)] if len(labels) > 1 else "",
            question=test.question,
            level=test.level,
            threshold=threshold(test),
            about=test.about,
            settle=test.settle,
            doubt=test.doubt,
            against=test.against,
            votes=test.votes,
            section=named if (named := experiment_of(test.name)) in told else "",
        )
        for test in audit.tests
    ]


def place_of(test: Test) -> Place:
    """What a test is about."""
    return plain(test.task, test.model)


def plain(task: str, model: str) -> Place:
    """A task and a model; words that were planted make no other task.

    >>> plain("sst:min_df=2,planted=token", "bilstm")
    ('sst:min_df=2', 'bilstm')
    """
    name, settings = parse(task)
    return str(Spec(name, {k: v for k, v in settings.items() if not k.startswith("planted")})), model


def places(tests: Sequence[Test]) -> dict[Place, str]:
    """Every task and model that is asked about, with its label."""
    return labels_of(list(dict.fromkeys(map(place_of, tests))))


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


def name_of(test: Test, tests: Sequence[Test]) -> str:
    """A test's name, with what was planted where several things were."""
    planted = {parse(t.task).settings.get("planted") for t in tests if t.name == test.name}
    own = parse(test.task).settings.get("planted")
    return f"{test.name} ({own})" if own and len(planted) > 1 else test.name


def threshold(test: Test) -> float | None:
    """What the interval is held against: the test's own, or else as its criterion says it, if the verdict agrees."""
    given: float | None = getattr(test, "threshold", None)
    if given is not None:
        return given
    if within := _WITHIN.search(test.criterion):
        return _agreeing(-float(within[1]) + 0.0, test)
    beyond = _BEYOND.search(test.criterion)
    return _agreeing(float(beyond[1]), test) if beyond else None


def _agreeing(value: float, test: Test) -> float | None:
    """A margin that was read from words is drawn only where it gives the verdict that was given."""
    low, high = test.interval
    if low is None or high is None:
        return None
    wrong = (test.verdict == "holds" and low <= value) or (test.verdict == "fails" and high >= value)
    return None if wrong else value


def scorecard(audit: Audit) -> Table:
    """The scorecard for a terminal: the numbers in a narrow table; `questions` says what they mean."""
    whole = verdict_table(verdicts(audit))
    return replace(whole, columns=[c for c in whole.columns if c.title not in NARROW], caption="")


def questions(audit: Audit) -> list[str]:
    """What every test asks, its criterion, and the paper it comes from."""
    asked = {
        test.name: f"{test.name}: {test.question} Holds if {test.criterion} ({test.paper})." for test in audit.tests
    }
    return list(asked.values())
