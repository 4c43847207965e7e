"""Figures: what experiments and report draw with. Tidy frames in, charts out; all counting is done before drawing."""
