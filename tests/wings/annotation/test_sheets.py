"""Sheets: written, filled in, handed back; whatever can be wrong with them is one sentence."""

import csv
import io
import json
from pathlib import Path

import pytest

from exegete.base.errors import ExegeteError
from exegete.wings.annotation.page import annotation_page, write_sheets
from exegete.wings.annotation.sheets import (
    ANSWERS,
    FACTS,
    KEY,
    SHEET,
    DrawnItems,
    ItemKey,
    Secret,
    SheetItem,
    claim_folder,
    load_key,
    read_sheet,
    read_sheets,
    sheet_csv,
)

TEXTS = ("a fine film", "= dull , dull film", '"odd" ; [x] , film', "-1 of 10")


def made(identity: str = "kabc", texts: tuple[str, ...] = TEXTS) -> DrawnItems:
    names = [f"{identity}-{n:03d}" for n in range(1, len(texts) + 1)]
    items = tuple(
        SheetItem(name, (tuple(text.split()),), 0, (1, 0), "good") for name, text in zip(names, texts, strict=True)
    )
    secrets = {
        item.name: Secret(n, "permuted" if n % 2 else "original", "good", "good", True, "good", item.words)
        for n, item in enumerate(items)
    }
    return DrawnItems(items, ItemKey(identity, dict.fromkeys(FACTS), secrets), ())


DRAWN = made()
KEY_OF_IT = DRAWN.key


def filled(path: Path, *answers: str, mark: str = ",") -> Path:
    """The sheet as a spreadsheet saves it, with answers in order."""
    rows = list(csv.reader(io.StringIO(sheet_csv(DRAWN.items).removeprefix("\ufeff"))))
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file, delimiter=mark)
        writer.writerow(rows[0])
        writer.writerows([*row[:-1], answer] for row, answer in zip(rows[1:], answers, strict=True))
    return path


def saved(path: Path, *rows: tuple[str, object], annotator: str = "Ann", key: str = "kabc") -> Path:
    answers = [{"item": item, "relevant": word} for item, word in rows]
    path.write_text(json.dumps({"key": key, "annotator": annotator, "items": 4, "answers": answers}))
    return path


def test_a_sheet_reads_back_as_text() -> None:
    rows = list(csv.reader(io.StringIO(sheet_csv(DRAWN.items).removeprefix("\ufeff"))))
    assert rows[0] == ["item", "text", "prediction", "top words", "relevant"]
    assert rows[1] == ["kabc-001", "[[a]] [[fine]] film", "good", "fine; a", ""]
    assert rows[3][1] == '[["odd"]] [[;]] [x] , film'
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row)  # no formula


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_every_way_to_say_it(tmp_path: Path, mark: str) -> None:
    path = filled(tmp_path / "bob.csv", "Yes", " n ", "TRUE", "0", mark=mark)
    sheet = read_sheet(path, KEY_OF_IT)
    assert sheet.annotator == "bob"
    assert sheet.answers == {"kabc-001": True, "kabc-002": False, "kabc-003": True, "kabc-004": False}
    assert set(ANSWERS) == {"yes", "no", "y", "n", "1", "0", "true", "false"}


def test_an_unfinished_sheet_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = filled(tmp_path / "bob.csv", "", "no", "  ", "")
    assert read_sheet(path, KEY_OF_IT).answers == {"kabc-002": False}
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    path.write_text("\n".join([*lines[:3], "", ",,,,"]))  # lines that were deleted or are empty
    assert read_sheet(path, KEY_OF_IT).answers == {"kabc-002": False}


def test_what_the_page_saved(tmp_path: Path) -> None:
    sheet = read_sheet(saved(tmp_path / "x.json", ("kabc-004", "no"), ("kabc-001", True)), KEY_OF_IT)
    assert (sheet.annotator, sheet.answers) == ("Ann", {"kabc-004": False, "kabc-001": True})
    assert read_sheet(saved(tmp_path / "carl.json", annotator=" "), KEY_OF_IT).annotator == "carl"


def test_the_same_answer_twice_is_one_answer(tmp_path: Path) -> None:
    path = saved(tmp_path / "x.json", ("kabc-001", "no"), ("kabc-001", "n"))
    assert read_sheet(path, KEY_OF_IT).answers == {"kabc-001": False}


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ((("kabc-001", "no"), ("kabc-001", "yes")), "item kabc-001 is answered twice, yes and no"),
        ((("kabc-001", "perhaps"),), "'perhaps' for item kabc-001 is neither yes nor no"),
        ((("kabc-009", "no"),), "there is no item 'kabc-009' in key kabc"),
        ((("kabd-001", "no"),), "belongs to key kabd, not to kabc"),
        ((("film", "no"),), "there is no item 'film'"),
        ((("kabd-001", ""),), "belongs to key kabd"),
    ],
)
def test_answers_that_can_not_be(tmp_path: Path, rows: tuple[tuple[str, object], ...], sentence: str) -> None:
    with pytest.raises(ExegeteError, match=sentence):
        read_sheet(saved(tmp_path / "x.json", *rows), KEY_OF_IT)


def test_the_line_is_named(tmp_path: Path) -> None:
    path = filled(tmp_path / "x.csv", "yes", "maybe", "no", "no")
    with pytest.raises(ExegeteError, match=r"x\.csv, line 3: 'maybe'"):
        read_sheet(path, KEY_OF_IT)
    text = filled(path, "yes", "no", "no", "no").read_text(encoding="utf-8-sig")
    path.write_text(text + "kabc-002,x,x,x,yes\n")
    with pytest.raises(ExegeteError, match=r"x\.csv, line 6: item kabc-002 is answered twice"):
        read_sheet(path, KEY_OF_IT)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("x.csv", b"", "has no column 'item'"),
        ("x.csv", b"item,text\nkabc-001,a\n", "has no column 'relevant'"),
        ("x.csv", b"item,text,relevant\nkabc-001\n", "line 2: the line is too short"),
        ("x.csv", b"item,relevant\nkabc-001,\0\n", "not CSV|neither yes nor no"),
        ("x.csv", b"item,relevant\nkabc-001,\xff\n", "not UTF-8"),
        ("x.json", b"{", "can't be read as saved answers"),
        ("x.json", b"[1]", "can't be read as saved answers"),
        ("x.json", b'{"annotator": "a", "answers": [{"item": "kabc-001"}]}', "can't be read as saved answers"),
    ],
)
def test_files_that_are_no_sheets(tmp_path: Path, name: str, content: bytes, sentence: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ExegeteError, match=sentence):
        read_sheet(tmp_path / name, KEY_OF_IT)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ExegeteError, match="no such file"):
        read_sheet(tmp_path / "none.csv", KEY_OF_IT)


def test_one_file_per_annotator(tmp_path: Path) -> None:
    first, second = filled(tmp_path / "Ann.csv", *["yes"] * 4), saved(tmp_path / "x.json", ("kabc-001", "no"))
    with pytest.raises(ExegeteError, match="are both by 'Ann'"):
        read_sheets([first, second], KEY_OF_IT)
    assert [s.annotator for s in read_sheets([first, filled(tmp_path / "b.csv", *["no"] * 4)], KEY_OF_IT)] == [
        "Ann",
        "b",
    ]


def test_the_key_comes_back(tmp_path: Path) -> None:
    claim_folder(tmp_path, DRAWN)
    assert load_key(tmp_path) == KEY_OF_IT


def test_a_folder_of_another_draw_is_left_as_it_is(tmp_path: Path) -> None:
    write_sheets(tmp_path, DRAWN, "both")
    sheet = tmp_path / SHEET
    filled(sheet, "yes", "no", "", "")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ExegeteError, match="holds another draw"):
        write_sheets(tmp_path, made("kxyz"), "both")
    write_sheets(tmp_path, DRAWN, "both")  # the same draw again: answers in its sheet stay
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_is_missing_is_written_again(tmp_path: Path) -> None:
    assert [path.name for path in write_sheets(tmp_path, DRAWN, "csv")] == [SHEET]
    assert sorted(path.name for path in tmp_path.iterdir()) == [KEY, SHEET]
    (html,) = write_sheets(tmp_path, DRAWN, "html")
    assert html.read_text() == annotation_page(DRAWN.items, "kabc")
    (tmp_path / KEY).unlink()
    with pytest.raises(ExegeteError, match=r"has annotate\.html but no key\.json"):
        write_sheets(tmp_path, DRAWN, "both")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "can't be read as a key"),
        ("[]", "no key of this version"),
        ('{"format": 1, "items": {"a": 1}}', "is damaged"),
    ],
)
def test_a_damaged_key(tmp_path: Path, content: str, sentence: str) -> None:
    with pytest.raises(ExegeteError, match="there is no key"):
        load_key(tmp_path)
    (tmp_path / KEY).write_text(content)
    with pytest.raises(ExegeteError, match=sentence):
        load_key(tmp_path)
