"""Engines: what runs the pieces of a study."""
