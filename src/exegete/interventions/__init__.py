"""Interventions: rewrite attention."""
