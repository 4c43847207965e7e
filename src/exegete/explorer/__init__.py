"""The explorer: take hold of attention and see whether the prediction follows. The server imports no torch."""
