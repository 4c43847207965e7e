"""Pages: from the folder of a run, or from explanations, to what a person reads."""
