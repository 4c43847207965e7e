"""Adversary search: can other weights give the same prediction?"""
