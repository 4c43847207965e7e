"""Measures: compare rankings, distributions and predictions."""
