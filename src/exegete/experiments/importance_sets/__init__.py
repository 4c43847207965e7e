"""Importance sets: how many keys must go, in whose order, until the decision flips?"""
