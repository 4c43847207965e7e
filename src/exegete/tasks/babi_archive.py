r"""The archive of bAbI on the hub: numbered statements, and questions in between with answer and supporting facts.

    1 Mary moved to the bathroom.
    2 Where is Mary? \tbathroom\t1
    1 …                                   (a new story)

`datasets` no longer runs the script of `facebook/babi_qa`; the archive beside that script is read as it is.
"""

import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from exegete.base.errors import ExegeteError
from exegete.base.extras import install

HUB, ARCHIVE = "facebook/babi_qa", "data/tasks_1-20_v1-2.tar.gz"
DEV = 0.15  # the share of the training stories, the last ones
NOTE = "The archive has no dev split: it is the last 15% of the training stories."

BabiQuestion = dict[str, Any]


def read_archive(collection: str, number: int) -> dict[str, list[BabiQuestion]]:
    """The questions of one task in one collection (en, en-10k); dev is the end of train, cut between two stories."""
    archive = _download()
    train, test = (_member(archive, collection, number, split) for split in ("train", "test"))
    first = round((1 - DEV) * (train[-1]["story"] + 1))
    return {
        "train": [question for question in train if question["story"] < first],
        "dev": [question for question in train if question["story"] >= first],
        "test": test,
    }


def _download() -> Path:
    """The archive, kept by the hub's own cache; everything that can go wrong on the way is one sentence."""
    try:
        import huggingface_hub
    except ImportError:
        raise ExegeteError(f"hf:{HUB} needs the package huggingface_hub: {install('hf')}") from None
    try:
        return Path(huggingface_hub.hf_hub_download(HUB, ARCHIVE, repo_type="dataset"))
    except (OSError, ValueError) as error:  # all errors of the hub are one of these
        said = " ".join(str(error).split())
        raise ExegeteError(f"hf:{HUB} can't be loaded: {said:.200}") from None


def _member(archive: Path, collection: str, number: int, split: str) -> list[BabiQuestion]:
    """The questions of one file of the archive."""
    try:
        with tarfile.open(archive) as files:
            for member in files:
                *_, home, name = ("", *member.name.split("/"))
                if home == collection and name.startswith(f"qa{number}_") and name.endswith(f"_{split}.txt"):
                    content = files.extractfile(member)
                    text = content.read().decode("utf-8") if content else ""
                    return list(read_questions(text.splitlines(), member.name))
    except (tarfile.TarError, EOFError, UnicodeDecodeError) as error:
        raise ExegeteError(f"{archive} is not the archive of bAbI ({error}): get it again") from None
    raise ExegeteError(f"{archive.name} has no {collection}/qa{number}_…_{split}.txt: see that the archive is whole")


def read_questions(lines: Iterable[str], where: str) -> Iterator[BabiQuestion]:
    """The questions of a file, each with all statements of its story so far."""
    story, told, places = -1, list[str](), dict[str, int]()  # of statements, by the number in the file
    for line, text in enumerate(lines, start=1):
        number, _, said = text.strip().partition(" ")
        if number == "1":
            story, told, places = story + 1, [], {}
        asked, *answer = said.split("\t")
        if not answer:
            places[number] = len(told)
            told = [*told, said]
            continue
        try:
            label, facts = answer
            supporting = [places[fact] for fact in facts.split()]
        except (ValueError, KeyError):
            raise ExegeteError(
                f"{where}, line {line}: a question is followed by its answer and the numbers of statements, with tabs "
                f"between: {text!r:.60}"
            ) from None
        yield {"passage": told, "question": asked.strip(), "label": label, "supporting": supporting, "story": story}
