"""Knockout: in which layers does a word reach the prediction?"""
