"""Layers: what is left of a model when layer after layer attends to the wrong words?"""
