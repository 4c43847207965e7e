"""Votes: which tests may decide an audit, as the audit reads them, from what calibration counted.

The two deciding tests are calibrated together: what was counted are answers, and an answer needs both. They vote if
their answers are safe: no family has more than one wrong, and all together at most 5 %, surely. Families of which fewer
than 9 in 10 get the right answer are named.
"""

import json
from datetime import UTC, datetime

import polars as pl

from exegete.plugins import Criteria, read_study, settings_hash
from exegete.wings.calibration.count import ALARMS, ALL, RIGHT, is_safe, summarise_counts
from exegete.wings.calibration.draws import AUDITS, DECIDING

HEAD = """\
# Which tests may decide an audit: written by `exegete calibrate`, from what the audit answered of models whose truth is
# known. They are of one version of the criteria and of ways of asking that were calibrated (hashes of their settings):
# an audit by another takes the votes away.
"""


def votes_file(table: pl.DataFrame, criteria: Criteria) -> str:
    """The votes as the audit reads them."""
    told, kept = summarise_counts(table), is_safe(table)
    lines = [
        f"version = {criteria.version}",
        f"settings = {json.dumps(_settings(table))}",
        f'date = "{datetime.now(UTC).date().isoformat()}"',
        *(f"{name} = {round(value, 4)}" for name, value in told.items()),
    ]
    for test in DECIDING:
        lines += [
            "",
            f"[{test}]",
            f"votes = {str(kept).lower()}",
            f"why = {json.dumps(vote_reason(table), ensure_ascii=False)}",
        ]
    return HEAD + "\n".join(lines) + "\n"


def _settings(table: pl.DataFrame) -> list[str]:
    """Hashes of how the audits asked, each once."""
    return list(dict.fromkeys(settings_hash(read_study(AUDITS[audit])) for audit in table["audit"].unique().sort()))


def vote_reason(table: pl.DataFrame) -> str:
    """The reason, in a sentence."""
    told = summarise_counts(table)
    said = (
        f"of {told['draws']} audits of models whose truth is known {told['right']} are right, {told['open']} open and "
        f"{told['wrong']} wrong (at most {told['wrong_at_most']:.1%} at 95 %)"
    )
    often = (pl.col("wrong") <= ALARMS) & (pl.col("right") >= RIGHT * pl.col("n"))
    seldom = table.filter(~often, pl.col("family") != ALL)["family"].unique(maintain_order=True).to_list()
    return f"{said}; fewer than 9 in 10 settled: {', '.join(seldom)}" if seldom else said
