"""Report: tell a person. What is said (page), how numbers read (columns), as HTML (html), in a terminal (tables)."""
