"""Training: fit a model."""
