"""How heads are measured; the audit asks nothing of them."""

from exegete.report.section import Note

NOTE = Note(
    formula=(
        "log p/(1 − p) of the predicted class as the model is, less the same with one head's output set to 0; "
        "pruning: heads in the order of the mean of |∂ loss / ∂ head mask|, the least first."
    ),
    misleads=(
        "Heads can stand in for each other: one that costs nothing alone may be needed once another is gone. Of many "
        "heads, one in twenty has an interval that leaves 0 out by chance."
    ),
    page="concepts/depth.md",
    title="Depth: layers, heads and edges",
)
