"""Answers of real audits as parts of a page, from `results/outcomes` (`tools.outcomes` asks them)."""

import tomllib
from typing import Any

from tools.pages.place import ROOT

KEPT = ROOT / "results" / "outcomes"
ORDER = (
    "single_words", "few_texts", "another_layer", "default", "cnn", "transformer", "sparse", "unread",
    "own", "stories", "guesses",
)  # fmt: skip


def kept() -> list[dict[str, Any]]:
    """All that is kept, from *yes* to *undecided*."""
    paths = [KEPT / f"{name}.toml" for name in ORDER]
    return [tomllib.loads(path.read_text(encoding="utf8")) for path in paths if path.is_file()]


def outcomes() -> str:
    """Every answer, word for word, below what was asked."""
    return "\n".join(_part(each) for each in kept())


def _part(said: dict[str, Any]) -> str:
    quoted = "\n>\n".join(f"> {paragraph}" for paragraph in said["answer"].split("\n\n"))
    title = said["model"][0].upper() + said["model"][1:]
    made = f"`{said['command']}`, {said['date']}, version {said['version']}, criteria {said['criteria']}."
    return f"## {title}\n\n{made}\n\n{quoted}\n"
