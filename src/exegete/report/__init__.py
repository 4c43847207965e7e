"""Report: what a person will see. Sections, tables, columns; charts and heat maps; as HTML and in a terminal."""
