"""Text of our pages that is read from the code: `python -m tools.pages` after a declaration or a signature changed.

A page is plain Markdown in the clone. What a mark encloses is written here, and a test compares it with the code:

    <!-- begin file examples/own_model.py -->
    …
    <!-- end -->
"""
