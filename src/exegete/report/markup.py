"""HTML by templates, which lie beside the code; what is filled in is text, and escaped, unless it is `Markup`."""

from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from exegete.report.columns import decimal, significant
from exegete.report.heatmap import Beside, HeatMap
from exegete.report.section import anchor


def fill_template(template: str, **content: object) -> Markup:
    """A template of the package, as in `report/templates/heatmap.html`, with its content."""
    return Markup(_environment().get_template(template).render(content))


def whole(template: str, title: str, style: str, scripts: Sequence[str] = (), **content: object) -> str:
    """A file that needs no other; its template extends `report/templates/page.html`.

    Nothing is fetched and no script runs but ours: a label that slipped through unescaped would still be harmless.
    """
    digests = " ".join(f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts)
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    given = {"policy": f"{policy}; script-src {digests}" if scripts else policy, "title": title}
    return fill_template(
        template, style=Markup(style), scripts=[Markup(script) for script in scripts], **given, **content
    )


def read_shipped(*paths: str) -> str:
    """Style sheets or scripts of the package, as in `report/style.css`, one after another."""
    return "\n".join(files("exegete").joinpath(path).read_text(encoding="utf8").strip() for path in paths)


def file_link(content: str, kind: str, name: str, word: str) -> Markup:
    """A link to a file within the page, so that the page needs no other."""
    address = f"data:{kind};base64,{b64encode(content.encode()).decode()}"
    return fill_template("report/templates/file.html", address=address, name=name, word=word)


@cache
def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader("exegete", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"anchor": anchor, "decimal": decimal, "significant": significant}
    return found


def block(drawn: HeatMap, styled: bool = True) -> Markup:
    """The heat map and all around it, to be put into any page or notebook; light and dark, without any script.

    Shade is a tint of the ground. The line under a word is whole where it speaks for the class, dotted where it speaks
    against it and double where the method doesn't say, so that print and colour-blind readers lose nothing. A screen
    reader hears each row's first words and their scores, and finds all numbers in a table.
    """
    style = Markup(read_shipped("report/heatmap.css")) if styled else ""  # a page of many has it once
    return fill_template("report/templates/heatmap.html", drawn=drawn, style=style)


def two_texts_block(drawn: Beside, styled: bool = True) -> Markup:
    """Two texts side by side, in the same shades and marks; words that only one of them has are framed."""
    style = Markup(read_shipped("report/heatmap.css")) if styled else ""
    return fill_template("report/templates/beside.html", drawn=drawn, style=style)


def page_of_blocks(title: str, *blocks: Markup) -> str:
    """A whole file around one or more blocks."""
    return whole("report/templates/heatmaps.html", title, "body{margin:0}", blocks=blocks)
