"""Elements: HTML that can't be forgotten to escape. Everything is text until something says that it is markup."""

from html import escape

VOID = frozenset({"meta", "br", "hr", "link", "input", "img"})


class Markup(str):
    """A string that is HTML already."""

    __slots__ = ()


def safe(content: str) -> Markup:
    """Markup as it is; anything else escaped, quotes too."""
    return content if isinstance(content, Markup) else Markup(escape(content, quote=True))


def joined(*parts: str) -> Markup:
    """Parts one after another."""
    return Markup("".join(safe(part) for part in parts))


def tag(name: str, /, *children: str, **attributes: str | bool | None) -> Markup:
    """An element. `class_` is class, `aria_label` is aria-label; True is a bare attribute, None and False are left out.

    >>> tag("p", "a < b", class_="note")
    '<p class="note">a &lt; b</p>'
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    opened = f"<{name}{written}>"
    return Markup(opened) if name in VOID else Markup(f"{opened}{joined(*children)}</{name}>")


def _attribute(key: str, value: str | bool | None) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(value, quote=True)}"'
