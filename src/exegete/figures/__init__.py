"""Figures: what experiments and report draw with."""
