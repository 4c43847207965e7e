"""Permutation: does the prediction care which word carries which weight?"""
