"""Your own files: every format, columns by name, and errors that name the line."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from exegete.base.errors import ExegeteError, UsageError
from exegete.tasks.catalogue import load_task
from tests.tasks.task_files import labelled, write_jsonl

ROWS = labelled(60)
Writer = Callable[[Path], object]


def write_csv(path: Path) -> None:
    pl.DataFrame(ROWS).write_csv(path, separator="\t" if ".tsv" in path.name else ",")


def write_csv_gz(path: Path) -> None:
    path.write_bytes(gzip.compress(pl.DataFrame(ROWS).write_csv().encode()))


FORMATS: dict[str, Writer] = {
    "a.csv": write_csv,
    "a.tsv": write_csv,
    "a.csv.gz": write_csv_gz,
    "a.jsonl": lambda path: write_jsonl(path, ROWS),
    "a.jsonl.gz": lambda path: write_jsonl(path, ROWS),
    "a.parquet": lambda path: pl.DataFrame(ROWS).write_parquet(path),
}


@pytest.mark.parametrize(("name", "write"), FORMATS.items(), ids=FORMATS.keys())
def test_all_formats_give_the_same_task(name: str, write: Writer, tmp_path: Path) -> None:
    write(tmp_path / name)
    write_jsonl(tmp_path / "same.jsonl", ROWS)
    task = load_task(f"file:{tmp_path / name}")
    assert task.hash == load_task(f"file:{tmp_path / 'same.jsonl'}").hash
    assert sum(map(len, task.splits.values())) == 60
    assert task.origin == name


def written(tmp_path: Path, text: str, name: str = "a.csv") -> Path:
    (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path / name


def test_columns_files_and_quotes(tmp_path: Path) -> None:
    train = written(tmp_path, '\ufeffreview,stars\n"Good, ""really""\ngood",5\n\nbad,1\n')
    other = written(tmp_path, "review,stars\nfine,5\n", "b.csv")
    task = load_task(f"file:{train}:text=review,label=stars,test={other},dev={other}")
    assert task.labels == ("1", "5")
    assert task.split("train")[0].words == ("good", ",", '"', "really", '"', "good")
    assert [e.id for e in task.split("train")] == [0, 1]
    assert [len(task.split(name)) for name in ("dev", "test")] == [1, 1]
    assert task.origin == "a.csv, b.csv, b.csv"


def test_split_column(tmp_path: Path) -> None:
    path = written(tmp_path, "text,label,part\na,0,train\nb,1,Train\nc,1,validation\nd,0,test\n")
    task = load_task(f"file:{path}:split=part")
    assert {name: [e.id for e in found] for name, found in task.splits.items()} == {
        "train": [0, 1],
        "dev": [2],
        "test": [3],
    }


def test_numbers_as_classes_and_missing_texts(tmp_path: Path) -> None:
    rows = [{"text": row["text"], "label": i % 2} for i, row in enumerate(ROWS)]
    pl.DataFrame([*rows, {"text": None, "label": 1}]).write_parquet(tmp_path / "a.parquet")
    task = load_task(f"file:{tmp_path / 'a.parquet'}")
    assert task.labels == ("0", "1")
    assert task.notes[0] == "1 empty text was left out of train."


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("text,label\ngood,1\nbad, very,0\n", "a.csv, line 3: 3 columns where the header has 2"),
        ("text,label\ngood,1\nbad\n", "a.csv, line 3: 1 columns where the header has 2"),
        ("text,label\ngood,1\nbad,\n", "a.csv, line 3: 'label' is empty"),
        ('text,label\n"two\nlines",1\nbad,\n', "a.csv, line 4: 'label' is empty"),
        ('text,label\ngood,1\n"bad,0\n', "a.csv, line 3: unexpected end of data"),
        ('text,label\n"go"od,1\n', "a.csv, line 2: "),
        ("text,text,label\na,b,1\n", "line 1: two columns have the same name"),
        ("", "a.csv is empty"),
        ("text,label\n", "no examples"),
        ("text,label\n,1\n ,0\n", "all 2 texts of train are empty"),
    ],
)
def test_malformed_csv(text: str, sentence: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ExegeteError) as raised:
        load_task(f"file:{path}")
    assert sentence in str(raised.value)
    assert raised.value.exit_code == 1


def test_malformed_jsonl(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [*ROWS[:2], {"text": "no class"}])
    with pytest.raises(ExegeteError, match=r"a\.jsonl, line 3: 'label' is empty"):
        load_task(f"file:{path}")


def test_malformed_parquet(tmp_path: Path) -> None:
    path = written(tmp_path, "no parquet", "a.parquet")
    with pytest.raises(ExegeteError, match="is not a whole parquet file"):
        load_task(f"file:{path}")
    pl.DataFrame({"text": ["a", "b"], "label": ["1", None]}).write_parquet(path)
    with pytest.raises(ExegeteError, match=r"a\.parquet, row 2: 'label' is empty"):
        load_task(f"file:{path}")


def test_unknown_split(tmp_path: Path) -> None:
    path = written(tmp_path, "text,label,part\na,0,train\nb,1,trial\n")
    with pytest.raises(ExegeteError, match=r"line 3: 'part' is 'trial': write train, dev or test"):
        load_task(f"file:{path}:split=part")


@pytest.mark.parametrize(("name", "write"), FORMATS.items(), ids=FORMATS.keys())
def test_unknown_columns(name: str, write: Writer, tmp_path: Path) -> None:
    write(tmp_path / name)
    with pytest.raises(UsageError, match=r"unknown column of a\..*'txt': did you mean 'text'\? \(write text=COLUMN\)"):
        load_task(f"file:{tmp_path / name}:text=txt")


def test_split_column_or_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not both"):
        load_task(f"file:{tmp_path}/a.csv:split=part,test=b.csv")


@pytest.mark.parametrize("name", ["a.xlsx", "a", "a.parquet.gz"])
def test_unknown_suffix(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no kind of file that can be read: choose from \.csv"):
        load_task(f"file:{tmp_path / name}")


@pytest.mark.parametrize("name", FORMATS)
def test_missing_files(name: str, tmp_path: Path) -> None:
    with pytest.raises(ExegeteError, match="no such file"):
        load_task(f"file:{tmp_path / name}")


def test_not_utf_8(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("text,label\ncafé,1\n".encode("latin-1"))
    with pytest.raises(ExegeteError, match="line 2: not UTF-8"):
        load_task(f"file:{tmp_path / 'a.csv'}")


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_csv_file_with_another_mark_is_recognised(separator: str, tmp_path: Path) -> None:
    """Sheets write semicolons where a comma is a decimal point; texts may have commas, and quotes around them."""
    rows = [{"text": f'{row["text"]}, "so"', "label": row["label"]} for row in ROWS]
    pl.DataFrame(rows).write_csv(tmp_path / "a.csv", separator=separator, quote_style="always")
    write_jsonl(tmp_path / "same.jsonl", rows)
    assert load_task(f"file:{tmp_path / 'a.csv'}").hash == load_task(f"file:{tmp_path / 'same.jsonl'}").hash


def test_a_semicolon_in_a_header_with_commas_cuts_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, "text,label;number\n" + "".join(f"word{i} good,{i % 2}\n" for i in range(40)))
    assert load_task(f"file:{path}:label=label;number").labels == ("0", "1")


def test_rows_without_a_class_are_dropped_where_that_is_asked(tmp_path: Path) -> None:
    lines = [f"good{i},{i % 2}" for i in range(40)]
    path = written(tmp_path, "\n".join(["text,label", "bad,", *lines, "worse, "]))
    with pytest.raises(ExegeteError, match=r"a\.csv, line 2: 'label' is empty: .* with unlabelled=drop"):
        load_task(f"file:{path}")
    task = load_task(f"file:{path}:unlabelled=drop")
    assert task.notes[0] == "2 rows were left out of train: no 'label'."
    assert sorted(e.id for found in task.splits.values() for e in found) == list(range(1, 41))


@pytest.mark.parametrize("missing", ["", "nan", "NaN", "<NA>", " "])
def test_rows_without_a_class_are_named_and_counted(missing: str, tmp_path: Path) -> None:
    """Also where a program wrote a class that is missing as a word of its own."""
    lines = [f"good{i},{missing if i % 2 else i % 4}" for i in range(40)]
    path = written(tmp_path, "\n".join(["text,label", *lines]))
    with pytest.raises(ExegeteError) as raised:
        load_task(f"file:{path}")
    rows = "line 3, line 5, line 7, line 9, line 11, …"
    assert f"a.csv, line 3: 'label' is empty: 20 rows have none ({rows}): give them a class" in str(raised.value)
    assert load_task(f"file:{path}:unlabelled=drop").labels == ("0", "2")


def test_numbers_that_are_missing_are_no_classes(tmp_path: Path) -> None:
    rows = [
        {"text": row["text"], "label": None if i == 3 else float("nan") if i == 5 else i % 2}
        for i, row in enumerate(ROWS)
    ]
    with pytest.raises(ExegeteError, match=r"line 4: 'label' is empty: 2 rows have none \(line 4, line 6\)"):
        load_task(f"file:{write_jsonl(tmp_path / 'a.jsonl', rows)}")
    pl.DataFrame([row | {"label": float(row["label"] or 0)} for row in rows], strict=False).write_parquet(
        tmp_path / "a.parquet"
    )
    with pytest.raises(ExegeteError, match=r"row 6: 'label' is empty"):
        load_task(f"file:{tmp_path / 'a.parquet'}")


def test_whole_numbers_are_called_so_in_every_format(tmp_path: Path) -> None:
    frame = pl.DataFrame([{"text": row["text"], "label": float(i % 2)} for i, row in enumerate(ROWS)])
    frame.write_csv(tmp_path / "a.csv")
    frame.write_parquet(tmp_path / "a.parquet")
    write_jsonl(tmp_path / "a.jsonl", frame.iter_rows(named=True))
    tasks = [load_task(f"file:{tmp_path / name}") for name in ("a.csv", "a.parquet", "a.jsonl")]
    assert {task.labels for task in tasks} == {("0", "1")}
    assert {task.hash for task in tasks} == {load_task(f"file:{write_jsonl(tmp_path / 'b.jsonl', ROWS)}").hash}
    half = written(tmp_path, "text,label\n" + "".join(f"word{i},{i % 3 / 2}\n" for i in range(90)))
    assert load_task(f"file:{half}").labels == ("0.0", "0.5", "1.0")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.csv.gz"])
def test_a_mark_at_the_beginning_tells_the_encoding(encoding: str, name: str, tmp_path: Path) -> None:
    """As spreadsheets save "Unicode text"."""
    FORMATS[name](tmp_path / name)
    expected = load_task(f"file:{tmp_path / name}").hash
    raw = (tmp_path / name).read_bytes()
    text = (gzip.decompress(raw) if name.endswith(".gz") else raw).decode().encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    assert load_task(f"file:{tmp_path / name}").hash == expected


def test_utf_16_without_a_mark_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("text,label\ngood,1\n".encode("utf-16-le"))
    with pytest.raises(ExegeteError, match=r"is UTF-16 text without a mark .* save it as UTF-8"):
        load_task(f"file:{tmp_path / 'a.csv'}")


@pytest.mark.parametrize("first", ["a rather long and charming film with actors,1", "fine,0"])
def test_a_missing_header_is_named(first: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a\.csv has no header: its first line .* looks like a row: .* as text,label"):
        load_task(f"file:{written(tmp_path, first + chr(10) + 'bad,0' + chr(10))}")


@pytest.mark.parametrize("value", ["[" * 100_000 + "]" * 100_000, "9" * 5_000])
def test_json_that_no_reader_can_hold(value: str, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [ROWS[0], f'{{"text": {value}}}'])
    with pytest.raises(ExegeteError, match=r"line 2: a number is too long, or lists too deep"):
        load_task(f"file:{path}")


def test_half_characters_are_replaced_at_the_door(tmp_path: Path) -> None:
    r"""JSON can name one half of a character, as `\ud800`, which no other file can hold."""
    rows = [row | {"text": f"{row['text']} \ud800", "label": f"\udfff{row['label']}"} for row in ROWS]
    task = load_task(f"file:{write_jsonl(tmp_path / 'a.jsonl', rows)}")
    assert task.split("train")[0].words[-1] == "\ufffd"
    assert task.labels == ("\ufffd0", "\ufffd1")


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.parquet"])
def test_rationales_are_places_of_words_or_spans(name: str, tmp_path: Path) -> None:
    """In a csv file, as JSON."""
    places = [row | {"rationale": [0, 2] if i % 2 else None} for i, row in enumerate(ROWS)]
    spans = [row | {"rationale": [[0, 1], [2, 3]] if i % 2 else None} for i, row in enumerate(ROWS)]
    if name == "a.csv":
        frame = pl.DataFrame([row | {"rationale": "[0, 2]" if row["rationale"] else None} for row in places])
        frame.write_csv(tmp_path / name)
    else:
        FORMATS_OF_ROWS[name](tmp_path / name, places)
    task = load_task(f"file:{tmp_path / name}")
    assert task.hash == load_task(f"file:{write_jsonl(tmp_path / 'spans.jsonl', spans)}").hash
    assert {e.rationale for found in task.splits.values() for e in found} == {(), (0, 2)}


FORMATS_OF_ROWS: dict[str, Callable[[Path, Any], object]] = {
    "a.jsonl": write_jsonl,
    "a.parquet": lambda path, rows: pl.DataFrame(rows).write_parquet(path),
}
