"""Explanations: one prediction, every method."""
