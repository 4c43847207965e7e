"""Figures: what experiments and report draw with. Tidy frames in, altair charts out; all counting is done before drawing."""
