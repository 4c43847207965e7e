"""Tasks: text in, batches out."""
