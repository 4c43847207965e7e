"""Page: what a person will see. Sections, tables, columns; charts and heat maps, and what they are drawn with."""
