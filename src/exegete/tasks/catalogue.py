"""The catalogue of tasks: `exegete ls tasks`, and from a name to a task."""

from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from exegete.base.catalogue import Catalogue, Entry
from exegete.base.errors import ExegeteError, UsageError
from exegete.base.names import Spec, parse, validate
from exegete.tasks import folder, reviews
from exegete.tasks.example import Kind, Task
from exegete.tasks.files import FileTask
from exegete.tasks.hub import HubTask
from exegete.tasks.parallel import HubTranslation, Multi30kTask, ParallelTask
from exegete.tasks.prepare import SourceRow, prepare
from exegete.tasks.settings import PairSource, Source, TaskSettings
from exegete.tasks.splits import by_place, place
from exegete.tasks.toy_translation import ToyTranslationTask
from exegete.tasks.translation import TranslationSettings


class NamedTask(Source):
    """A data set of the catalogue: at EXEGETE_DATA, else in an installed wheel."""

    def task(self, spec: Spec) -> Task:
        """Read it from the first place that has it, or say how to get it."""
        return _read(spec, self, "all")


class ImdbTask(NamedTask):
    """IMDB, whole or as Jain & Wallace used it."""

    subset: Literal["all", "jw"] = "all"

    def task(self, spec: Spec) -> Task:
        """Read the subset asked for."""
        return _read(spec, self, self.subset)


class NewsgroupsTask(NamedTask):
    """20 Newsgroups, cut by date as it is passed on, or its halves together and cut by hash as Jain & Wallace did."""

    halves: Literal["apart", "together"] = "apart"

    def task(self, spec: Spec) -> Task:
        """Read it with the splits asked for."""
        return _read(spec, self, "all", anew=self.halves == "together")


TASKS = Catalogue(
    "task",
    {
        "rotten_tomatoes": Entry(NamedTask, "8,530 sentences of film reviews, negative or positive (Pang & Lee 2005)"),
        "imdb": Entry(
            ImdbTask,
            "50,000 film reviews (Maas et al. 2011; 25,000 in the wheel); subset=jw: as Jain & Wallace",
        ),
        "sst": Entry(NamedTask, "9,613 sentences of film reviews, negative or positive (Socher et al. 2013)"),
        "sst_jw": Entry(NamedTask, "the sentences of sst as Jain & Wallace (2019) cleaned them"),
        "sst5": Entry(NamedTask, "11,855 sentences of film reviews, five classes (Socher et al. 2013)"),
        "20news_sports": Entry(NewsgroupsTask, "1,988 newsgroup messages, baseball or hockey (Lang 1995)"),
        "agnews": Entry(NamedTask, "16,129 news texts, world or business (Zhang et al. 2015)"),
        "agnews4": Entry(NamedTask, "32,463 news texts, four classes (Zhang et al. 2015)"),
        "eraser_movies": Entry(NamedTask, "1,999 long film reviews with rationales (DeYoung et al. 2020)"),
        "snli": Entry(
            "exegete.tasks.snli:SnliTask",
            "pairs of sentences: entailment, neutral or contradiction (Bowman et al. 2015)",
        ),
        "babi": Entry(
            "exegete.tasks.babi:BabiTask",
            "questions over stories that need 1, 2 or 3 known sentences: task=1, 2 or 3 (Weston et al. 2015)",
        ),
        "stories": Entry(
            "exegete.tasks.stories:StoriesTask",
            "questions over generated stories that need facts=1, 2 or 3 known sentences; any size",
        ),
        "multi30k": Entry(Multi30kTask, "31,014 captions of photographs, English to German (Elliott et al. 2016)"),
        "toy_translation": Entry(
            ToyTranslationTask, "generated sentences into a made-up language, word alignments known; any size"
        ),
    },
)

# What a task is without settings: lower-cased as GloVe is, with the min_df of Jain & Wallace where they have one.
DEFAULTS: dict[str, dict[str, Any]] = {
    "rotten_tomatoes": {"tokenizer": "words", "lower": True, "min_df": 1},
    "imdb": {"tokenizer": "words", "lower": True, "min_df": 10},
    "sst": {"tokenizer": "whitespace", "lower": True, "min_df": 1},
    "sst_jw": {"tokenizer": "whitespace", "lower": True, "min_df": 1},
    "sst5": {"tokenizer": "whitespace", "lower": True, "min_df": 1},
    "20news_sports": {"tokenizer": "words", "lower": True, "min_df": 2},
    "agnews": {"tokenizer": "words", "lower": True, "min_df": 5},
    "agnews4": {"tokenizer": "words", "lower": True, "min_df": 5},
    "eraser_movies": {"tokenizer": "whitespace", "lower": True, "min_df": 1},
    "snli": {"tokenizer": "words", "lower": True, "min_df": 3},
    "babi": {"tokenizer": "whitespace", "lower": False, "min_df": 1},
    "stories": {"tokenizer": "whitespace", "lower": False, "min_df": 1},
    "file": {"tokenizer": "words", "lower": True, "min_df": 1},
    "hf": {"tokenizer": "words", "lower": True, "min_df": 1},
}


def load_task(text: str) -> Task:
    """The task that `name:key=value,…` asks for: of the catalogue, `file:PATH`, `hf:owner/name` or `parallel:PATH`."""
    spec = parse(text)
    task: Task = check_task(text).task(spec)
    return task


def verbatim_spec(text: str, tokenizer: str = "whitespace", lower: bool = False) -> str:
    """A task's name, with its texts as people wrote them, cut at white space, unless the name says otherwise.

    For models that were trained on such texts: lower-cased words without their punctuation are other words to them. One
    that was trained on texts cut in another way is given them so.

    >>> verbatim_spec("imdb"), verbatim_spec("imdb:lower=true"), verbatim_spec("babi")
    ('imdb:tokenizer=whitespace,lower=false', 'imdb:lower=true,tokenizer=whitespace', 'babi')
    >>> verbatim_spec("imdb", "words", True), verbatim_spec("sst", "words", True)
    ('imdb', 'sst:tokenizer=words')
    """
    spec = parse(text)
    defaults = DEFAULTS.get(spec.name.partition(":")[0], {})
    asked = {"tokenizer": tokenizer, "lower": lower}
    missing = {key: str(value).lower() for key, value in asked.items() if defaults.get(key, value) != value}
    return str(Spec(spec.name, spec.settings | {k: v for k, v in missing.items() if k not in spec.settings}))


def check_task(text: str) -> Any:
    """The settings of a task, checked, before anything is read."""
    spec = parse(text)
    prefix = spec.name.partition(":")[0]
    if spec.name not in TASKS and Path(spec.name).is_file():
        raise UsageError(f"'{spec.name}' is a file: write file:{text}")
    source = _source(spec, prefix)
    defaults = DEFAULTS.get(prefix, {}) if issubclass(source, TaskSettings) else {}
    return validate(source, {**defaults, **spec.settings}, f"task '{spec.name}'")


def _source(spec: Spec, prefix: str) -> type[Any]:
    """The settings of a kind of source: by prefix or name; a hub data set with a target is a translation."""
    if prefix == "hf" and spec.settings.keys() & {"source", "target"}:
        return HubTranslation
    by_prefix: dict[str, type[Any]] = {"file": FileTask, "hf": HubTask, "parallel": ParallelTask}
    return by_prefix.get(prefix) or TASKS[spec.name].load()


def files_of(text: str) -> tuple[Path, ...] | None:
    """The files that a task is read from; None where only reading it tells (the hub, a folder, what is generated)."""
    settings, name = check_task(text), parse(text).name
    if isinstance(settings, FileTask):
        files = tuple(settings.files(parse(text)).values())
        return files if all(path.is_file() for path in files) else None
    if not isinstance(settings, NamedTask):
        return None
    return folder.files(name) if folder.has(name) else (reviews.path(),) if name in reviews.SOURCES else None


def _read(spec: Spec, settings: TaskSettings, subset: str, anew: bool = False) -> Task:
    name = spec.name
    if folder.has(name):
        rows: Mapping[str, Iterable[SourceRow]] = folder.read_folder(name, subset)
        rows = _cut_anew(rows, settings.split_seed) if anew else rows
        return prepare(str(spec), rows, settings, f"{folder.VARIABLE}/{name}", folder.folder_notes(name))
    if name not in reviews.SOURCES:
        raise ExegeteError(f"task '{name}' is not here: {_how_to_get(name)}")
    if subset != "all":
        raise ExegeteError(f"task '{spec}' is not in the wheel: {_how_to_get(name)}")
    return prepare(str(spec), reviews.read_reviews(name), settings, reviews.ORIGIN, reviews.review_notes(name))


def _cut_anew(rows: Mapping[str, Iterable[SourceRow]], seed: int) -> dict[str, list[SourceRow]]:
    """The rows of all splits, cut in the proportions of Jain & Wallace: a fifth is test, a fifth of the rest dev."""
    every = [SourceRow(i, row.record) for i, row in enumerate(chain.from_iterable(rows.values()))]
    return by_place(every, lambda row: place(row.record.texts, seed), {"train": 0.64, "dev": 0.16, "test": 0.2})


def _how_to_get(name: str) -> str:
    return (
        f"set {folder.VARIABLE} to a folder that holds {name}/train.jsonl.gz, dev.jsonl.gz and test.jsonl.gz "
        '(a line is {"text": …, "label": …}), or use another copy with file:PATH or hf:owner/name'
    )


def task_kind(text: str) -> Kind:
    """What kind of task a name stands for, before anything is read."""
    settings = check_task(text)
    if isinstance(settings, TranslationSettings):
        return "translation"
    if isinstance(settings, FileTask | HubTask):  # pairs where there is a second column, or a folder of questions
        return (
            "pair" if settings.question or Path(parse(text).name.removeprefix("file:")).is_dir() else "classification"
        )
    return "pair" if isinstance(settings, PairSource) else "classification"
