"""How gating is measured; the audit asks nothing of it."""

from exegete.report.section import Note

NOTE = Note(
    formula="τ-b between attention and gates σ(e_t), each of a training of its own, beside τ-b between two seeds.",
    misleads="Nothing makes gates shut: where they are all near 1, τ ranks trifles.",
    page="concepts/gating.md",
    title="Is attention a gate?",
)
