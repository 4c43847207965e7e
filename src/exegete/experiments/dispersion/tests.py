"""How dispersion is measured; the audit asks nothing of it."""

from exegete.report.section import Note

NOTE = Note(
    formula="normalised entropy = −Σ a_t log a_t / log T of the shares a_t of importance over T words.",
    misleads=(
        "Attention weighs states, and a state is made of many words: sparse weights need not be a sparse choice of "
        "words."
    ),
    page="concepts/dispersion.md",
    title="Dispersion: words, states and sparse attention",
)
