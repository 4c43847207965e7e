"""Memo: what was made once lies in a file, under a key of everything that it was made of; other keys make it anew."""

import hashlib
import json
from pathlib import Path
from typing import Any

from exegete.base.files import read_json, write_text


def key_of(**content: Any) -> str:
    """A fingerprint of settings and hashes."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:16]


def write_memo(path: Path, what: str, key: str, made: Any) -> None:
    """Write down what was made under a key; numbers that JSON lacks are refused."""
    write_text(path, json.dumps({"key": key, what: made}, ensure_ascii=False, allow_nan=False) + "\n")


def read_memo(path: Path, what: str, key: str) -> Any | None:
    """What was made under this very key; None where nothing was, or under another."""
    facts = read_json(path, f"memo of {what}") if path.is_file() else {}
    return facts.get(what) if facts.get("key") == key else None
