"""Reliance: is a model that needs its attention harder to fake?"""
