"""The debate's map: claims of seven papers, our verdicts, and what turns them."""
