"""How known answer is measured, and what the audit asks of it."""

from exegete.experiments.common.test import Test
from exegete.report.section import Note

NOTE = Note(
    formula=(
        "precision at k = |the k highest words ∩ the planted words| / k, k being the number of planted words in a text."
    ),
    misleads=(
        "It is about the same model trained on other texts, with a reason that is easier than real ones. It counts "
        "only where the model obeys the planted words."
    ),
    page="concepts/known-answers.md",
    title="Known answers: planted words and toys",
)

TESTS = (
    Test(
        name="known_answer",
        label="finds planted words",
        question="Does attention find words that were planted in the data so that they decide the class?",
        criterion=(
            "precision at k of the planted words is above {margin}, on texts where the model obeys and needs them"
        ),
        margin=0.8,
        source="Bastings et al. 2021",
        experiments=("known_answer",),
        statistic="exegete.experiments.known_answer.statistics:finds_planted",
        part="known reasons",
        goals=("sanity",),
        words="whether it finds planted words",
        says={
            "holds": "The same model, trained where there is {planted}: there attention finds it.",
            "fails": "The same model, trained where there is {planted}: there attention misses it.",
            "cannot tell": (
                "The same model, trained where there is {planted}: whether attention finds it there is not settled."
            ),
            "doubt": "Of {planted}, nothing can be told: {doubt}.",
        },
        measures=(
            "precision at k of attention for planted words that decide the class, on texts where the model obeys and "
            "needs them"
        ),
        chance="the precision of a random ranking",
        remark=(
            "It needs a training on planted data, so it is about the recipe's behaviour there; a checkpoint can't be "
            "asked."
        ),
    ),
)
