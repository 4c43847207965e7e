"""Depth: the readout, and other layers of a model of which the same is asked.

A test of the audit goes by the readout, from which a class is predicted. The same question can be put to the weights of
a layer below it: rows then say which place they are of, and whoever judges keeps to the readout.
"""

from collections.abc import Callable, Sequence

import polars as pl

from exegete.base.errors import UsageError

READOUT = "readout"
EACH = "each"  # every site but the last, one at a time


def check_places(experiment: str, asked: Sequence[str]) -> None:
    """The readout, and perhaps others."""
    if READOUT not in asked or len(set(asked)) < len(asked):
        raise UsageError(f"experiment '{experiment}': sites are the readout and perhaps other places, each once")


def deeper(asked: Sequence[str], sites: Sequence[str]) -> list[str]:
    """The places that are asked about besides the readout, of a model with these sites.

    >>> deeper(["readout", "each", "every"], ["encoder.0", "encoder.1", "encoder.2"])
    ['encoder.0', 'encoder.1', 'every']
    """
    meant = [place for where in asked for place in (sites[:-1] if where == EACH else (where,))]
    return [place for place in dict.fromkeys(meant) if place != READOUT]


def at_each(asked: Sequence[str], sites: Sequence[str], rows: Callable[[str | None], pl.DataFrame]) -> pl.DataFrame:
    """Rows of the readout (None), then of every other place, with a column `sites` that says so."""
    parts = [rows(None).with_columns(sites=pl.lit(READOUT))]
    parts += [rows(place).with_columns(sites=pl.lit(place)) for place in deeper(asked, sites)]
    return pl.concat(parts)


def add_places(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows that say where weights were changed; those of earlier versions are of the readout."""
    return rows if "sites" in rows.columns else rows.with_columns(sites=pl.lit(READOUT))


def at_readout(rows: pl.DataFrame) -> pl.DataFrame:
    """Those of the readout alone."""
    return add_places(rows).filter(pl.col("sites") == READOUT)
