"""Plausibility: does an importance mark the words that people marked?"""
