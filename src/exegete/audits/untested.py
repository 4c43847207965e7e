"""Untested: what an audit could not ask, or did not, and why."""

from collections.abc import Iterator, Sequence

from exegete.audits.context import Context
from exegete.audits.scorecard import Criteria, Test

# The first test of each experiment stands for all of them.
TESTS = {
    "agreement": "agrees",
    "faithfulness": "faithful",
    "permutation": "used",
    "importance_sets": "ranks_decisions",
    "known_answer": "known_answer",
    "supporting_facts": "finds_facts",
    "adversary_search": "unique",
    "necessity": "needed",
    "seed_stability": "stable",
    "diagnostic": "informative",
    "adversary_training": "hard_to_fake",
    "plausibility": "plausible",
}
RECIPE = ("needed", "stable", "informative", "hard_to_fake")  # they need more trainings


def untestable(context: Context, criteria: Criteria) -> Iterator[Test]:
    """A line of the scorecard for every test that was asked for and can't be had of this model or these data."""
    for (task, model), reasons in context.unasked.items():
        for experiment, reason in reasons.items():
            if experiment in TESTS:
                yield _line(TESTS[experiment], task, model, criteria, reason)


def _line(name: str, task: str, model: str, criteria: Criteria, reason: str) -> Test:
    criterion = getattr(criteria, name)
    return Test(
        name=name,
        task=task,
        model=model,
        question=criterion.question,
        statistic=None,
        n=0,
        interval=(None, None),
        level=0.95,
        chance=None,
        criterion=str(criterion),
        verdict="not testable",
        about="this training recipe" if name in RECIPE else "this checkpoint",
        paper=criterion.paper,
        doubt=reason,
    )


WORDS = {
    "agrees": "whether it ranks words as other importances do",
    "faithful": "whether the words that it ranks first matter for the prediction",
    "used": "whether the prediction cares which word carries which weight",
    "ranks_decisions": "whether decisions hang on its largest weights",
    "known_answer": "whether it finds planted words",
    "finds_facts": "whether it points at the sentences that a question needs",
    "unique": "whether other weights give the same prediction",
    "needed": "whether the task needs it",
    "stable": "whether it is stable over seeds",
    "informative": "whether its weights help another model",
    "hard_to_fake": "whether it is hard to fake",
    "plausible": "whether it marks what people marked",
}


def untested(tests: Sequence[Test]) -> list[str]:
    """Sentences: what can't be tested here, with its reason, and what was not asked for."""
    said = {f"It can't be tested {WORDS[test.name]}: {test.doubt}." for test in tests if test.verdict == "not testable"}
    asked = {test.name for test in tests}
    rest = [words for name, words in WORDS.items() if name not in asked and name != "finds_facts"]  # only of questions
    return [*sorted(said), *([f"It was not asked {', '.join(rest)}."] if rest else [])]
