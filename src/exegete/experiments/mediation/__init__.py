"""Mediation: does a word act on the prediction through its own weight, and do weights order words by what they do?"""
