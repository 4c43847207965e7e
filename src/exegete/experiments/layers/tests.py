"""How layers is measured; the audit asks nothing of it."""

from exegete.report.section import Note

NOTE = Note(
    formula=(
        "accuracy or BLEU with the weights of k layers of a group shuffled, or altered otherwise, less that of the "
        "model as it is."
    ),
    misleads=(
        "The model was trained with its own weights: a loss says that it rests on them, not that another model would "
        "need them."
    ),
    page="concepts/self-attention.md",
    title="Self-attention",
)
