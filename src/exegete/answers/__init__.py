"""Answers: judge a run and explain a prediction; a grade, its number and what to read instead, told on a page."""
