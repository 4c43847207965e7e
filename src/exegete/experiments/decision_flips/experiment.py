"""Decision flips: does removing the highest weight change the decision, and a random other one? (Serrano & Smith 2019)

i* and r as in `single_weight` (the same seed gives the same r). A decision flips where the argmax of the output does.
Four kinds of texts, in percent: {i* flips it?} × {r flips it?} (table 2). Texts that both flip, or neither, say nothing
of i* against r; the others are McNemar's (1947) discordant pairs, half of each kind if i* were no better than r.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from torch import Tensor

from exegete.experiments.common.one_removal import OneRemoved
from exegete.experiments.common.removal import Single
from exegete.experiments.common.summaries import by_keys, interval_of, or_none
from exegete.experiments.common.tallies import share_of, sign_test, values_by_seed

KEYS = ("task", "model", "split")
ANSWERS = {"yes": True, "no": False}


@dataclass(frozen=True)
class DecisionFlips(OneRemoved):
    """The highest weight against a random other one, by the decision alone."""

    of_summary = ("tiles",)

    def compared(self, found: Single) -> dict[str, Tensor]:
        """value = 1 where only i* flips the decision, −1 where only r does, else 0."""
        before = found.original.argmax(-1)
        top, other = found.top.argmax(-1) != before, found.other.argmax(-1) != before
        return {"top_flips": top, "random_flips": other, "value": top.double() - other.double()}

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By task and model, four rows: the share of texts of each kind with its interval, and McNemar's exact p."""
        groups = rows.partition_by(KEYS, as_dict=True, maintain_order=True)
        found = [
            dict(zip(KEYS, key, strict=True)) | kind for key, group in groups.items() for kind in _kinds(group)
        ]  # fmt: skip
        return pl.DataFrame(found, infer_schema_length=None)

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """Serrano & Smith's table 2, in percent, and how often each removal flips the decision at all."""
        return {"serrano_smith": _layout(self.summary(rows)), "margins": by_keys(rows, KEYS, _margins)}


def _kinds(group: pl.DataFrame) -> list[dict[str, Any]]:
    """The four kinds of texts; every row carries what is true of the cell as a whole."""
    cell = {
        "seeds": group["seed"].n_unique(),
        "undefined": group["value"].null_count(),
        "same": int(group["same"].sum()),
        "emptied": int(group["emptied"].sum()),
        "p": sign_test(group, pl.col("value")),
    }
    return [_kind(group, top, other) | cell for top in ANSWERS for other in ANSWERS]


def _kind(group: pl.DataFrame, top: str, other: str) -> dict[str, Any]:
    flag = (pl.col("top_flips") == ANSWERS[top]) & (pl.col("random_flips") == ANSWERS[other])
    share = share_of(group, flag)
    return {
        "remove_top": top,
        "remove_random": other,
        "n": share.n,
        "count": int(group.select(flag.sum()).item()),
        "share": or_none(share.mean),
        "low": or_none(share.low),
        "high": or_none(share.high),
    }


def _margins(group: pl.DataFrame) -> dict[str, Any]:
    """How often i* flips the decision, how often r does, and the paired difference."""
    top, other = (share_of(group, pl.col(name)) for name in ("top_flips", "random_flips"))
    apart = interval_of(values_by_seed(group, pl.col("value")), bound=1.0)
    return {
        "seeds": group["seed"].n_unique(), "n": top.n, "undefined": group["value"].null_count(),
        "top": or_none(top.mean), "top_low": or_none(top.low), "top_high": or_none(top.high),
        "random": or_none(other.mean), "random_low": or_none(other.low), "random_high": or_none(other.high),
        "difference": or_none(apart.mean), "low": or_none(apart.low), "high": or_none(apart.high), "chance": 0.0,
        "p": sign_test(group, pl.col("value")),
    }  # fmt: skip


def _layout(summary: pl.DataFrame) -> pl.DataFrame:
    """Rows: removing i* flips, yes or no; columns: removing a random other does; percent of the texts."""
    percent = summary.with_columns(percent=100 * pl.col("share"))
    index = [*KEYS, "remove_top", "n"]
    wide = percent.pivot("remove_random", index=index, values="percent", maintain_order=True)
    return wide.rename({"yes": "random_yes", "no": "random_no"})
