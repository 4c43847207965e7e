"""Memo: equal content, equal key; what was made is read under its own key alone."""

from pathlib import Path

import pytest

from exegete.base.errors import ExegeteError
from exegete.base.memo import key_of, read_memo, write_memo


def test_keys_depend_on_content_not_on_order() -> None:
    assert key_of(a=1, b=[2, 3]) == key_of(b=[2, 3], a=1)
    assert key_of(a=1) != key_of(a=2)


def test_what_was_made_is_read_under_its_key_alone(tmp_path: Path) -> None:
    path = tmp_path / "made.json"
    assert read_memo(path, "words", "a") is None
    write_memo(path, "words", "a", ["é", 1.5])
    assert read_memo(path, "words", "a") == ["é", 1.5]
    assert read_memo(path, "words", "b") is read_memo(path, "numbers", "a") is None
    path.write_text("{")
    with pytest.raises(ExegeteError, match="can't be read as a memo of words"):
        read_memo(path, "words", "a")
