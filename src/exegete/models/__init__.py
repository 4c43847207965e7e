"""Models: batches in, traces out."""
