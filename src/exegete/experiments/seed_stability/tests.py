"""How seed stability is measured, and what the audit asks of it."""

import math

from exegete.experiments.common.test import Test
from exegete.report.section import Note

NOTE = Note(
    formula=(
        "1 − JSD(α, α′) / JSD(α, permuted α′), α′ being the weights of another seed: 1 for the same weights, 0 for "
        "weights that share nothing but their shape."
    ),
    misleads=(
        "Flat weights are near all others, hence the permuted ones. Two seeds may have different good reasons, and "
        "stable weights may be stably wrong."
    ),
    page="concepts/seeds-and-diagnostics.md",
    title="Seeds and the diagnostic: is attention a fact about the words, or about one training?",
)

TESTS = (
    Test(
        name="stable",
        label="stable over seeds",
        question="Do models that differ by seed attend to the same words?",
        criterion="1 − JSD / JSD after permuting, between seeds, is above {margin} (0: as unlike as unrelated weights)",
        margin=0.5,
        source="Wiegreffe & Pinter 2019",
        experiments=("seed_stability",),
        statistic="exegete.experiments.seed_stability.statistics:stable",
        part="alternatives",
        bound=math.inf,
        about="recipe",
        words="whether it is stable over seeds",
        says={
            "holds": "Models that differ by seed attend to much the same words.",
            "fails": "Models that differ only by seed attend to different words.",
            "cannot tell": "it is stable over seeds",
        },
        measures="1 − JSD / JSD after permuting one of the two, between models that differ by seed",
        remark="Flat weights are near all others, hence the ratio. About the recipe.",
    ),
)
