"""Adversary training: can a model learn to predict the same with other attention?"""
