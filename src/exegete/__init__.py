"""Exegete: may I read a model's attention as an explanation of its predictions, and if not, what should I read?"""

__version__ = "0.1.0"
