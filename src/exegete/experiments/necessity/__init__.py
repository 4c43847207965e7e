"""Necessity: does the model need its attention?"""
