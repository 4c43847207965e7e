"""Single weight: does removing the highest weight change the output more than removing another?"""
