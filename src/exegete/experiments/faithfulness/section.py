"""Faithfulness in a report: the leaderboard and its costs, whether it survives another removal, the best method."""

import polars as pl

from exegete.experiments.common.section import Passage, QuestionResult, chapter, shown
from exegete.report.columns import count, interval, number, text, wide
from exegete.report.section import Table

MEANING = (
    "A method's first words are removed, or kept alone, at {fractions} % of a text. Comprehensiveness is what "
    "the probability of the predicted class loses without them (high is good), sufficiency what it loses with them "
    "alone (low is good); both are means over the shares. Flip is the share of words that must go before another class "
    "wins (low is good). Random words show the level of knowing nothing."
)
SHARED = (
    "A star marks methods that score words by the removal that this table evaluates with: they nearly optimise it. "
    "Passes and milliseconds are per text; the time is that of one method alone, in one thread, on this machine."
)
REMOVALS = (
    "Removed words take a text off the data that the model has seen (Hooker et al. 2019), so an order of methods is "
    "believed only if it survives the change of removal: deleting words, zeroing their embeddings, or putting the "
    "unknown word in their place. τ is Kendall's, between the orders of the methods by their means."
)
BEST = (
    "The best method is chosen on other texts than those it is reported on. Margins are paired differences on the same "
    "texts, turned so that above 0 is better."
)
TESTED = (pl.col("split") == "test") & (pl.col("measure") == "comprehensiveness")
SIGNED = pl.col("ranking") == "signed"


def _leaderboard(found: QuestionResult, title: str, caption: str) -> Table:
    """All measures of the leaderboard, with the paired difference from attention; a star for a shared removal."""
    board, keys = found.table("leaderboard"), ["task", "model", "removal", "ranking", "method"]
    over = found.summary.filter(TESTED).select(*keys, "over_attention")
    whole = pl.col("forward", "backward", "ms").round().cast(pl.Int64)
    several = any(board[name].n_unique() > 1 for name in ("task", "model"))  # a terminal is narrow; the page has all
    bounds = interval("comprehensiveness_low", "comprehensiveness_high")
    star = pl.when("shares_removal").then(pl.lit(" *")).otherwise(pl.lit(""))
    table = shown(
        title,
        text("method"), number("comprehensiveness", "compr."), *(wide(bounds) if several else [bounds]),
        number("over_attention", "− att."),
        *wide(number("sufficiency", "suff."), interval("sufficiency_low", "sufficiency_high"), number("flip")),
        *wide(interval("flip_low", "flip_high"), number("log_odds", "log-odds")),
        count("forward", "fwd"), count("backward", "bwd"), count("ms"), *wide(count("n")),
        caption=caption, then=lambda frame: frame.with_columns(pl.col("method") + star, whole),
    )  # fmt: skip
    return table.on(board.join(over, on=keys, how="left", maintain_order="left"))


def _first(found: QuestionResult) -> Table:
    n = int(found.table("leaderboard")["n"].to_list()[0])
    caption = "Comprehensiveness, its difference from attention's, passes and ms per text; * shares the removal."
    return _leaderboard(found, f"Faithfulness ({found.experiment.removals[0]}, n = {n:,})", caption)


def _whole(found: QuestionResult) -> Table:
    return _leaderboard(found, f"Leaderboard ({found.experiment.removals[0]})", SHARED)


OVER_ATTENTION = (
    number("over_attention", "− attention"), interval("over_attention_low", "over_attention_high"),
    number("over_random", "− random"),
)  # fmt: skip
DIFFERENCES = shown(
    "Differences from attention",
    text("removal"), text("method"), number("mean"), interval("low", "high"), *OVER_ATTENTION,
    interval("over_random_low", "over_random_high"), count("n"),
    caption="Comprehensiveness; paired differences from attention and from random words on the same texts.",
    where=TESTED & SIGNED, then=lambda frame: frame.sort("task", "model", "removal", maintain_order=True),
)  # fmt: skip
BY_SIZE = shown(
    "Ranked by score and by its size",
    text("removal"), text("method"), number("signed"), number("magnitude", "by |score|"),
    caption="Mean comprehensiveness under both rankings.", where=TESTED,
    first=lambda frame: frame.pivot(
        "ranking", index=["task", "model", "removal", "method"], values="mean", maintain_order=True
    ),
)  # fmt: skip
SURVIVAL = shown(
    "Orders of methods under two removals",
    text("measure"), text("first"), text("second"), text("among"), number("tau", "τ"), interval("low", "high"),
    number("chance"), count("methods"), count("n"),
    caption="Interval over texts; random is left out.", of="survival", where=SIGNED,
)  # fmt: skip
CHOSEN = shown(
    "The best method, chosen on other texts",
    text("removal"), text("measure"), text("among"), text("method", "best method"),
    number("chosen_at", "where chosen"), number("mean", "on test"), *OVER_ATTENTION, count("n"),
    of="best", where=SIGNED,
)  # fmt: skip


def _meaning(found: QuestionResult) -> list[str]:
    return [MEANING.format(fractions=", ".join(f"{100 * q:g}" for q in found.experiment.fractions))]


headline, sections = chapter(
    _first,
    Passage(
        "Which words does the prediction hang on?",
        _meaning,
        [_whole, DIFFERENCES, BY_SIZE],
        {"leaderboard": "Comprehensiveness by method"},
    ),
    Passage(
        "Does the order survive another removal?",
        [REMOVALS],
        [SURVIVAL],
        {"removals": "Ranks of the methods under every removal"},
    ),
    Passage("The best method", [BEST], [CHOSEN]),
)
