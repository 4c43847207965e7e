"""How deception is measured; the audit asks nothing of it."""

from exegete.report.section import Note

NOTE = Note(
    formula="loss + penalty −λ log(1 − mass of attention on the words that decide).",
    misleads=(
        "A model that has lost the words instead of hiding them has not learnt the task: look at its accuracy first."
    ),
    page="concepts/deception.md",
    title="Deception: can attention hide the words that decide?",
)
