"""Readings: which way of reading a transformer's attention orders words by what they do, through what is read?"""
