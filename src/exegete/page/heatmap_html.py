"""Heat maps as HTML: one block with its own style, for a file or a notebook; light and dark, without any script.

Shade is a tint of the ground. The line under a word is whole where it speaks for the class, dotted where it speaks
against it and double where the method doesn't say, so that print and colour-blind readers lose nothing. A screen reader
hears each row's first words and their scores, and finds all numbers in a table.
"""

from markupsafe import Markup

from exegete.page.heatmap import HeatMap
from exegete.page.html import filled, shipped, whole


def block(drawn: HeatMap) -> Markup:
    """The heat map and all around it, to be put into any page."""
    return filled("page/templates/heatmap.html", drawn=drawn, style=Markup(shipped("page/heatmap.css")))


def page(title: str, *blocks: Markup) -> str:
    """A whole file around one or more blocks."""
    return whole("page/templates/heatmaps.html", title, "body{margin:0}", blocks=blocks)
