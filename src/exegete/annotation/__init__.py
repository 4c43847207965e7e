"""Annotation: ask people whether attention reads like an explanation."""
