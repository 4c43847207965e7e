"""Sanity: do the scores depend on what the model has learnt?"""
