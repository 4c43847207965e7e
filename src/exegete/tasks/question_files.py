"""Question files: news stories with a sentence in which a name is to be found (CNN, Daily Mail; Hermann et al. 2015).

A `.question` file has five parts with a blank line between them: an address, the story with names written as @entity12,
the sentence with @placeholder in place of one name, that name, and lines that say what the names were. The candidates
of a question are the entities of its story; all entities are classes.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from exegete.base.errors import ExegeteError
from exegete.tasks.example import Record
from exegete.tasks.prepare import SourceRow
from exegete.tasks.text_files import open_text

ENTITY, PLACEHOLDER = "@entity", "@placeholder"
ENDING = ".question"
PARTS = "an address, the passage, the question, the answer and the entities, with a blank line between them"


def read_question_files(home: Path, names: Mapping[str, str]) -> dict[str, Iterator[SourceRow]]:
    """The questions of every split: of each sub-folder with a split's name, or else of the folder itself."""
    folders: dict[str, Path] = {}
    for folder in sorted(home.iterdir()):
        split = names.get(folder.name.lower())
        if split and folder.is_dir():
            if split in folders:
                raise ExegeteError(f"{home}: '{folders[split].name}' and '{folder.name}' are both {split}: keep one")
            folders[split] = folder
    return {split: _rows(folder) for split, folder in (folders or {"train": home}).items()}


def _rows(folder: Path) -> Iterator[SourceRow]:
    files = sorted(path for path in folder.iterdir() if path.suffix == ENDING)
    if not files:
        raise ExegeteError(
            f"{folder} holds no {ENDING} files: give a folder with sub-folders train, dev and test that do"
        )
    for row, path in enumerate(files):
        yield SourceRow(row, question(path))


def question(path: Path) -> Record:
    """The record of one file."""
    with open_text(path) as file:
        parts = file.read().rstrip("\n").split("\n\n")
    if len(parts) < 4:
        raise ExegeteError(f"{path} is no question file: it has {PARTS}")
    passage, asked, answer = (part.strip() for part in parts[1:4])
    entities = tuple(sorted({word for word in passage.split() if word.startswith(ENTITY)}))
    if answer not in entities:
        raise ExegeteError(f"{path}: the answer '{answer}' is not among the entities of the passage: drop the file")
    if asked and PLACEHOLDER not in asked.split():
        raise ExegeteError(f"{path}: the question has no {PLACEHOLDER}: write it where the answer belongs")
    return Record((passage, asked), answer, candidates=entities)
