"""Shipped: style sheets and scripts that lie beside the code."""

from importlib.resources import files


def shipped(path: str) -> str:
    """A text file of the package, as in `page/style.css`."""
    return files("exegete").joinpath(path).read_text(encoding="utf8").strip()
