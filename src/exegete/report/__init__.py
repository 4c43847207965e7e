"""Report: tell a person. What is said (page), how numbers read (columns), on a page (html) and in a terminal (tables)."""
