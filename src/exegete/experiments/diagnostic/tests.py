"""How diagnostic is measured, and what the audit asks of it."""

from exegete.experiments.common.test import Test
from exegete.report.section import Note

NOTE = Note(
    formula=(
        "gain = accuracy of a model of single words with these weights imposed − accuracy with uniform ones, paired "
        "by text."
    ),
    misleads=(
        "That weights help another model says that they carry something about the words, not that they are how the "
        "first model decides."
    ),
    page="concepts/seeds-and-diagnostics.md",
    title="Seeds and the diagnostic: is attention a fact about the words, or about one training?",
)

TESTS = (
    Test(
        name="informative",
        label="helps a bag of words",
        question="Do the weights help a model that sees single words, compared with uniform ones?",
        criterion="accuracy gained by imposing the weights on a model of single words is above {margin}",
        margin=0.0,
        source="Wiegreffe & Pinter 2019",
        experiments=("diagnostic",),
        statistic="exegete.experiments.diagnostic.statistics:informative",
        part="alternatives",
        about="recipe",
        words="whether its weights help another model",
        says={
            "holds": "The weights help a model that sees single words: they carry something that was learnt.",
            "fails": "The weights do not help a model that sees single words.",
            "cannot tell": "its weights help a model of single words",
        },
        measures="accuracy that a model of single words gains when it gets these weights instead of uniform ones",
        remark="About the recipe. Weights may be informative and yet not be what the model uses.",
    ),
)
