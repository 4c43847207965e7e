"""Sheets: what annotators fill in, and what they hand back, checked.

A sheet is a CSV with a line per item and an empty column `relevant`, or the JSON file that the page saves. The names of
items begin with the key's, so that a sheet can't be read with another key. Nothing is guessed: an item that is answered
twice in two ways, a name that the key doesn't have and a word that is neither yes nor no are refused, with the line.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from exegete.plugins import ExegeteError, open_text, read_json, write_text

SheetCondition = Literal["original", "permuted"]
FORMAT = 1
KEY, PAGE, SHEET = "key.json", "annotate.html", "sheet.csv"
ITEM, ANSWER = "item", "relevant"
ANSWERS = {"yes": True, "y": True, "1": True, "true": True, "no": False, "n": False, "0": False, "false": False}
FACTS = ("task", "data", "model", "weights", "test_accuracy", "count", "top", "seed", "prediction", "labels")
FORMULAS = ("=", "+", "-", "@")  # what a spreadsheet takes for the beginning of one


class SheetItem(NamedTuple):
    """What an annotator sees of one example, and nothing else."""

    name: str  # KEY-NUMBER: so that every answer says which key it belongs to
    texts: tuple[tuple[str, ...], ...]
    explained: int  # the text whose words are ranked; the other is its question or hypothesis
    marked: tuple[int, ...]  # places of its highlighted words, the highest weight first
    predicted: str  # as annotators call it

    @property
    def words(self) -> tuple[str, ...]:
        """The highlighted words, the highest weight first."""
        return tuple(self.texts[self.explained][place] for place in self.marked)


class Secret(NamedTuple):
    """What an annotator must not see of it."""

    example: int
    condition: SheetCondition
    gold: str
    predicted: str  # what is shown, as the task calls it
    correct: bool
    original: str  # predicted with the model's own weights
    words: tuple[str, ...]


class ItemKey(NamedTuple):
    """Which item is what."""

    id: str
    facts: dict[str, Any]  # the model, the task and the draw
    secrets: dict[str, Secret]  # by item

    def to_json(self) -> dict[str, Any]:
        """For key.json."""
        items = {name: secret._asdict() for name, secret in self.secrets.items()}
        return {"format": FORMAT, "key": self.id, **self.facts, "items": items}


class DrawnItems(NamedTuple):
    """Items for annotators, the key to them, and what must be said of the draw."""

    items: tuple[SheetItem, ...]
    key: ItemKey
    notes: tuple[str, ...]


class Sheet(NamedTuple):
    """What one annotator answered."""

    annotator: str
    path: Path
    answers: dict[str, bool]  # by item: are the highlighted words relevant to the prediction?


def sheet_csv(items: Sequence[SheetItem]) -> str:
    """A sheet for a spreadsheet: highlighted words are in double brackets, and `relevant` is empty."""
    pairs = any(len(item.texts) > 1 for item in items)
    written = io.StringIO()
    written.write("\ufeff")  # so that Excel reads UTF-8
    rows = csv.writer(written, lineterminator="\r\n")
    rows.writerow([ITEM, "text", *(["question"] if pairs else []), "prediction", "top words", ANSWER])
    for item in items:
        others = [" ".join(text) for number, text in enumerate(item.texts) if number != item.explained]
        question = [" / ".join(others)] if pairs else []
        cells = [_bracketed(item), *question, item.predicted, "; ".join(item.words)]
        rows.writerow([item.name, *map(_plain, cells), ""])
    return written.getvalue()


def _bracketed(item: SheetItem) -> str:
    text = item.texts[item.explained]
    return " ".join(f"[[{word}]]" if place in item.marked else word for place, word in enumerate(text))


def _plain(cell: str) -> str:
    """No text is a formula."""
    return f" {cell}" if cell.startswith(FORMULAS) else cell


def claim_folder(folder: Path, drawn: DrawnItems) -> None:
    """Keep the key in a folder; one that holds another draw, or sheets of which nobody knows the key, is refused."""
    if (folder / KEY).exists():
        kept = load_key(folder).id
        if kept != drawn.key.id:
            raise ExegeteError(
                f"{folder} holds another draw (key {kept}, not {drawn.key.id}), perhaps with answers: choose another "
                "folder, or ask for the same model, task, count, top, seed, prediction and labels"
            )
        return
    if stray := [name for name in (PAGE, SHEET) if (folder / name).exists()]:
        raise ExegeteError(f"{folder} has {stray[0]} but no {KEY}, so it may be of another draw: choose another folder")
    text = json.dumps(drawn.key.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
    write_text(folder / KEY, text + "\n")


def load_key(folder: Path) -> ItemKey:
    """The key of a folder; one that is missing, damaged or of another version is one sentence."""
    facts = read_json(folder / KEY, "key")
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise ExegeteError(f"{folder / KEY} is no key of this version: draw the items again")
    try:
        secrets = {name: Secret(**{**s, "words": tuple(s["words"])}) for name, s in facts["items"].items()}
        return ItemKey(facts["key"], {name: facts[name] for name in FACTS}, secrets)
    except (KeyError, TypeError, AttributeError) as error:
        raise ExegeteError(
            f"{folder / KEY} is damaged ({error}): draw the items again with the same settings"
        ) from None


def read_sheet(path: Path, key: ItemKey) -> Sheet:
    """One filled-in sheet, or answers that the page saved, checked against the key."""
    annotator, rows = _saved(path) if path.suffix.lower() == ".json" else (path.stem, _lines(path))
    answers: dict[str, bool] = {}
    for where, item, word in rows:
        _check_item(item, key, where)
        if not word:
            continue  # not answered yet
        if word.lower() not in ANSWERS:
            raise ExegeteError(f"{where}: '{word}' for item {item} is neither yes nor no: write yes, no, or nothing")
        said = ANSWERS[word.lower()]
        if answers.setdefault(item, said) != said:
            raise ExegeteError(f"{where}: item {item} is answered twice, yes and no: keep one of the two answers")
    return Sheet(annotator, path, answers)


def read_sheets(paths: Iterable[Path], key: ItemKey) -> list[Sheet]:
    """Several sheets, one by each annotator."""
    sheets: dict[str, Sheet] = {}
    for path in paths:
        sheet = read_sheet(path, key)
        if sheet.annotator in sheets:
            raise ExegeteError(
                f"{sheets[sheet.annotator].path} and {path} are both by '{sheet.annotator}': give one file per "
                "annotator, a CSV named after the person who filled it in"
            )
        sheets[sheet.annotator] = sheet
    return list(sheets.values())


def _check_item(item: str, key: ItemKey, where: str) -> None:
    if item in key.secrets:
        return
    other = item.rpartition("-")[0]
    if other and other != key.id:
        raise ExegeteError(f"{where}: item {item} belongs to key {other}, not to {key.id}: give that key's folder")
    raise ExegeteError(f"{where}: there is no item '{item}' in key {key.id}: leave the items' names as they were")


def _lines(path: Path) -> Iterator[tuple[str, str, str]]:
    """Where, item and answer of every line of a CSV; spreadsheets may have made its commas semicolons or tabs."""
    with open_text(path, newline="") as file:
        head = file.readline()
        mark = max(",;\t", key=head.count)
        names = [name.strip().lower() for name in next(csv.reader([head], delimiter=mark), [])]
        if missing := [name for name in (ITEM, ANSWER) if name not in names]:
            raise ExegeteError(f"{path} has no column '{missing[0]}': keep the first line of the sheet as it was")
        places = names.index(ITEM), names.index(ANSWER)
        rows = csv.reader(file, delimiter=mark)
        try:
            for row in rows:
                if any(cell.strip() for cell in row):
                    yield _cells(row, places, f"{path}, line {rows.line_num + 1}")
        except csv.Error as error:
            raise ExegeteError(f"{path}, line {rows.line_num + 1}: not CSV ({error}): save the sheet as CSV") from None


def _cells(row: list[str], places: tuple[int, int], where: str) -> tuple[str, str, str]:
    if len(row) <= max(places):
        raise ExegeteError(f"{where}: the line is too short: keep the columns of the sheet as they were")
    item, answer = (row[place].strip() for place in places)
    return where, item, answer


def _saved(path: Path) -> tuple[str, list[tuple[str, str, str]]]:
    """The annotator, and where, item and answer of what the page saved."""
    with open_text(path) as file:
        text = file.read()
    try:
        saved: dict[str, Any] = json.loads(text)
        rows = [(str(path), str(row[ITEM]), str(row[ANSWER]).strip()) for row in saved["answers"]]
        return str(saved["annotator"]).strip() or path.stem, rows
    except (ValueError, KeyError, TypeError) as error:
        raise ExegeteError(f"{path} can't be read as saved answers ({error}): save them again from the page") from None
