"""Heads: which heads does a prediction hang on, and where do they look?"""
