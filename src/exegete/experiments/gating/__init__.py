"""Gating: does a classifier of single texts do as well with gates in place of attention?"""
