"""Audits: judge. Rows in, a scorecard and an answer out."""
