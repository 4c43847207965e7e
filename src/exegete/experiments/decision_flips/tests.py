"""How decision flips is measured; the audit asks nothing of it."""

from exegete.report.section import Note

NOTE = Note(
    formula=(
        "the share of texts whose class changes without the highest weight, beside the share without a random other "
        "one."
    ),
    misleads=(
        "Most texts flip with neither, and say nothing. What is removed is a weight, not a word: its neighbours' "
        "states still carry it."
    ),
    page="concepts/erasing-attention.md",
    title="Erasing attention: does the prediction hang on the weights?",
)
