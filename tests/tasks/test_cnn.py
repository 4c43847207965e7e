"""Question files as CNN and Daily Mail have them: splits by folder, entities as candidates and classes."""

from pathlib import Path

import pytest

from exegete.base.errors import ExegeteError, UsageError
from exegete.tasks.catalogue import load_task

PASSAGE = "@entity1 met @entity2 in @entity10 , @entity2 said ."
ASKED = "@placeholder met @entity2"


def write(folder: Path, name: str, passage: str = PASSAGE, asked: str = ASKED, answer: str = "@entity1") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.question"
    text = f"http://an.address/of/news\n\n{passage}\n\n{asked}\n\n{answer}\n\n@entity1:Some Name\n@entity2:Other Name\n"
    path.write_text(text, encoding="utf-8")
    return path


def collection(tmp_path: Path, dev: str = "validation") -> Path:
    home = tmp_path / "questions"
    write(home / "training", "b", answer="@entity2", asked="who met @placeholder ?")
    write(home / "training", "a")
    write(home / dev, "c")
    write(home / "test", "d", passage="@entity5 and @entity1 left", answer="@entity5", asked="@placeholder left")
    return home


def test_a_folder_of_splits(tmp_path: Path) -> None:
    task = load_task(f"file:{collection(tmp_path)}")
    assert (task.kind, task.origin, task.tokenizer) == ("pair", "questions", "whitespace")
    assert task.labels == ("@entity1", "@entity10", "@entity2", "@entity5")  # entities of all passages
    first, second = task.split("train")  # in the order of their names
    assert first.texts == (tuple(PASSAGE.split()), tuple(ASKED.split()))
    assert [task.labels[c] for c in first.candidates] == ["@entity1", "@entity10", "@entity2"]
    assert (task.labels[first.label], task.labels[second.label]) == ("@entity1", "@entity2")
    assert task.labels[task.split("test")[0].label] == "@entity5"  # an answer that training never shows
    assert [task.labels[c] for c in task.split("test")[0].candidates] == ["@entity1", "@entity5"]


def test_settings_of_the_folder(tmp_path: Path) -> None:
    home = collection(tmp_path, "dev")
    asked = load_task(f"file:{home}/:explain=question,max_length=9").split("train")[0]
    assert asked.words == tuple(ASKED.split())
    with pytest.raises(UsageError, match=r"\.question files, which have no columns: leave text= out"):
        load_task(f"file:{home}:text=passage")


def test_a_folder_without_splits(tmp_path: Path) -> None:
    for i in range(60):
        write(tmp_path / "flat", str(i), passage=f"{i} {PASSAGE}", answer=f"@entity{1 + i % 2}")
    task = load_task(f"file:{tmp_path / 'flat'}")
    assert sum(map(len, task.splits.values())) == 60
    assert "80/10/10" in task.notes[0]


def test_an_empty_question_is_left_out_and_counted(tmp_path: Path) -> None:
    home = collection(tmp_path)
    write(home / "training", "z", asked="")
    task = load_task(f"file:{home}")
    assert len(task.split("train")) == 2
    assert task.notes == ("1 empty question was left out of train.",)


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ({"answer": "@entity7"}, "z.question: the answer '@entity7' is not among the entities of the passage"),
        ({"passage": ""}, "z.question: the answer '@entity1' is not among the entities of the passage"),
        ({"asked": "who met @entity2"}, "z.question: the question has no @placeholder"),
    ],
)
def test_bad_files_are_named(bad: dict[str, str], sentence: str, tmp_path: Path) -> None:
    home = collection(tmp_path)
    write(home / "training", "z", **bad)
    with pytest.raises(ExegeteError, match=sentence):
        load_task(f"file:{home}")


def test_a_file_of_another_kind(tmp_path: Path) -> None:
    home = collection(tmp_path)
    (home / "test" / "e.question").write_text("an address\n\nonly this\n", encoding="utf-8")
    with pytest.raises(ExegeteError, match=r"e.question is no question file: it has an address, the passage"):
        load_task(f"file:{home}")


def test_folders_that_are_wrong(tmp_path: Path) -> None:
    home = collection(tmp_path)
    (home / "dev").mkdir()
    with pytest.raises(ExegeteError, match="'dev' and 'validation' are both dev: keep one"):
        load_task(f"file:{home}")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ExegeteError, match=r"empty holds no \.question files: give a folder with sub-folders"):
        load_task(f"file:{tmp_path / 'empty'}")
