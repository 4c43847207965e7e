"""How permutation is measured, and what the audit asks of it."""

from exegete.experiments.common.test import Test
from exegete.report.section import Note

NOTE = Note(
    formula=(
        "TVD = ½ Σ over classes y of |p(y) − p′(y)|, p′ with the weights shuffled over the words; the median over "
        "the shuffles of a text, the mean over texts."
    ),
    misleads=(
        "A probability near 0 or 1 hardly moves whatever the weights do, and flat weights have nothing to move: read "
        "the margin and the largest weight beside it."
    ),
    page="concepts/counterfactual-attention.md",
    title="Counterfactual attention",
)

TESTS = (
    Test(
        name="used",
        label="sensitive to shuffling",
        question="Does the prediction care which word carries which weight?",
        criterion="median TVD of predictions under 100 permutations of the weights, mean over texts, is above {margin}",
        margin=0.05,
        source="Jain & Wallace 2019",
        experiments=("permutation",),
        statistic="exegete.experiments.permutation.statistics:used",
        part="weights",
        goals=("sanity",),
        words="whether the prediction cares which word carries which weight",
        says={
            "holds": "The prediction does depend on which word carries which weight: shuffling the weights changes it.",
            "fails": "The prediction hardly depends on which word carries which weight: shuffling them changes little.",
            "cannot tell": "How much the prediction depends on which word carries which weight is not settled.",
        },
        measures="median TVD of the output over 100 permutations of the weights, the mean over texts",
        remark="Probabilities that are saturated don't move whatever happens: if logits do, the test can't tell.",
    ),
)
