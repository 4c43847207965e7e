"""Runs: many questions, many models, one run folder."""
