"""How agreement is measured, and what the audit asks of it."""

from exegete.experiments.common.test import Test
from exegete.report.section import Note

NOTE = Note(
    formula=(
        "τ-b = (C − D) / √((N − T₁)(N − T₂)): of N pairs of words C are ordered alike by both scores, D the other "
        "way round, T₁ and T₂ are tied in one."
    ),
    misleads=(
        "With many texts everything beats chance, so what counts is whether attention agrees with the others nearly "
        "as well as they agree with each other. Ties cap τ-b. And two methods may agree and both be wrong."
    ),
    page="concepts/rank-agreement.md",
    title="Rank agreement, chance and ties",
)

TESTS = (
    Test(
        name="agrees",
        label="agrees with saliency",
        question="Does attention rank the words of a text as the other importances rank them?",
        criterion="mean τ-b of attention with the others is at most {margin} below their mean τ-b with each other",
        margin=0.1,
        source="Jain & Wallace 2019",
        experiments=("agreement",),
        statistic="exegete.experiments.agreement.statistics:agrees",
        part="words",
        within=True,
        bound=2.0,
        words="whether it ranks words as other importances do",
        says={
            "holds": "Attention agrees with {against} at least about as well as these agree with each other.",
            "fails": "Attention agrees with {against} clearly less than these agree with each other.",
            "cannot tell": (
                "These texts or seeds don't settle whether attention agrees with {against} as well as these with each "
                "other."
            ),
            "doubt": "Whether attention agrees with {against} as well as these with each other can't be told: {doubt}.",
        },
        measures=(
            "τ̄(attention, others) − τ̄(others, others), the mean of τ-b over texts; the others are the gradient and "
            "leave-one-out unless a study names more"
        ),
        chance="minus the mean τ of the others with each other: what a ranking that knows nothing would score",
        remark=(
            'It asks for non-inferiority, because "better than noise" is met by nearly everything with a thousand '
            "texts. Where the others hardly agree with each other (within the margin of noise) nothing can be told. "
            "Agreement is not faithfulness: methods may agree on what does not matter."
        ),
    ),
    Test(
        name="agrees_beyond_ties",
        label="agrees with saliency, ties aside",
        question="Does it, if every τ-b is taken as a share of what ties allow? (Sparse attention ties many words.)",
        criterion="mean corrected τ-b of attention with the others is at most {margin} below theirs with each other",
        margin=0.1,
        source="Neely & Schouten 2020",
        experiments=("agreement",),
        statistic="exegete.experiments.agreement.statistics:agrees_beyond_ties",
        part="words",
        within=True,
        bound=2.0,
        explains={
            "holds": "That hangs on ties: as a share of what ties allow, it agrees as well as they do.",
            "fails": "That hangs on ties: as a share of what ties allow, it agrees clearly less than they do.",
        },
        measures="the same, with every τ-b divided by the largest value that its ties allow",
        chance="as for `agrees`",
        remark=(
            "Sparse attention ties many words at 0, and ties cap τ-b. Where this test and `agrees` contradict each "
            "other, the answer says that it hangs on ties."
        ),
    ),
    Test(
        name="beats_chance",
        label="agreement above chance",
        question="Does attention agree with the other importances more than noise does?",
        criterion="mean τ-b of attention with the others is above chance (margin {margin})",
        margin=0.0,
        source="Jain & Wallace 2019",
        experiments=("agreement",),
        statistic="exegete.experiments.agreement.statistics:beats_chance",
        part="words",
        says={
            "holds": "It does agree with them more than noise would.",
            "fails": "It does not even agree with them more than noise would.",
            "cannot tell": "Whether it agrees with them more than noise would is not settled.",
        },
        measures="τ̄(attention, others)",
        remark=(
            "Easy to pass with hundreds of texts: it holds in 8 of 23 audits of models whose random attention nothing "
            "reads."
        ),
    ),
)
