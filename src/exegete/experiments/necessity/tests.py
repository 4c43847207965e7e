"""How necessity is measured, and what the audit asks of it."""

from exegete.experiments.common.test import Test
from exegete.report.section import Note

NOTE = Note(
    formula="loss = accuracy with attention − accuracy with the same weight on every word, paired by text.",
    misleads=(
        "At inference only, a model gets weights that it was not made for, and a loss says little: what counts is "
        "another model that learnt with them. That an interval holds 0 does not make two models equal."
    ),
    page="concepts/necessity.md",
    title="Necessity: does the model need its attention?",
)

TESTS = (
    Test(
        name="needed",
        label="worse without attention",
        question="Does a model that is trained with uniform weights predict worse?",
        criterion="accuracy lost with uniform weights in training and inference is above {margin}",
        margin=0.01,
        source="Wiegreffe & Pinter 2019",
        experiments=("necessity",),
        statistic="exegete.experiments.necessity.statistics:needed",
        part="alternatives",
        about="recipe",
        words="whether the task needs it",
        says={
            "holds": "Trained with uniform weights the model predicts worse: attention is needed for this task.",
            "fails": "Trained with uniform weights the model predicts hardly worse: this task does not need attention.",
            "cannot tell": "attention is needed",
        },
        measures="accuracy (BLEU / 100) lost by a model that is trained with uniform weights",
        remark=(
            "About the training recipe: fewer than five seeds settle nothing. A model may use attention that its "
            "task does not need."
        ),
    ),
)
