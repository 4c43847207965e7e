"""How supporting facts is measured, and what the audit asks of it."""

from exegete.experiments.common.test import Test
from exegete.report.section import Note

NOTE = Note(
    formula=(
        "precision at k = |the k highest sentences ∩ the supporting ones| / k; a sentence scores as its highest word."
    ),
    misleads=(
        "A model may answer right without the supporting sentences, by what is frequent: then a method that misses "
        "them may be faithful."
    ),
    page="concepts/pairs.md",
    title="Pairs of texts",
)

TESTS = (
    Test(
        name="finds_facts",
        label="finds the needed sentences",
        question="Does attention point at the sentences that a question needs?",
        criterion=(
            "precision at k of the supporting sentences (each scored by its highest word) is above {margin}, on "
            "questions answered right"
        ),
        margin=0.8,
        source="Weston et al. 2015",
        experiments=("supporting_facts",),
        statistic="exegete.experiments.supporting_facts.statistics:finds_facts",
        part="known reasons",
        kind="pair",
        goals=("sanity",),
        words="whether it points at the sentences that a question needs",
        purpose="Which sentences answer",
        says={
            "holds": "sentence by sentence, it points at those that the question needs.",
            "fails": "sentence by sentence, it misses some of those that the question needs.",
            "cannot tell": "whether it points at the sentences that the question needs is not settled.",
        },
        measures=(
            "precision at k of attention for the sentences that a question needs, a sentence scoring as its highest "
            "word, on questions that the model answers right"
        ),
        chance="the precision of a random order of sentences",
        remark=(
            "It is asked where the data say which sentences support an answer (`stories`, `babi`). A model may "
            "answer right without them, and an encoder may carry one fact to the words of another: then attention "
            "that points at one place is not wrong, and this test fails all the same. It informs, and decides only "
            "for `--goal sanity`."
        ),
    ),
)
