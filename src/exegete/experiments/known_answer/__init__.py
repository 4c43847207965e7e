"""Known answer: does an importance find words that were planted so that they decide the class?"""
