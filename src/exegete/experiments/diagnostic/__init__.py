"""Diagnostic: do a model's weights help another one, which sees single words?"""
