"""Scripts without spaces between words: noticed by every command that reads texts, and cut by a tokenizer that can."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exegete.tasks.catalogue import load_task
from exegete.tasks.scripts import is_uncut, split_characters
from exegete.tasks.tokenizers import TOKENIZERS
from tests.test_cli import call

CHINESE = ["这部电影的情节很精彩，演员也很好。", "今天看了这部电影，太无聊了。"]
THAI = ["ภาพยนตร์เรื่องนี้สนุกมาก", "หนังเรื่องนี้น่าเบื่อมาก"]


@pytest.mark.parametrize("texts", [CHINESE, THAI, ["この映画はとても面白かったです。"]])
def test_texts_without_spaces_are_noticed(texts: list[str]) -> None:
    assert is_uncut(texts)


@pytest.mark.parametrize(
    "texts",
    [
        ["a charming film , and the plot is fine"],
        ["这 部 电影 的 情节 很 精彩"],  # cut already
        ["이 영화는 정말 재미있었습니다", "это хороший фильм", "هذا فيلم جيد"],  # these have spaces
        ["The title is 卧虎藏龙, and I have seen it more often than any other film of these years."],
        [],
    ],
)
def test_others_are_not(texts: list[str]) -> None:
    assert not is_uncut(texts)


def test_characters_keep_their_marks_and_other_words_whole() -> None:
    assert split_characters("ที่ดี") == ["ที่", "ดี"]  # vowels and tones are marks on a letter
    assert TOKENIZERS["characters"]("看了2次, don't!") == ["看", "了", "2", "次", ",", "do", "n't", "!"]


@given(st.text())
def test_nothing_is_lost_and_no_token_crosses_white_space(text: str) -> None:
    tokens = TOKENIZERS["characters"](text)
    assert "".join(tokens) == "".join(text.replace("’", "'").split())
    assert all(tokens)


def chinese(path: Path) -> Path:
    """Sixty reviews of which a pair of characters tells the class."""
    many = [f"{chr(0x4E00 + i)}这部电影{'很好看' if i % 2 else '很无聊'}我们{chr(0x5E00 + i)}。" for i in range(60)]
    path.write_text("text,label\n" + "".join(f"{text},{i % 2}\n" for i, text in enumerate(many)), encoding="utf8")
    return path


def test_the_tokenizer_that_can_is_named_and_needs_no_note(tmp_path: Path) -> None:
    name = f"file:{chinese(tmp_path / 'zh.csv')}"
    whole, cut = load_task(name), load_task(f"{name}:tokenizer=characters")
    assert [note for note in whole.notes if "tokenizer=characters" in note]
    assert not [note for note in cut.notes if "tokenizer" in note]
    assert max(map(len, whole.split("train"))) == 2
    assert min(map(len, cut.split("train"))) == 12


def test_tokens_and_train_warn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    task = ("--task", f"file:{chinese(tmp_path / 'zh.csv')}")
    assert call(monkeypatch, "tokens", *task, "--out", str(tmp_path / "words.csv")) == 0
    assert "note: The texts have no spaces between words" in capsys.readouterr().out
    assert call(monkeypatch, "tokens", *task, "--out", str(tmp_path / "words.csv"), "--json") == 0
    assert "tokenizer=characters" in json.loads(capsys.readouterr().out)["notes"][0]
    small = ("--model", "average:size=4,hidden=4", "--training", "epochs=1", "--out", str(tmp_path / "model"))
    assert call(monkeypatch, "train", *task, *small, "--quiet") == 0
    assert "note: The texts have no spaces between words" in capsys.readouterr().out
