"""Decision flips: does removing the highest weight change the decision, and a random other one?"""
