"""Labels: what a reader sees in place of a specification, the same in every figure and table."""

from collections.abc import Iterable, Sequence
from pathlib import PurePath

import polars as pl

from exegete.base.names import Spec, parse
from exegete.importance.catalogue import IMPORTANCES
from exegete.measures.catalogue import MEASURES
from exegete.models.huggingface.prompts import name_with_template
from exegete.models.settings import HUB, MODELS, ClassifierSettings

SIZES = {"all": "all words", "average": "mean length", "nonzeros": "support"}
FOLDERS = 2  # parts of a path that a sentence has room for
_DIALS = {"lam": "λ", "alpha": "α"}  # settings of a projection, shown in its brackets
_SHOWN = {"architecture", "attention", "projection", *_DIALS}  # settings that every label shows anyway


def model_label(spec: str) -> str:
    """What one model does with its scores; a model that isn't ours keeps its name.

    >>> model_label("bilstm:attention=tanh,projection=sparsegen,lam=0.5,vectors=glove")
    'tanh, sparsegen(λ=0.5)'
    >>> model_label("hf:distilbert-base-uncased")
    'hf:distilbert-base-uncased'
    >>> model_label("ladder:share=0.5,vectors=glove-50")
    'ladder, share=0.5'
    >>> model_label("translator:architecture=transformer,hidden=128"), model_label("translator")
    ('transformer, softmax', 'bahdanau, softmax')
    """
    name, settings = parse(spec)
    if name not in MODELS or name.startswith(HUB):
        return name_with_template(spec)
    if name == "own":
        return PurePath(settings.get("file", "own module")).name
    if name == "ladder":  # its scores are gates, and what tells it from others is how far they decide
        return f"ladder, share={_setting(settings, 'share', name)}"
    if settings.get("pool") in ("first", "mean"):  # no attention pools: its layers are all alike
        return "layers, softmax"
    if settings.get("attention") == "none":
        return "no attention"
    dials = ", ".join(f"{sign}={settings[key]}" for key, sign in _DIALS.items() if key in settings)
    projection = _setting(settings, "projection", name)
    transformer = settings.get("architecture") == "transformer"
    attention = "transformer" if transformer else _setting(settings, "attention", name)
    return f"{attention}, {projection}{f'({dials})' if dials else ''}"


def model_labels(specs: Iterable[str]) -> dict[str, str]:
    """A label for every specification, as short as keeps different models apart.

    >>> model_labels(["bilstm:projection=softmax", "average:projection=softmax"])
    {'bilstm:projection=softmax': 'bilstm: tanh, softmax', 'average:projection=softmax': 'average: tanh, softmax'}
    >>> list(model_labels(["bilstm:hidden=64", "bilstm"]).values())
    ['tanh, softmax, hidden=64', 'tanh, softmax, hidden=128']
    """
    parsed = {spec: parse(spec) for spec in dict.fromkeys(specs)}
    ours = {spec: read for spec, read in parsed.items() if read.name in MODELS and not read.name.startswith(HUB)}
    named = len({read.name for read in ours.values()}) > 1
    labels = {}
    for spec, read in parsed.items():
        alike = [other for other in ours.values() if other.name == read.name]  # kinds are told apart by their names
        more = [f"{key}={_setting(read.settings, key, read.name)}" for key in _varying(alike)]
        more = [setting for setting in more if setting not in model_label(spec)]
        said = ", ".join([model_label(spec), *more])
        is_said = not (named and spec in ours) or said.startswith(read.name)
        labels[spec] = said if is_said else f"{read.name}: {said}"
    return labels


def _varying(alike: Sequence[Spec]) -> list[str]:
    """Settings, beyond those that every label shows, in which models of one kind differ, in the order of writing."""
    keys = dict.fromkeys(key for read in alike for key in read.settings if key not in _SHOWN)
    return [key for key in keys if len({_setting(read.settings, key, read.name) for read in alike}) > 1]


def _setting(settings: dict[str, str], key: str, model: str = "") -> str:
    """A setting as written, or what holds without it; a setting that a kind of model does not have is a dash."""
    if key in settings:
        return settings[key]
    fields = (MODELS[model].load() if model else ClassifierSettings).model_fields
    if key not in fields:
        return "–"
    default = fields[key].default
    return "none" if default is None else str(default).lower() if isinstance(default, bool) else str(default)


def importance_labels(names: Iterable[str]) -> dict[str, str]:
    """A label for every importance, with settings only where two would be called the same.

    >>> importance_labels(["leave_one_out:of=logit", "lrp"])
    {'leave_one_out:of=logit': 'leave-one-out (signed)', 'lrp': 'LRP'}
    """
    every = list(dict.fromkeys(names))
    short = {name: method_label(name) for name in every}
    said = list(short.values())
    return {name: label if said.count(label) == 1 else importance_label(name) for name, label in short.items()}


def importance_label(name: str) -> str:
    """An importance in words.

    >>> importance_label("leave_one_out")
    'leave-one-out (TVD)'
    >>> importance_label("integrated_gradients:steps=50")
    'integrated gradients (steps=50)'
    """
    read, settings = parse(name)
    if read == "given" and "file" in settings:  # as its file calls it, or else as the file is called
        return settings.get("name") or PurePath(settings["file"]).stem
    kind = IMPORTANCES[read].load() if read in IMPORTANCES else None
    words = getattr(kind, "label", "") or read.replace("_x_", " × ").replace("_", " ")
    written = [f"{key}={value}" for key, value in settings.items()]
    if kinds := getattr(kind, "kinds", {}):  # one name for what are two importances to people
        of = settings.get("of", getattr(kind, "of", ""))
        written = [kinds.get(of, f"of={of}"), *(said for said in written if not said.startswith("of="))]
    return f"{words} ({', '.join(written)})" if written else words


def method_label(name: str) -> str:
    """An importance in words, whatever its settings, but for one that makes it another importance.

    >>> [method_label(name) for name in ("leave_one_out:of=logit", "given:file=a/shap.csv", "given:file=x,name=b")]
    ['leave-one-out (signed)', 'shap', 'b']
    """
    read, settings = parse(name)
    if read == "given":
        return importance_label(name)
    kinds = getattr(IMPORTANCES[read].load(), "kinds", {}) if read in IMPORTANCES else {}
    return importance_label(str(Spec(read, {key: settings[key] for key in ("of",) if kinds and key in settings})))


def pair_label(first: str, second: str) -> str:
    """Two importances that are compared.

    >>> pair_label("attention", "leave_one_out")
    'attention – leave-one-out (TVD)'
    """
    return f"{importance_label(first)} – {importance_label(second)}"


def measure_label(measure: str) -> str:
    """A measure as papers print it; one that has no such sign keeps its name."""
    declared = MEASURES[measure].label if measure in MEASURES else ""
    return declared or measure.replace("_", " ")


def size_label(k: str) -> str:
    """A rule for k as an axis prints it."""
    return SIZES.get(k, k)


def task_labels(tasks: Iterable[str]) -> dict[str, str]:
    """A short label for every task: its name, a file's own name, and settings only where two would be called the same.

    >>> task_labels(["imdb:subset=jw", "rotten_tomatoes"])
    {'imdb:subset=jw': 'imdb', 'rotten_tomatoes': 'rotten tomatoes'}
    >>> task_labels(["sst:min_df=2", "sst:min_df=2,planted=token"])
    {'sst:min_df=2': 'sst', 'sst:min_df=2,planted=token': 'sst (planted=token)'}
    """
    every = list(dict.fromkeys(tasks))
    groups: dict[str, list[str]] = {}
    for task in every:
        groups.setdefault(_task_name(parse(task).name), []).append(task)
    return {task: _told_apart(name, task, groups[name]) for name in groups for task in groups[name]}


def shorten_paths(said: str, specs: Iterable[str]) -> str:
    """A sentence in which the files and folders that specifications name are called by their own names.

    >>> shorten_paths("m5 on file:/data/of/2026/reviews.csv:text=it", ["file:/data/of/2026/reviews.csv:text=it", "m5"])
    'm5 on file:…/reviews.csv:text=it'
    """
    paths = {path for spec in specs for path in _paths(spec)}
    names = [PurePath(path).name for path in paths]
    for path in sorted(paths, key=len, reverse=True):
        name = PurePath(path).name
        if names.count(name) == 1:  # else only the folders tell them apart
            said = said.replace(path, f"…/{name}")
    return said


def _paths(spec: str) -> list[str]:
    """What a specification names that lies in folders within folders."""
    name, settings = parse(spec)
    home = "" if name.startswith("hf:") else name.partition(":")[2] or name
    paths = [value for key, value in settings.items() if key != "labels"]  # names of classes, between slashes
    return [path for path in (home, *paths) if len(PurePath(path).parts) > FOLDERS]


def _told_apart(name: str, task: str, namesakes: list[str]) -> str:
    """A task's name, with the settings that not all of its namesakes share."""
    shared = set.intersection(*(set(parse(other).settings.items()) for other in namesakes))
    own = ", ".join(f"{key}={value}" for key, value in parse(task).settings.items() if (key, value) not in shared)
    return f"{name} ({own})" if own else name


def _task_name(name: str) -> str:
    return name.rpartition("/")[2] if ":" in name else name.replace("_", " ")


def name_columns(frame: pl.DataFrame) -> pl.DataFrame:
    """Task and model as people say them."""
    models, tasks = model_labels(frame["model"]), task_labels(frame["task"])
    return frame.with_columns(pl.col("task").replace_strict(tasks), pl.col("model").replace_strict(models))


def with_pair(frame: pl.DataFrame) -> pl.DataFrame:
    """Add `pair`: the two importances in words."""
    pairs = [pair_label(first, second) for first, second in frame.select("first", "second").iter_rows()]
    return frame.with_columns(pl.Series("pair", pairs, dtype=pl.String))
