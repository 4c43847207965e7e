"""Adversaries: how far can attention go without the prediction, and what does that look like? (Jain & Wallace 2019)"""

import math

import altair as alt
import polars as pl

from exegete.report.heatmap import lines_of
from exegete.report.panels import WIDTH, in_order, lines, with_panel
from exegete.report.theme import NEUTRAL, PALETTE, inline, nothing, themed

BINS, TOP = 40, 0.7  # of the paper's histogram
PAIRS = 4  # texts that are shown
FEWEST = 6  # words of such a text: of two or three words there is little to see
LETTER, LINE = 6.6, 22  # pixels of a letter's width and of a line
ACROSS = 90  # letters of a line of words
OWN, OTHER = "model's own weights", "adversary's weights"


def spread(rows: pl.DataFrame) -> alt.Chart | alt.FacetChart:
    """Histograms of ε-max JSD, one panel per task and model, one colour per predicted class, each of mass 1.

    References, where they were searched too, are grey and dashed, all of their classes together.
    """
    table = jsd_masses(rows)
    if table.is_empty():
        return nothing("no text has two words")
    columns = min(table["panel"].n_unique(), 2)
    width = 520 if columns == 1 else (WIDTH - 90) // 2 - 20
    epsilon = rows["epsilon"][0]
    read = f"Largest JSD to the model's own weights with a prediction within {epsilon:g}. Its bound is ln 2 = 0.69."
    return themed(
        lines(_steps(table).properties(width=width, height=150), table, columns).properties(title=read),
        "Histograms of ε-max JSD by predicted class, a panel per model.",
        table,
    )


def jsd_masses(rows: pl.DataFrame) -> pl.DataFrame:
    """The share of texts in each of 40 bins on [0, 0.7]: panel, group, who, low, mass, n; one more point ends it."""
    kept = rows.filter(pl.col("jsd").is_not_null())
    if kept.is_empty():
        return pl.DataFrame()
    model = pl.col("who") == "model"
    group = pl.when(model).then(pl.col("predicted")).otherwise(pl.col("who") + pl.lit(" by construction"))
    place = (pl.col("jsd") / TOP * BINS).floor().clip(0, BINS - 1).cast(pl.Int64)
    named = with_panel(kept).with_columns(place.alias("bin"), group.alias("group"))
    counts = named.group_by("panel", "who", "group", "bin", maintain_order=True).agg(pl.len().alias("count"))
    sizes = counts.group_by("panel", "who", "group", maintain_order=True).agg(pl.col("count").sum().alias("n"))
    full = sizes.join(pl.DataFrame({"bin": range(BINS + 1)}), how="cross").join(
        counts, on=["panel", "who", "group", "bin"], how="left", maintain_order="left"
    )
    mass = (pl.col("count").fill_null(0) / pl.col("n")).round(6)
    closed = pl.when(pl.col("bin") == BINS).then(mass.shift(1)).otherwise(mass)
    low = (pl.col("bin") * TOP / BINS).round(6)
    return full.select("panel", "group", "who", low=low, mass=closed, n="n")


def _steps(table: pl.DataFrame) -> alt.LayerChart:
    own = sorted(table.filter(pl.col("who") == "model")["group"].unique())
    others = in_order(table.filter(pl.col("who") != "model")["group"])
    colours = [PALETTE[i % len(PALETTE)] for i in range(len(own))] + [NEUTRAL] * len(others)
    dashes = [[1, 0]] * len(own) + [[6, 3], [2, 2]][: len(others)]
    x = alt.X(
        "low:Q",
        scale=alt.Scale(domain=[0, TOP], nice=False),
        axis=alt.Axis(title="ε-max JSD", values=[0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7], format="~g", grid=False),
    )
    legend = alt.Legend(symbolType="stroke", symbolSize=320)
    base = alt.Chart().encode(
        x=x,
        y=alt.Y("mass:Q", stack=None, axis=alt.Axis(title="share of texts", format="~%", tickCount=3)),
        color=alt.Color("group:N", scale=alt.Scale(domain=[*own, *others], range=colours), legend=legend),
    )
    dash = alt.StrokeDash("group:N", scale=alt.Scale(domain=[*own, *others], range=dashes))
    bound = alt.Chart(inline(pl.DataFrame({"x": [math.log(2)]}))).mark_rule(style="chance", strokeDash=[2, 2])
    layers = [
        base.transform_filter(alt.datum.who == "model").mark_area(interpolate="step-after", opacity=0.2),
        base.mark_line(interpolate="step-after", strokeWidth=1.5).encode(strokeDash=dash),
        bound.encode(x=alt.X("x:Q")),
    ]
    return alt.LayerChart(layer=layers)


def telling_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """The texts that are shown: of a moderate length, with the largest JSD, of all classes in turn.

    Of one text no more than one model's and seed's version; `pair` is its number.
    """
    kept = rows.filter(pl.col("adversary").is_not_null(), pl.col("words").list.len() >= FEWEST)
    if kept.is_empty():
        return kept.with_columns(pair=pl.lit(0))
    ordered = kept.sort("jsd", "example", descending=[True, False], maintain_order=True).unique(
        "example", keep="first", maintain_order=True
    )
    turn = pl.col("jsd").rank("ordinal", descending=True).over("predicted")
    return ordered.sort(turn, maintain_order=True).head(PAIRS).with_row_index("pair")


def pairs(rows: pl.DataFrame) -> alt.Chart | alt.FacetChart:
    """The model's own weights above the adversary's, over the words of the most telling texts."""
    shown = telling_rows(rows)
    if shown.is_empty():
        return nothing("no adversary was found for a short text of several words")
    table, lines = cells(with_panel(shown), several=shown.select("task", "model").n_unique() > 1)
    width = int(ACROSS * LETTER) + 100
    read = "Shade: share of the row's largest weight. The prediction under both is the same to within ε."
    drawn = _words(width, lines).properties(width=width, height=lines * LINE)
    one = alt.Facet("all:N", header=alt.Header(labels=False, title=None))
    return themed(
        drawn.facet(one, data=inline(table.with_columns(all=pl.lit("")))).properties(title=read),
        "Pairs of heat maps: the model's own weights and an adversary's, for some texts.",
        table.filter(pl.col("kind") == "word").select("pair", "who", "weight", word="text"),
    )


def _words(width: int, lines: int) -> alt.LayerChart:
    x, y = alt.Scale(domain=[0, width], nice=False), alt.Scale(domain=[0, lines], reverse=True, nice=False)
    colours = alt.Scale(domain=[OWN, OTHER], range=[PALETTE[0], PALETTE[1]])
    colour = alt.Color("who:N", scale=colours, legend=alt.Legend(symbolType="square", symbolStrokeWidth=0))
    strength = alt.Opacity("shade:Q", scale=alt.Scale(domain=[0, 1], range=[0, 0.75]), legend=None)
    word, head = (alt.Chart().transform_filter(alt.datum.kind == kind) for kind in ("word", "head"))
    left, right = alt.X("x:Q", scale=x, axis=None), "x2:Q"
    line = alt.Y("line:Q", scale=y, axis=None)
    above, below = alt.Y("top:Q", scale=y, axis=None), "bottom:Q"
    layers = [
        word.mark_rect(cornerRadius=2).encode(x=left, x2=right, y=above, y2=below, color=colour, opacity=strength),
        word.mark_text(style="mark", fontSize=12).encode(
            x=alt.X("middle:Q", scale=x, axis=None), y=line, text="text:N"
        ),
        head.mark_text(style="note", align="left", fontSize=11).encode(x=left, y=line, text="text:N"),
    ]
    return alt.LayerChart(layer=layers)


def cells(shown: pl.DataFrame, several: bool = False) -> tuple[pl.DataFrame, int]:
    """Where every word stands, and the number of lines: kind (head or word), pair, who, text, weight, shade, places."""
    found: list[dict[str, object]] = []
    line = 0.5
    for row in shown.iter_rows(named=True):
        title = f"predicted: {row['predicted']} · JSD {row['jsd']:.2f} · TVD of the prediction {row['tvd']:.3f}"
        title = f"{row['panel']} · {title}" if several else title
        found.append({"kind": "head", "pair": row["pair"], "text": title, "x": 0.0, "line": line})
        line += 1
        for who, name in ((OWN, "attention"), (OTHER, "adversary")):
            placed, used = _placed(row["words"], row[name], line)
            found += [word | {"kind": "word", "pair": row["pair"], "who": who} for word in placed]
            line += used + 0.15
        line += 0.7
    return pl.DataFrame(found, infer_schema_length=None), math.ceil(line)


def _placed(words: list[str], weights: list[float], line: float) -> tuple[list[dict[str, object]], int]:
    """Words of one row of weights from left to right, in as many lines as they need."""
    lines, largest = lines_of([len(word) + 1 for word in words], ACROSS), max(weights)
    found: list[dict[str, object]] = []
    for number, places in enumerate(lines):
        x = 0.0
        for place in places:
            wide, at = (len(words[place]) + 1) * LETTER, line + number
            where = {"x": x, "x2": x + wide, "middle": x + wide / 2, "line": at, "top": at - 0.44, "bottom": at + 0.44}
            shade = weights[place] / largest if largest else 0.0
            found.append({"text": words[place], "weight": round(weights[place], 4), "shade": round(shade, 3), **where})
            x += wide + LETTER / 2
    return found, len(lines)
