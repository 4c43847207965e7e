"""How importance sets is measured, and what the audit asks of it."""

from exegete.experiments.common.test import Test
from exegete.report.section import Note

NOTE = Note(
    formula=(
        "the smallest share of the weights that must go, highest first in an order, until the class changes; 1 if it "
        "never does."
    ),
    misleads=(
        "Texts that never flip are of the class that the bias prefers. Leaving them out flatters bad orders, so they "
        "count as 1. The gradient is the slope of what is to flip."
    ),
    page="concepts/erasing-attention.md",
    title="Erasing attention: does the prediction hang on the weights?",
)

TESTS = (
    Test(
        name="ranks_decisions",
        label="flips decisions early",
        question="Does the decision flip sooner if weights are removed from the largest on, not in random order?",
        criterion=(
            "the share of weights removed before the decision flips is below that of random order by more than {margin}"
        ),
        margin=0.1,
        source="Serrano & Smith 2019",
        experiments=("importance_sets",),
        statistic="exegete.experiments.importance_sets.statistics:ranks_decisions",
        part="weights",
        words="whether decisions hang on its largest weights",
        says={
            "holds": "Removing weights from the largest on flips decisions clearly sooner than in random order.",
            "fails": "Removing weights from the largest on flips decisions hardly sooner than in random order.",
            "cannot tell": (
                "Whether removing weights from the largest on flips decisions sooner than in random order is not "
                "settled."
            ),
        },
        measures=(
            "share of the weights removed before the decision flips in random order, minus the same from the largest "
            "weight on; a decision that nothing flips counts as 1"
        ),
        remark=(
            "Not against the gradient's order, which Serrano & Smith found shorter: it knows which class a weight "
            "speaks for, and is shorter even for a model that is faithful by construction. On the ladder of models "
            "with known truth the statistic is 0.00, 0.06, 0.10, 0.17 and 0.21 (3 seeds): the margin stands between."
        ),
    ),
)
