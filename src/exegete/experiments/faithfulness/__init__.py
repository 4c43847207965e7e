"""Faithfulness: which importance finds the words that a prediction hangs on?"""
