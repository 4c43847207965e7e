"""Multiverse: how far does the agreement of attention hang on choices that could have been made otherwise?"""
