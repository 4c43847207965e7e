"""Experiments: one question of the debate, rows out."""
