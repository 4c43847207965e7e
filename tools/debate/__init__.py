"""The debate's map: claims of six papers, our verdicts, and what turns them."""
