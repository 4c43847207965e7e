"""Agreement: do two importances rank the words of a text alike?"""
