"""Dispersion: is sparse attention over hidden states a sparse choice of words?"""
