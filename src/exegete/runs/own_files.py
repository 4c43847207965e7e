"""What a study reads that is the user's own: files that every worker must see."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from exegete.base.names import parse
from exegete.importance.catalogue import IMPORTANCES
from exegete.models.huggingface.prompts import TEXT
from exegete.models.settings import HUB, MODELS
from exegete.runs.study import Study
from exegete.tasks import vectors
from exegete.tasks.catalogue import files_of
from exegete.training.checkpoint import FACTS, WEIGHTS, is_checkpoint


def own_files(study: Study) -> list[Path]:
    """Plugins, texts, checkpoints, modules, vectors and scores; what is installed as a package is not among them."""
    found = {path.expanduser() for path in _named(study)}
    return sorted(path for path in found if path.exists() and "site-packages" not in path.parts)


def _named(study: Study) -> Iterator[Path]:
    yield from (Path(plugin) for plugin in study.plugins if plugin.endswith(".py"))
    for task in study.tasks:
        yield from files_of(task) or ()
    for model in study.models:
        yield from _of_model(model)
    for built in study.built_experiments().values():
        made = (IMPORTANCES.make(name) for name in built.importances)
        yield from (Path(each.file) for each in made if getattr(each, "file", ""))


def _of_model(model: str) -> Iterator[Path]:
    folder = Path(model)
    if is_checkpoint(folder):
        yield from (folder / FACTS, folder / WEIGHTS)
        return
    if model.startswith(HUB):
        name, given = parse(model)
        yield Path(name.removeprefix(HUB))  # a folder, where it is one
        if "prompt" in given and TEXT not in unquote(given["prompt"]):
            yield Path(given["prompt"])
        return
    settings = MODELS.make(model)
    if file := getattr(settings, "file", ""):
        yield Path(file)
    named = getattr(settings, "vectors", None)
    if named is not None and named != "glove-50":
        yield vectors.file_of(named)
