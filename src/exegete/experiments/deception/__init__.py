"""Deception: can a model use words that its attention hides, and which methods still find them?"""
