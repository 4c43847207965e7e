"""Truths: models built so that we know whether their attention may be read."""
