"""Annotation: the page on which a person says of every item whether its highlighted words are relevant.

One file that works offline: nothing is fetched, no script runs but ours. Answers stay in the annotator's browser, under
their name, until they are saved as a file. The page holds nothing of the key.
"""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Literal, get_args

from exegete.annotation.sheets import PAGE, SHEET, Drawn, Item, claim, to_csv
from exegete.base.elements import Markup, safe, tag
from exegete.base.errors import unknown
from exegete.base.files import write_text
from exegete.page.shipped import shipped

Format = Literal["html", "csv", "both"]
QUESTION = "Are the highlighted words relevant to the prediction?"
SCRIPTS = ("page/scheme.js", "annotation/annotation.js")


def checked_format(name: str) -> Format:
    """What is written, if there is such a thing."""
    if name not in get_args(Format):
        raise unknown("format", name, get_args(Format))
    return name  # type: ignore[return-value]


def write_sheets(folder: Path, drawn: Drawn, form: Format) -> list[Path]:
    """Write the key and the sheets; a sheet that is there already may hold answers, and stays as it is."""
    claim(folder, drawn)
    made = {PAGE: lambda: page(drawn.items, drawn.key.id), SHEET: lambda: to_csv(drawn.items)}
    wanted = {"html": (PAGE,), "csv": (SHEET,), "both": (PAGE, SHEET)}[form]
    for name in wanted:
        if not (folder / name).exists():
            write_text(folder / name, made[name]())
    return [folder / name for name in wanted]


def page(items: Sequence[Item], key: str) -> str:
    """The whole page; the same items give the same bytes."""
    scripts = [shipped(name) for name in SCRIPTS]
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=f"{policy}; script-src {_digests(scripts)}"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", QUESTION),
        tag("style", Markup(f"{shipped('page/style.css')}\n{shipped('annotation/annotation.css')}")),
    )
    body = tag(
        "body",
        _header(len(items)),
        tag("main", _start(), tag("div", *_items(items), id="items"), _controls(), data_key=key),
        *(tag("script", Markup(script)) for script in scripts),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _digests(scripts: Sequence[str]) -> str:
    return " ".join(f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts)


def _header(count: int) -> Markup:
    progress = tag("progress", id="bar", max=str(count), value="0", aria_label="Items answered")
    return tag(
        "header",
        tag("p", tag("span", f"{count} items", id="place"), tag("span", id="answered"), class_="title"),
        progress,
        tag("button", "Dark", id="scheme", type="button", hidden=True),
    )


def _start() -> Markup:
    """Who answers: two people at one browser must not see each other's answers."""
    name = tag("input", id="name", name="name", autocomplete="off", required=True, maxlength="60")
    form = tag(
        "form",
        tag("label", "Your name or initials", for_="name"),
        tag("div", name, tag("button", "Begin", type="submit", class_="main"), class_="row"),
        id="begin",
    )
    explained = (
        "Each item is a text and what a model predicts for it. A few words are highlighted. Say whether, taken "
        "together, they are relevant to the prediction: would they be a sensible reason for it? Whether the prediction "
        "is right is not the question.",
        "Your answers stay in this browser. You can stop at any time and go on later under the same name. When you are "
        "done, save your answers and send the file.",
    )
    scriptless = tag("noscript", tag("p", "This page needs JavaScript. Without it, fill in the CSV sheet instead."))
    load = tag(
        "p", "Begun elsewhere? ", tag("button", "Load saved answers", type="button", class_="load"), class_="small"
    )
    paragraphs = (tag("p", paragraph) for paragraph in explained)
    return tag("section", tag("h1", QUESTION), *paragraphs, scriptless, form, load, id="start")


def _items(items: Sequence[Item]) -> list[Markup]:
    return [_item(item, number, len(items)) for number, item in enumerate(items, start=1)]


def _item(item: Item, number: int, count: int) -> Markup:
    texts = (
        tag(
            "div",
            tag("dt", "Text" if part == item.explained else "Question or hypothesis"),
            tag("dd", _text(item, part), class_="text"),
        )
        for part in range(len(item.texts))
    )
    named = ", ".join(item.words) if item.words else "none: no word has any weight"
    return tag(
        "article",
        tag("h2", f"Item {number} of {count}", class_="exegete-unseen"),
        tag(
            "dl",
            *texts,
            tag("div", tag("dt", "Prediction"), tag("dd", item.predicted, class_="prediction"), class_="told"),
            tag("div", tag("dt", "Highlighted"), tag("dd", named), class_="told"),
        ),
        data_item=item.name,
        tabindex="-1",
    )


def _text(item: Item, part: int) -> Markup:
    marked = item.marked if part == item.explained else ()
    words = (tag("mark", w) if place in marked else safe(w) for place, w in enumerate(item.texts[part]))
    return Markup(" ".join(words))


def _controls() -> Markup:
    """Buttons, each with its key."""
    answers = tag(
        "div",
        tag("button", "Yes ", tag("kbd", "Y"), type="button", id="yes", aria_pressed="false"),
        tag("button", "No ", tag("kbd", "N"), type="button", id="no", aria_pressed="false"),
        class_="answers",
        role="group",
        aria_labelledby="question",
    )
    moves = tag(
        "div",
        tag("button", tag("kbd", "←"), " Back", type="button", id="back"),
        tag("button", "Next ", tag("kbd", "→"), type="button", id="next"),
        tag("button", "Next open ", tag("kbd", "O"), type="button", id="open"),
        class_="moves",
    )
    file = tag("input", type="file", id="file", accept=".json,application/json", hidden=True)
    saving = tag(
        "div",
        tag("button", "Save answers", type="button", id="save"),
        tag("button", "Load saved answers", type="button", class_="load"),
        tag("button", "Another annotator", type="button", id="leave"),
        class_="saving",
    )
    status = tag("p", id="status", role="status", aria_live="polite")
    parts = (tag("p", QUESTION, id="question"), answers, moves, saving)
    return tag("div", tag("section", *parts, id="controls", hidden=True), status, file, id="foot")
