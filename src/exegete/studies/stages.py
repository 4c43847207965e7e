"""Stages: predict, score and ask, each kept under the content that determines it, shard by shard."""

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import polars as pl
import torch

from exegete.base.names import parse
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.contract import Experiment, Subject
from exegete.importance.catalogue import IMPORTANCES
from exegete.studies.keys import code_hash, key_of
from exegete.studies.scoring import padded, score_frame, shards
from exegete.studies.store import Stage, read_shards, stage, write_shards
from exegete.tasks.example import Example, Task
from exegete.training.checkpoint import Checkpoint
from exegete.training.fit import predict


class Case(NamedTuple):
    """A trained model and the texts that it is asked about."""

    run: Path
    split: str
    task: Task
    checkpoint: Checkpoint
    tell: Callable[[str, int, int], None]

    @property
    def content(self) -> dict[str, str]:
        """What every stage of this case depends on."""
        model = self.checkpoint.model
        means = key_of(
            spec=model.spec, words=model.vocabulary.words, wrap=model.vocabulary.wrap
        )  # softmax has no weights
        return {"data": self.task.hash, "weights": self.checkpoint.weights_hash, "model": means, "split": self.split}

    @property
    def shards(self) -> list[tuple[Example, ...]]:
        """The texts, in the order and the portions in which they are worked on."""
        return shards(self.task.split(self.split))


def predict_stage(case: Case) -> Stage:
    """What the model predicts for every text: class, probabilities, and the words, for whoever reads the run."""
    code = key_of(code=[code_hash(name) for name in ("exegete.training.fit", __name__)])
    at = stage(case.run, "predict", key_of(**case.content, code=code), **case.content)
    if not at.done:
        write_shards(at.folder, case.shards, partial(_predictions, case), partial(case.tell, "predict"))
        at.finish()
    return at


def _predictions(case: Case, examples: tuple[Example, ...]) -> pl.DataFrame:
    labels = case.task.labels
    probabilities = predict(case.checkpoint.model, examples).double().softmax(-1)
    return pl.DataFrame(
        {
            "example": [e.id for e in examples],
            "gold": [labels[e.label] for e in examples],
            "predicted": [labels[c] for c in probabilities.argmax(-1).tolist()],
            "probabilities": probabilities.tolist(),
            "n": [len(e) for e in examples],
            "words": [list(e.words) for e in examples],
        }
    )


def score_stage(case: Case, importance: str) -> Stage:
    """One importance of all words of all texts."""
    built = IMPORTANCES.make(importance)
    facts = case.content | {"importance": importance}
    at = stage(case.run, "score", key_of(**facts, code=[_code_of(built), code_hash(__name__)]), **facts)
    if not at.done:
        score = partial(score_frame, case.checkpoint.model, built)
        write_shards(at.folder, case.shards, score, partial(case.tell, parse(importance).name))
        at.finish()
    return at


def _code_of(built: object) -> str:
    """The code of a thing: its module and what that imports; a plugin file's own source."""
    module = type(built).__module__
    if module.startswith("exegete."):
        return code_hash(module)
    return key_of(source=inspect.getsource(inspect.getmodule(type(built)) or type(built)))


def experiment_stage(case: Case, name: str, built: Experiment) -> Stage:
    """An experiment's rows."""
    predicted = predict_stage(case)
    scored = {importance: score_stage(case, importance) for importance in built.importances}
    facts = case.content | {"experiment": name, "settings": repr(built)}
    scores = {importance: at.folder.name for importance, at in scored.items()}
    code = [code_hash(EXPERIMENTS[name].load().__module__), code_hash(__name__)]
    at = stage(case.run, "experiment", key_of(**facts, scores=scores, code=code), **facts, scores=scores)
    if not at.done:
        numbered = list(enumerate(case.shards))
        write_shards(
            at.folder, numbered, lambda n: built.rows(_subject(case, predicted, scored, *n)), partial(case.tell, name)
        )
        at.finish()
    return at


def _subject(
    case: Case, predicted: Stage, scored: dict[str, Stage], number: int, examples: tuple[Example, ...]
) -> Subject:
    """One shard of texts with what was predicted and scored."""
    every = case.task.split(case.split)
    classes = pl.read_parquet(read_shards(predicted.folder)[number])["predicted"]
    return Subject(
        model=case.checkpoint.model,
        task=case.task,
        examples=examples,
        predicted=torch.tensor([case.task.labels.index(c) for c in classes]),
        scores={
            name: padded(pl.read_parquet(read_shards(at.folder)[number])["scores"].to_list())
            for name, at in scored.items()
        },
        mean_length=sum(map(len, every)) / len(every),
    )
