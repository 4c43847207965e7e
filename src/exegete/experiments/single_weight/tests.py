"""How single weight is measured; the audit asks nothing of it."""

from exegete.report.section import Note

NOTE = Note(
    formula="ΔJS = JS(p, p without the highest weight) − JS(p, p without a random other one).",
    misleads=(
        "The highest weight takes the most mass with it, so ΔJS is above 0 almost by construction: the negative ones "
        "are telling."
    ),
    page="concepts/erasing-attention.md",
    title="Erasing attention: does the prediction hang on the weights?",
)
