"""How knockout is measured; the audit asks nothing of it."""

from exegete.report.section import Note

NOTE = Note(
    formula=(
        "log p/(1 − p) of the predicted class as the model is, less the same with the edges to a word cut in a window "
        "of layers, with the sign of the loss where they are cut at all sites."
    ),
    misleads=(
        "A word that several layers read loses little in any one window: another layer reads it instead. Windows "
        "overlap, so that their losses do not add up."
    ),
    page="concepts/depth.md",
    title="Depth: layers, heads and edges",
)
