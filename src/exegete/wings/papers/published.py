"""Published numbers: what a paper printed, to stand beside ours.

One CSV file per paper. A row is one printed number with everything that tells it from the others: table, dataset,
model, attention, projection, quantity and class. Where we know what a paper says but not its number, `mean` is empty
and `sign` says on which side of the quantity's reference it lies: above, below, not below, or at it.
"""

from importlib import resources
from pathlib import Path

import polars as pl

from exegete.plugins import unknown

PAPERS_FOLDER = Path(str(resources.files("exegete.wings.papers") / "library"))
KEYS = ("table", "dataset", "model", "attention", "projection", "quantity", "class")
SIGNS = ("above", "below", "not below", "at")


def read_published(paper: str) -> pl.DataFrame:
    """All printed numbers of a paper: KEYS, then mean, std, sign (of what is known in words only) and a note."""
    names = {path.stem: path for path in PAPERS_FOLDER.glob("*.csv")}
    if paper not in names:
        raise unknown("paper", paper, names)
    texts = dict.fromkeys((*KEYS, "sign", "note"), pl.String)
    frame = pl.read_csv(names[paper], schema_overrides=texts | {"mean": pl.Float64, "std": pl.Float64})
    return frame.with_columns(pl.col(*texts).fill_null(""))
