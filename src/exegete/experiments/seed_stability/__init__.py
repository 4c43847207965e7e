"""Seed stability: do models that differ by their seed alone attend to the same words?"""
