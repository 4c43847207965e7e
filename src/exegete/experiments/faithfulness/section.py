"""Faithfulness in a report: the leaderboard and its costs, whether it survives another removal, the best method."""

from collections.abc import Iterator

import polars as pl

from exegete.experiments.common.section import Found, methods, which
from exegete.experiments.faithfulness.experiment import Faithfulness
from exegete.page.columns import Column, count, interval, number, text
from exegete.page.panels import named
from exegete.page.section import Figure, Section, Table

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


def headline(found: Found) -> Table:
    """Comprehensiveness under the first removal, and costs."""
    asked: Faithfulness = found.experiment
    shown = _board(found)
    several = which(shown)
    width = [] if several else _INTERVAL  # a terminal is narrow; the page has all
    columns = [*several, text("method"), number("comprehensiveness", "compr."), *width]
    columns += [number("over_attention", "− att."), *_COSTS]
    caption = "Comprehensiveness, its difference from attention's, passes and ms per text; * shares the removal."
    return Table(f"Faithfulness ({asked.removals[0]}, n = {int(shown['n'].to_list()[0]):,})", shown, caption, columns)


_INTERVAL = [interval("comprehensiveness_low", "comprehensiveness_high")]
_COSTS = [count("forward", "fwd"), count("backward", "bwd"), count("ms")]


def _board(found: Found) -> pl.DataFrame:
    """The leaderboard, as people say it."""
    board = found.table("leaderboard")
    stars = pl.when("shares_removal").then(pl.lit(" *")).otherwise(pl.lit(""))
    whole = pl.col("forward", "backward", "ms").round().cast(pl.Int64)
    return methods(named(board)).with_columns(pl.col("method") + stars, whole, _over_attention(found, board))


def _leaderboard(found: Found) -> Table:
    """All measures of the leaderboard."""
    asked: Faithfulness = found.experiment
    shown = _board(found)
    columns: list[Column] = [
        *which(shown), text("method"), number("comprehensiveness", "compr."), *_INTERVAL,
        number("over_attention", "− att."), number("sufficiency", "suff."),
        interval("sufficiency_low", "sufficiency_high"), number("flip"), interval("flip_low", "flip_high"),
        number("log_odds", "log-odds"), *_COSTS, count("n"),
    ]  # fmt: skip
    return Table(f"Leaderboard ({asked.removals[0]})", shown, SHARED, columns)


def _over_attention(found: Found, board: pl.DataFrame) -> pl.Series:
    """Paired difference from attention of every line of the board."""
    keys = ["task", "model", "removal", "ranking", "method"]
    test = found.summary.filter(pl.col("split") == "test", pl.col("measure") == "comprehensiveness")
    return board.join(test.select(*keys, "over_attention"), on=keys, how="left", maintain_order="left")[
        "over_attention"
    ]


def sections(found: Found) -> Iterator[Section]:
    """The leaderboard; the change of removal; the best method."""
    asked: Faithfulness = found.experiment
    charts = found.charts()
    figure = Figure("Comprehensiveness by method", charts["leaderboard"])
    tables = [_leaderboard(found), _differences(found), _by_size(found)]
    fractions = ", ".join(f"{100 * q:g}" for q in asked.fractions)
    meaning = MEANING.format(fractions=fractions)
    yield Section("Which words does the prediction hang on?", "", [meaning], tables, [figure])
    if "removals" in charts:
        figure = Figure("Ranks of the methods under every removal", charts["removals"])
        yield Section("Does the order survive another removal?", "", [REMOVALS], [_survival(found)], [figure])
    yield Section("The best method", "", [BEST], [_best(found)])


def _differences(found: Found) -> Table:
    """Every method minus attention under every removal."""
    kept = found.summary.filter(
        pl.col("split") == "test", pl.col("measure") == "comprehensiveness", pl.col("ranking") == "signed"
    )
    shown = methods(named(kept)).sort("task", "model", "removal", maintain_order=True)
    columns = [
        *which(shown), text("removal"), text("method"), number("mean"), interval("low", "high"),
        number("over_attention", "− attention"), interval("over_attention_low", "over_attention_high"),
        number("over_random", "− random"), interval("over_random_low", "over_random_high"), count("n"),
    ]  # fmt: skip
    caption = "Comprehensiveness; paired differences from attention and from random words on the same texts."
    return Table("Differences from attention", shown, caption, columns)


def _by_size(found: Found) -> Table:
    """The same order by |score|, where a method has signs."""
    kept = found.summary.filter(pl.col("split") == "test", pl.col("measure") == "comprehensiveness")
    wide = kept.pivot("ranking", index=["task", "model", "removal", "method"], values="mean", maintain_order=True)
    shown = methods(named(wide))
    columns = [*which(shown), text("removal"), text("method"), number("signed"), number("magnitude", "by |score|")]
    return Table("Ranked by score and by its size", shown, "Mean comprehensiveness under both rankings.", columns)


def _survival(found: Found) -> Table:
    kept = found.table("survival").filter(pl.col("ranking") == "signed")
    shown = named(kept)
    columns = [
        *which(shown), text("measure"), text("first"), text("second"), text("among"), number("tau", "τ"),
        interval("low", "high"), number("chance"), count("methods"), count("n"),
    ]  # fmt: skip
    return Table("Orders of methods under two removals", shown, "Interval over texts; random is left out.", columns)


def _best(found: Found) -> Table:
    kept = found.table("best").filter(pl.col("ranking") == "signed")
    shown = methods(named(kept))
    columns = [
        *which(shown), text("removal"), text("measure"), text("among"), text("method", "best method"),
        number("chosen_at", "where chosen"), number("mean", "on test"), number("over_attention", "− attention"),
        interval("over_attention_low", "over_attention_high"), number("over_random", "− random"), count("n"),
    ]  # fmt: skip
    return Table("The best method, chosen on other texts", shown, "", columns)
