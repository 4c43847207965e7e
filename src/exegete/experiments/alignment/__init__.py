"""Alignment: does attention say which source word a word translates, or does saliency?"""
