"""Supporting facts: does an importance find the sentences that answer the question?"""
