"""Published numbers: what a paper printed, to stand beside ours."""

from importlib import resources

import polars as pl

from exegete.base.errors import unknown


def published(paper: str) -> pl.DataFrame:
    """All printed numbers of a paper: table, dataset, attention, projection, quantity, class, mean, std."""
    folder = resources.files("exegete.studies") / "library"
    names = {entry.name.removesuffix(".csv"): entry for entry in folder.iterdir() if entry.name.endswith(".csv")}
    if paper not in names:
        raise unknown("paper", paper, names)
    return pl.read_csv(names[paper].read_bytes(), schema_overrides={"class": pl.String})
