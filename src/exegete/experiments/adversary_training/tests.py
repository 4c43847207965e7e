"""How adversary training is measured, and what the audit asks of it."""

import math

from exegete.experiments.common.test import Test
from exegete.report.section import Note

NOTE = Note(
    formula=(
        "loss of the adversary = TVD(p, p′) − λ KL(α′ ‖ α), the mean over texts; judged: 1 − JSD / permuted JSD of "
        "the one that gets furthest with the same predictions."
    ),
    misleads=(
        "An adversary that was stopped early looks costly, and one that never left its start looks impossible. A far "
        "adversary says that attention is not the only account, not that it is a wrong one."
    ),
    page="concepts/adversary-training.md",
    title="Adversary training: can a model learn to attend elsewhere?",
)

TESTS = (
    Test(
        name="hard_to_fake",
        label="no alternative trainable",
        question="Can no model be trained to predict the same with other weights?",
        criterion=(
            "1 − JSD / JSD after permuting, of the adversary that gets furthest with TVD ≤ 0.05, is above {margin}"
        ),
        margin=0.5,
        source="Wiegreffe & Pinter 2019",
        experiments=("adversary_training",),
        statistic="exegete.experiments.adversary_training.statistics:hard_to_fake",
        part="alternatives",
        bound=math.inf,
        about="recipe",
        words="whether it is hard to fake",
        says={
            "holds": "No model could be trained to predict the same with very different weights.",
            "fails": "A model could be trained to predict the same with very different weights.",
            "cannot tell": "it is hard to fake",
        },
        measures=(
            "1 − JSD / JSD after permuting, of the trained adversary that gets furthest with a mean TVD of at most 0.05"
        ),
        remark=(
            "Where no adversary predicts the same, a longer training might: the test can't tell. Nor can it where the "
            "adversary came back to the model's own weights, where any training may end. The default audit trains one, "
            "with one λ, from a warm start."
        ),
    ),
)
