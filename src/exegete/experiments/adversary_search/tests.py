"""How adversary search is measured, and what the audit asks of it."""

from exegete.experiments.common.test import Test
from exegete.report.section import Note

NOTE = Note(
    formula=(
        "ε-max JSD = the largest JSD(α, α′) among weights α′ with TVD(p, p′) ≤ ε, in natural logarithms, at most ln 2."
    ),
    misleads=(
        "It is large for every linear decoder, so it is held against models that are faithful by construction, never "
        "against 0. Attention claims to be an explanation, not the only one: uniqueness never decides."
    ),
    page="concepts/counterfactual-attention.md",
    title="Counterfactual attention",
)

TESTS = (
    Test(
        name="unique",
        label="alternatives no easier to find",
        question="Is there no other attention, found by search, that gives the same prediction? (It never decides.)",
        criterion=(
            "ε-max JSD of searched adversaries is at most {margin} above that of a model that is faithful by "
            "construction"
        ),
        margin=0.05,
        source="Jain & Wallace 2019",
        experiments=("adversary_search",),
        statistic="exegete.experiments.adversary_search.statistics:unique",
        part="alternatives",
        within=True,
        words="whether other weights give the same prediction",
        says={
            "holds": (
                "Other weights with the same prediction are no easier to find than in a model that is faithful by "
                "construction."
            ),
            "fails": (
                "Very different weights with the same prediction can be found, more easily than in a model that is "
                "faithful by construction; that alone does not speak against reading these."
            ),
            "cannot tell": (
                "Whether very different weights with the same prediction are easier to find than in a model that is "
                "faithful by construction is not settled."
            ),
        },
        measures=(
            "ε-max JSD of searched adversaries of a model that is faithful by construction, minus that of this "
            "model, on texts where both are about equally flat"
        ),
        chance="what a model whose decoder does not read its attention scores",
        remark=(
            "Any linear decoder has adversaries, so it is held against a faithful model, never against 0. It never "
            "decides: attention claims to be *an* explanation."
        ),
    ),
)
