"""How plausibility is measured, and what the audit asks of it."""

from exegete.experiments.common.test import Test
from exegete.report.section import Note

NOTE = Note(
    formula=(
        "average precision = Σ over ranks k of precision(k) × (recall(k) − recall(k − 1)), against the words that "
        "people marked."
    ),
    misleads=(
        "People mark what they would use. A method may please them and say nothing of the model, so this never "
        "decides whether it is faithful."
    ),
    page="concepts/plausibility.md",
    title="Plausibility: what people marked",
)

TESTS = (
    Test(
        name="plausible",
        label="marks what people mark",
        question="Does attention mark the words that people marked as the reason?",
        criterion="average precision against human rationales is above chance by more than {margin}",
        margin=0.0,
        source="DeYoung et al. 2020",
        experiments=("plausibility",),
        statistic="exegete.experiments.plausibility.statistics:plausible",
        part="people",
        goals=("plausible",),
        words="whether it marks what people marked",
        purpose="What a person would mark",
        says={
            "holds": "it marks the words that people marked more than chance does",
            "fails": "it does not mark the words that people marked",
            "cannot tell": "whether it marks the words that people marked is not settled",
        },
        measures="average precision of attention against human rationales, minus that of a random ranking",
        remark="People may like words that the model ignores: it decides only for `--goal plausible`.",
    ),
)
