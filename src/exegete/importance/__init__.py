"""Importance: score the words of a text for one prediction."""
