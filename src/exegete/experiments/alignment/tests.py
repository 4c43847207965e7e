"""How alignment is measured; the audit asks nothing of it."""

from exegete.report.section import Note

NOTE = Note(
    formula=(
        "alignment error rate = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|): links A, those that people were sure of S, "
        "and possible ones P."
    ),
    misleads=(
        "A model may use other words than people would link: a low error rate speaks for a method, a high one alone "
        "not against it."
    ),
    page="concepts/alignment.md",
    title="Alignment: which source word does a word translate?",
)
