"""How sanity is measured; the audit asks nothing of it."""

from exegete.report.section import Note

NOTE = Note(
    formula="τ-b between the scores of the trained model and those of the same model with some layers drawn anew.",
    misleads=(
        "A method may pass and still be wrong. Attention does not see the decoder, so it stays the same when only "
        "the decoder forgets."
    ),
    page="concepts/sanity.md",
    title="Sanity: do the scores depend on what the model has learnt?",
)
