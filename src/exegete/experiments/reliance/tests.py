"""How reliance is measured; the audit asks nothing of it."""

from exegete.report.section import Note

NOTE = Note(
    formula=(
        "x = accuracy lost with uniform weights, y = JSD of the best adversary that predicts the same; a point per "
        "model, and their rank correlation."
    ),
    misleads="A few points say little, and longer texts give an adversary more room.",
    page="concepts/reliance.md",
    title="Reliance: is a model that needs its attention harder to fake?",
)
