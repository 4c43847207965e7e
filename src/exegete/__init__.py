"""Exegete: may I read a model's attention as an explanation of its predictions, and if not, what should I read?

    import exegete as ex

    model = ex.train("bilstm:vectors=glove-50", "rotten_tomatoes")
    result = ex.audit(model, "rotten_tomatoes")
    print(result.answer)

Everything here can be given names, as the command line has them, or objects. Nothing heavy is imported before a call.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exegete.base.arguments import Count, check_arguments

if TYPE_CHECKING:
    import polars as pl

    from exegete import experiments as experiments
    from exegete.answers.explanation import Explanation
    from exegete.answers.question import Of, TextInput
    from exegete.answers.scorecard import Audit
    from exegete.base.progress import Progress
    from exegete.experiments.common.test import Goal
    from exegete.models.huggingface.prompts import Prompt as Prompt
    from exegete.models.own.adapter import OwnModel as OwnModel
    from exegete.models.own.adapter import OwnPooling as OwnPooling
    from exegete.report.word_shares import Words
    from exegete.runs.engine.contract import Engine
    from exegete.runs.objects import AnyModel, AnyTask, Loaded, Trained, Wrapped
    from exegete.runs.results import Result
    from exegete.runs.study_of_objects import StudyOfObjects
    from exegete.tasks.example import Task
    from exegete.training.checkpoint import Checkpoint
    from exegete.training.pretrained import GivenModel
    from exegete.wings.explorer.panel import Panel

    Study = StudyOfObjects

__version__ = "0.2.0"


@check_arguments
def load(
    folder: str | Path, *, prompt: "Prompt | str | Path | None" = None, device: str = "cpu"
) -> "Loaded | GivenModel":
    """A trained model, from its checkpoint folder, or a model of the Hugging Face hub by its name or folder.

    A language model predicts the next word; with a `prompt`, a `Prompt`, a template with {text} or a TOML file, it is
    asked for a class in words.

    `device` is where it computes, also under `score`, `explain` and `words`: cpu, cuda, cuda:N, mps or auto.

    >>> model = load("checkpoints/mine")  # doctest: +SKIP
    >>> model = load("hf:distilbert-base-uncased-finetuned-sst-2-english")  # doctest: +SKIP
    >>> prompt = Prompt("Review: {text}\\nSentiment:", {"bad": [" negative"], "good": [" positive"]})  # doctest: +SKIP
    >>> model = load("hf:HuggingFaceTB/SmolLM2-135M-Instruct", prompt=prompt)  # doctest: +SKIP
    """
    from exegete.base.device import on_device
    from exegete.runs.objects import load_object as run

    with on_device(device):
        return run(folder, prompt)


@check_arguments
def train(
    model: str,
    task: "AnyTask",
    seed: int = 0,
    *,
    training: Mapping[str, Any] | str = "",
    out: str | Path | None = None,
    device: str = "cpu",
    progress: "bool | Progress | None" = None,
) -> "Trained":
    """Train a model by its name with settings; it is kept in memory, or as a checkpoint folder in `out`.

    `training` are settings of the training: {"epochs": 8, "lr": 1e-3}, or "epochs=8,lr=1e-3".

    >>> model = train("bilstm:vectors=glove-50", "rotten_tomatoes")  # doctest: +SKIP
    """
    from exegete.base.device import on_device
    from exegete.runs.objects import train_by_name as run

    written = training if isinstance(training, str) else ",".join(f"{key}={value}" for key, value in training.items())
    with on_device(device), _shown(progress) as tell:
        return run(model, task, seed, written, None if out is None else Path(out), tell)


@check_arguments
def wrap(
    module: Any,
    adapter: Any = None,
    *,
    tokenizer: Any = None,
    task: "AnyTask | None" = None,
    labels: Sequence[str] = (),
    label: str = "",
    truncate: bool = False,
    prompt: "Prompt | None" = None,
) -> "Wrapped | GivenModel":
    """A PyTorch module of your own, with its adapter: a subclass of `OwnPooling` or `OwnModel`, or an object of one.

    A sequence classifier of transformers needs no adapter, only its tokenizer; a pipeline brings both. Its classes are
    those of its config, or `labels`, in the order of its outputs. Of one that gives a text several labels at once,
    `label` is the one that is asked about. With `truncate`, texts are cut to what it reads, as pipelines do it. A
    language model of transformers predicts the next word, or answers `prompt` with a class in words.

    It is asked as it is, in this process. Its words and classes are those that the adapter names, or else those of the
    task that it is asked about; `task` names it beforehand, which `explain` needs.

    >>> model = wrap(module, adapter=MyAdapter)  # doctest: +SKIP
    >>> model = wrap(hf_model, tokenizer=tokenizer)  # doctest: +SKIP
    """
    from exegete.runs.objects import ClassifierOptions
    from exegete.runs.objects import wrap_module as run

    return run(module, adapter, task, ClassifierOptions(tokenizer, labels, label, truncate, prompt))


@check_arguments
def task(
    source: Any = None,
    *,
    text: str = "text",
    label: str = "label",
    question: str | None = None,
    rationale: str | None = None,
    split: str | None = None,
    texts: Sequence[Any] | None = None,
    labels: Sequence[Any] | None = None,
    questions: Sequence[Any] | None = None,
    rationales: Sequence[Any] | None = None,
    name: str = "texts",
    **settings: Any,
) -> "Task":
    """A task: by name, from a pandas or polars frame, or from lists of texts and labels.

    Columns of a frame are named by `text`, `label`, and perhaps `question` (the second text of a pair), `rationale`
    (places of white-space words, or [start, end) spans of them) and `split` (train, dev, test); without one, texts are
    split 80/10/10 by their hash. `settings` are those of `file:` tasks: tokenizer="words", lower=True, min_df=1,
    max_length=…. What was counted in it (classes, texts that two splits share, …) is in its `check`.

    >>> task("rotten_tomatoes")  # doctest: +SKIP
    >>> task(frame, text="review", label="sentiment")  # doctest: +SKIP
    >>> task(frame, text="premise", question="hypothesis")  # doctest: +SKIP
    >>> task(texts=["good", "bad"], labels=[1, 0])  # doctest: +SKIP
    """
    from exegete.tasks.memory import task_from_frame, task_of_lists

    if isinstance(source, str):
        from exegete.base.names import vary
        from exegete.tasks.catalogue import load_task

        return load_task(vary(source, **{key: str(value) for key, value in settings.items()}))
    if source is None:
        return task_of_lists(
            {"text": texts, "label": labels, "question": questions, "rationale": rationales}, name, settings
        )
    columns = {"text": text, "label": label, "question": question, "rationale": rationale, "split": split}
    return task_from_frame(source, columns | {"candidates": None}, name, settings)


@check_arguments
def audit(
    model: "AnyModel | None" = None,
    task: "AnyTask | None" = None,
    *,
    study: str | Path | None = None,
    goal: "Goal" = "faithful",
    quick: bool = False,
    retrain: bool = False,
    scores: Sequence[Any] = (),
    seeds: Sequence[int] | None = None,
    criteria: str | Path | None = None,
    fail_on: Sequence[str] | str = (),
    texts: Count | None = None,
    minutes: float | None = None,
    out: str | Path | None = None,
    engine: "str | Engine | None" = None,
    workers: Count | None = None,
    device: str | None = None,
    progress: "bool | Progress | None" = None,
) -> "Audit":
    """The scorecard of a model on a task, and the answer; with neither, of the default audit, or of a study's file.

    `model` is a name with settings, a checkpoint folder, what `load`, `train` or `wrap` give, or a pipeline of
    transformers; `task` a name, what `task` gives, or, for a model that is trained, a list of texts without labels.
    `scores` are frames or files with scores of another tool (example, token, score), `criteria` a file of
    your own ones. What decides is asked of more texts until it is settled: of `texts` at most, or for so many `minutes`
    (about two for our models, ten for one of Hugging Face); more can be asked later, into the same run. Of a model of
    Hugging Face `retrain` asks what needs further fine-tunings, too. `engine` is what runs it: "local", "ray" or
    "ray:ADDRESS"; `device` is where models compute: "cpu", "cuda", "cuda:N" or "auto"; both are as the study says
    unless given. The run is in `out`, a folder or an address (`s3://bucket/run`), or in a folder of its own under
    `runs`: the same call comes back at once, unless texts are left that may settle what is open. A test of `fail_on`
    that fails, or a grade there (`"grade<partly"`) that may be less, is an error,
    `exegete.answers.gate.AuditFailedError`.

    >>> result = audit("bilstm:vectors=glove-50", "rotten_tomatoes")  # doctest: +SKIP
    >>> print(result.answer)  # doctest: +SKIP
    >>> result.save("scorecard.csv"); result.report("report.html")  # doctest: +SKIP
    """
    from exegete.answers import goals
    from exegete.answers.audit import run_audit
    from exegete.answers.gate import check_gate
    from exegete.answers.request import AuditRequest
    from exegete.runs.objects import model_itself
    from exegete.runs.run import read_manifest

    request = AuditRequest(
        model_itself(model), task, None if study is None else str(study), quick, scores, seeds, retrain,
        goal=goals.goal(goal), criteria=None if criteria is None else Path(criteria),
        fail_on=(fail_on if isinstance(fail_on, str) else ",".join(fail_on)) or None,
        texts=texts, minutes=minutes, out=out, engine=engine, workers=workers, device=device,
    )  # fmt: skip
    with _shown(progress) as tell, run_audit(request, lambda *_: nullcontext(tell)) as (found, run, needed):
        for failure in read_manifest(run).get("failures", ()):
            warnings.warn(failure, stacklevel=3)  # of the call, behind the check of its arguments
    check_gate(found, needed)
    return found


@check_arguments
def score(
    model: "AnyModel",
    task: "AnyTask",
    methods: Sequence[str],
    split: str = "test",
    *,
    texts: Count | None = None,
    device: str | None = None,
    progress: "bool | Progress | None" = None,
) -> "pl.DataFrame":
    """What methods say of every word of a split's texts: example, token, word, method, score.

    A model that is only named is trained or read first, on `device`. `texts` is how many of them, a keyed choice; all,
    unless given.

    >>> score(model, "rotten_tomatoes", ["attention", "lrp"])  # doctest: +SKIP
    """
    from exegete.base.device import on_device
    from exegete.runs.word_scores import word_score_frame

    with on_device(device), _shown(progress) as tell:
        return word_score_frame(model, task, methods, split, texts, tell)


@check_arguments
def words(
    model: "AnyModel",
    task: "AnyTask",
    methods: Sequence[str] = (),
    split: str = "test",
    *,
    texts: Count | None = 500,
    least: Count = 5,
    device: str | None = None,
    progress: "bool | Progress | None" = None,
) -> "Words":
    """The importance of a word averaged over a split's texts, by attention and by other methods, with intervals.

    `texts` is how many of them, a keyed choice; None is all. Words in fewer than `least` texts are left out. The figure
    holds attention against the first of the methods.

    >>> found = words(model, "rotten_tomatoes", ["lrp", "gradient:norm=l2"])  # doctest: +SKIP
    >>> found.frame, found.left_out; found.figure(); found.save("words.csv")  # doctest: +SKIP
    """
    from exegete.answers.pages.words import words_of_task
    from exegete.base.device import on_device

    with on_device(device), _shown(progress) as tell:
        return words_of_task(model, task, methods, split, texts, least, tell)


@check_arguments
def explain(
    model: "AnyModel | None",
    text: "TextInput",
    methods: Sequence[str] | str | None = None,
    target: str | None = None,
    of: "Of" = "logit",
    contrast: str | None = None,
    step: Count = 1,
    *,
    run: str | Path | None = None,
    device: str | None = None,
    progress: "bool | Progress | None" = None,
) -> "Explanation":
    """What every method says of the prediction for a text, and whether attention may be read here.

    `model` is a checkpoint folder, or what `load`, `train` or `wrap` give; None is the default audit's model, which is
    trained into `runs/audit` if it isn't there. `methods` are names of importances with settings, all of them unless
    given; `target` is the class to explain, the predicted one unless given, and `contrast` one that it is set against:
    why this class and not that? For a model of pairs, `text` is (passage, question). Of a translator, word `step` of
    what it writes is explained, counted from 1, and its words are the classes. `run` is a run folder or address whose
    model and leaderboard are taken.

    >>> found = explain(None, "a charming and often affecting journey")  # doctest: +SKIP
    >>> found["integrated_gradients"].scores, found.reading.sentences  # doctest: +SKIP
    >>> explain(model, "a charming film", ["lrp"], contrast="negative")  # doctest: +SKIP
    >>> found.save("journey.html")  # doctest: +SKIP
    """
    from exegete.answers.explain import explain_prediction as explained
    from exegete.answers.question import Word
    from exegete.base.device import on_device
    from exegete.runs.remote import fetch_run

    known = None if run is None else fetch_run(run)
    with on_device(device), _shown(progress) as tell:
        return explained(_explained(model), text, methods, Word(step, target, contrast), of, known, tell)


@check_arguments
def lab(model: "AnyModel | None", text: "TextInput", *, site: str | None = None, step: Count = 1) -> "Panel":
    """One text, opened at a site (the readout unless one is named): what is predicted under weights of your own?

    `model` is a model, a checkpoint or run folder, or None for the default audit's. A notebook shows its weights, and
    with `live()` the page of `exegete serve` with bars to drag. Of a translator, it predicts word `step` of its output.

    >>> found = lab("checkpoints/mine", "a charming film").weigh({0: [0.2, 0.5, 0.3]})  # doctest: +SKIP
    >>> found.probabilities, found.tvd, found.jsd  # doctest: +SKIP
    >>> lab("checkpoints/mine", "a charming film").live()  # doctest: +SKIP
    """
    from exegete.wings.explorer.panel import panel

    return panel(_explained(model), text, site, step)


@check_arguments
def ask(
    experiment: Any,
    model: "AnyModel",
    task: "AnyTask",
    *,
    texts: Count | None = None,
    split: str = "test",
    seed: int = 0,
    out: str | Path | None = None,
    engine: "str | Engine | None" = None,
    workers: Count = 1,
    device: str | None = None,
    progress: "bool | Progress | None" = None,
) -> "Result":
    """Ask one experiment about a model and a task, on some of its texts: rows, summary and figures.

    It is asked in this process unless `workers` says how many to start.

    >>> found = ask("permutation", model, "rotten_tomatoes", texts=200)  # doctest: +SKIP
    >>> found.summary; found.figure("tvd")  # doctest: +SKIP
    """
    from exegete.runs.study_of_objects import StudyOfObjects, entry_of

    entry = entry_of(experiment) | ({} if texts is None else {"texts": texts})
    study = StudyOfObjects([task], [model], [entry], (seed,), split, name=entry["name"])
    with _shown(progress) as tell:
        return study.run(out, engine=engine, workers=workers, device=device, progress=tell)[entry["name"]]


@check_arguments
def write_report(audit: "Audit", path: str | Path) -> Path:
    """An audit's report: one HTML file that works offline."""
    from exegete.answers.pages.build import write_run_report as write
    from exegete.base.errors import ExegeteError

    if audit.run is None:
        raise ExegeteError("this audit was judged without a run folder: there is nothing to report on")
    return write(audit.run, Path(path), audit)


@check_arguments
def tokens(task: "AnyTask", splits: Sequence[str] = ("test",)) -> "pl.DataFrame":
    """The words of a task's texts, one row each: split, example, token, word; add a column `score`, and
    `given:file=…` judges it.

    >>> tokens("rotten_tomatoes").write_parquet("scores.parquet")  # doctest: +SKIP
    """
    from exegete.importance.given import tokens_of
    from exegete.runs.objects import task_itself

    return tokens_of(task_itself(task), splits)


def _explained(model: "AnyModel | None") -> "Checkpoint | str | Path | None":
    """What explains one prediction; a folder tells which run vouches for it."""
    from exegete.runs.objects import Loaded, Wrapped, check_model, checkpoint_of
    from exegete.runs.remote import fetch_run
    from exegete.runs.store import is_address

    if model is None:
        return None
    check_model(model)
    if isinstance(model, Loaded):
        return model.folder
    if is_address(model):
        return fetch_run(model)
    return checkpoint_of(model) if isinstance(model, Wrapped) else model


@contextmanager
def _shown(progress: "bool | Progress | None") -> "Iterator[Progress]":
    """Who is told how far the work is: a line every half minute, unless bars (True), nobody or the caller's own are."""
    from exegete.base.errors import UsageError
    from exegete.base.heartbeat import Heartbeat
    from exegete.report.terminal import ProgressBars

    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise UsageError(f"progress is True, False or a function (label, done, total), not {progress!r:.40}")
    if progress is None:
        with Heartbeat() as beat:
            yield beat
    else:
        with ProgressBars(quiet=progress is not True) as bars:
            yield bars if isinstance(progress, bool) else progress


def __getattr__(name: str) -> Any:
    """What is imported only when it is asked for: torch is heavy."""
    import importlib

    if name in ("OwnModel", "OwnPooling"):
        return getattr(importlib.import_module("exegete.models.own"), name)
    if name == "Prompt":
        return importlib.import_module("exegete.models.huggingface.prompts").Prompt
    if name == "Study":
        return importlib.import_module("exegete.runs.study_of_objects").StudyOfObjects
    if name == "experiments":
        return importlib.import_module("exegete.experiments")
    raise AttributeError(f"module 'exegete' has no attribute '{name}'")
