"""Exegete: may I read this model's attention as an explanation of its predictions, and if not, what should I read instead?"""

__version__ = "0.1.0"
