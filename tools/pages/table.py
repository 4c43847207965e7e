"""Tables of a page in Markdown."""

from collections.abc import Iterable, Sequence


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A header and rows; a cell's own | is escaped, or it would end the cell.

    >>> print(markdown_table(["a", "b"], [["|x|", "y"]]), end="")
    | a | b |
    |---|---|
    | \\|x\\| | y |
    """
    return _line(header) + "|---" * len(header) + "|\n" + "".join(map(_line, rows))


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |\n"
