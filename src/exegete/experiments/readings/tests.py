"""How readings are measured; the audit asks of them what it asks of the readout, by its margins."""

from exegete.report.section import Note

MARGINS = {"ranks": "ranks", "carried": "ranks", "reads": "reads"}  # by quantity: the test whose margin it has

NOTE = Note(
    formula=(
        "With e_t, what the predicted class loses without word t, s the reading, and w_t, what it loses with the edges "
        "to t cut where the reading looks: Γ(|e| | s); M = 1 − Σ (e_t − w_t)² / Σ e_t²; and Γ of the same reading "
        "without the heads that can be made flat together and change nothing."
    ),
    misleads=(
        "Edges cut in all layers take a word away however it is read, so M alone is high for every reading over all "
        "layers. A reading that was the best of many on the texts that chose it is judged on others, once."
    ),
    page="concepts/readings.md",
    title="Readings",
)
