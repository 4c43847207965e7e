"""Heat maps as HTML: one block with its own style, for a file or a notebook; light and dark, without any script.

Shade is a tint of the ground. The line under a word is whole where it speaks for the class, dotted where it speaks
against it and double where the method doesn't say, so that print and colour-blind readers lose nothing. A screen reader
hears each row's first words and their scores, and finds all numbers in a table.
"""

from exegete.base.elements import Markup, joined, tag
from exegete.page.heatmap import HeatMap, Matrix, Row
from exegete.page.shipped import shipped

SPOKEN = 5  # words of a row that a screen reader hears with their scores


def block(drawn: HeatMap) -> Markup:
    """The heat map and all around it, to be put into any page."""
    return tag(
        "section",
        tag("style", Markup(shipped("page/heatmap.css"))),
        tag("h2", drawn.title),
        *(tag("p", tag("strong", "Note. "), note, class_="note") for note in drawn.notes),
        _reading(drawn),
        _legend(drawn),
        _map(drawn),
        _complaints(drawn),
        *(tag("p", paragraph, class_="small") for paragraph in drawn.small_print),
        _scores(drawn),
        _matrix(drawn.matrix) if drawn.matrix else "",
        class_="exegete-heatmap",
    )


def page(title: str, *blocks: Markup) -> str:
    """A whole file around one or more blocks."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Markup("body{margin:0}")),
    )
    body = tag("body", tag("main", tag("h1", title, class_="exegete-unseen"), *blocks))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def number(value: float | None, digits: int = 3) -> str:
    """Significant digits with a real minus sign; a dash for what is undefined.

    >>> number(-0.01234), number(None), number(0.0)
    ('−0.0123', '–', '0')
    """
    return "–" if value is None else f"{value + 0.0:.{digits}g}".replace("-", "−")


def _reading(drawn: HeatMap) -> Markup:
    if not drawn.reading:
        return Markup()
    conclusion, *rests_on = drawn.reading
    first = tag("p", tag("strong", f"{drawn.question} "), conclusion, class_="conclusion")
    return joined(first, *(tag("p", paragraph) for paragraph in rests_on))


def _legend(drawn: HeatMap) -> Markup:
    entries = (
        tag("span", tag("span", said, class_=f"w {hue}", style="--i:0.8"), class_="entry")
        for hue, said in drawn.legend.items()
    )
    unknown = tag("span", tag("span", "?", class_="unknown"), " unknown to the model", class_="entry")
    said = tag("span", "Shade: share of the row’s largest score.", class_="entry")
    return tag("p", *entries, unknown if drawn.unknown else "", said, class_="legend")


def _map(drawn: HeatMap) -> Markup:
    titles = ("method", f"{drawn.unit}s", *drawn.columns)
    head = tag("tr", *(tag("th", title, scope="col", class_=_aligned(place)) for place, title in enumerate(titles)))
    body = (_row(drawn, row) for row in drawn.rows)
    return _scrolled(tag("table", tag("thead", head), tag("tbody", *body), class_="map"), "Heat map")


def _aligned(place: int) -> str | None:
    return "number" if place > 1 else None


def _row(drawn: HeatMap, row: Row) -> Markup:
    words = (_word(drawn, row, place) for place in range(len(drawn.words)))
    heard = ", ".join(f"{drawn.words[place]} {number(row.values[place])}" for place in row.top(SPOKEN))
    spoken = tag("span", f"Highest scores: {heard}. ", class_="exegete-unseen")
    text = tag("td", spoken, Markup(" ".join(words)), class_="text")
    numbers = (tag("td", said, class_="number") for said in row.numbers)
    return tag("tr", tag("th", row.name, scope="row"), text, *numbers, class_="main" if row.main else None)


def _word(drawn: HeatMap, row: Row, place: int) -> Markup:
    mark = tag("span", "?", class_="unknown") if place in drawn.unknown else ""
    shade = f"--i:{row.intensity(place):.3f}"
    said = f"{drawn.words[place]}: {number(row.values[place], 4)} ({row.name})"
    return tag("span", drawn.words[place], mark, class_=f"w {row.hue(place)}", style=shade, title=said)


def _complaints(drawn: HeatMap) -> Markup:
    told = [row for row in drawn.rows if row.complaint]
    return tag("ul", *(tag("li", tag("strong", f"{row.name}: "), row.complaint) for row in told)) if told else Markup()


def _scores(drawn: HeatMap) -> Markup:
    """All numbers, a line per word."""
    head = tag("tr", *(tag("th", name, scope="col") for name in (drawn.unit, *(row.name for row in drawn.rows))))
    lines = (
        tag(
            "tr",
            tag("th", word, scope="row"),
            *(tag("td", number(row.values[place]), class_="number") for row in drawn.rows),
        )
        for place, word in enumerate(drawn.words)
    )
    table = tag("table", tag("thead", head), tag("tbody", *lines))
    return tag("details", tag("summary", f"All scores, {drawn.unit} by {drawn.unit}"), _scrolled(table, "All scores"))


def _matrix(matrix: Matrix) -> Markup:
    """Agreement as a small heat table, each cell with its number."""
    head = tag("tr", tag("td"), *(tag("th", tag("span", name), scope="col") for name in matrix.names))
    lines = (
        tag("tr", tag("th", name, scope="row"), *map(_cell, values))
        for name, values in zip(matrix.names, matrix.values, strict=True)
    )
    table = tag("table", tag("caption", matrix.caption), tag("thead", head), tag("tbody", *lines), class_="matrix")
    return _scrolled(table, "Agreement of the methods")


def _cell(value: float | None) -> Markup:
    if value is None:
        return tag("td", "–")
    hue = "for" if value >= 0 else "against"
    return tag("td", f"{value + 0.0:.2f}".replace("-", "−"), class_=f"w {hue}", style=f"--i:{abs(value):.2f}")


def _scrolled(table: Markup, label: str) -> Markup:
    return tag("div", table, class_="scroll", role="region", aria_label=label, tabindex="0")
