"""Stages: predict, score and ask, each kept under the content that determines it, shard by shard."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import polars as pl
import torch

from exegete.base.device import elsewhere
from exegete.base.memo import key_of
from exegete.base.names import parse
from exegete.base.parquet import read_parquet, write_parquet
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.common.contract import Experiment, Growing, Subject, builds, text_limit
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import Importance, refusal
from exegete.importance.given import absence, for_texts
from exegete.models.capabilities import Stepwise, Writing
from exegete.models.contract import Predictor
from exegete.runs.keys import code_hash, code_of
from exegete.runs.shards import Portions, StepShards, cut_shards, milliseconds, pad_rows, score_frames
from exegete.runs.store import Stage, has_shards, part, stage, write_shards
from exegete.tasks.example import Example, Task
from exegete.tasks.selection import choose_texts, grows
from exegete.training.checkpoint import Checkpoint
from exegete.training.evaluation import predict
from exegete.training.recipe import Companion

MOST = 100  # classes whose probabilities are all kept


class Case(NamedTuple):
    """A trained model and the texts that it is asked about."""

    run: Path
    split: str
    task: Task
    checkpoint: Checkpoint
    tell: Callable[[str, int, int], None]
    texts: int | None = None  # how many of the split's texts; all, unless given
    growing: bool = False  # whether more of them may be asked later, and what is known of these then stays
    companions: Mapping[str, Companion] = MappingProxyType({})  # models trained beside it, by name
    halves: bool = False  # whether the texts of a shard are worked on in two halves, which take less memory

    @property
    def model(self) -> Predictor:
        """The model, where a prediction is a class."""
        return self.checkpoint.classifier

    @property
    def content(self) -> dict[str, str]:
        """What every stage of this case depends on."""
        texts = {"order": "keyed"} if self.growing else {} if self.texts is None else {"texts": str(self.texts)}
        split = {"split": self.split} | texts
        model = self.checkpoint.model
        return {"data": self.task.hash, "model": model_key(model)} | split | elsewhere(model.device)

    @property
    def examples(self) -> Sequence[Example]:
        """The texts."""
        return choose_texts(self.task.split(self.split), self.texts)

    @property
    def shards(self) -> Portions:
        """The texts, in the order and the portions in which they are worked on."""
        return shards_of(self.task.split(self.split), self.texts, self.growing)

    def asked_by(self, experiment: Experiment, split: str) -> "Case":
        """The case with the texts of a split that an experiment asks about."""
        growing = is_growing(experiment, self.task, split)
        return self._replace(split=split, texts=text_limit(experiment, split), growing=growing)

    def stage(self, kind: str, key: str, **facts: Any) -> Stage:
        """A stage of this run; one of texts of which more may be asked is complete when all of these are there."""
        return stage(self.run, kind, key, len(self.shards) if self.growing else None, **facts)

    def portions(self, texts: int) -> list[slice]:
        """What is worked on together of the texts of a shard: all, or either half."""
        middle = (texts + 1) // 2
        return [slice(0, middle), slice(middle, texts)] if self.halves and texts > 1 else [slice(0, texts)]


def shards_of(examples: Sequence[Example], texts: int | None, growing: bool) -> Portions:
    """So many texts of a split, in the order and the portions in which they are worked on."""
    return StepShards(examples, texts) if growing else cut_shards(choose_texts(examples, texts), texts)


def is_growing(experiment: Experiment, task: Task, split: str) -> bool:
    """Whether what an experiment says of these texts stays when more of them are asked."""
    return isinstance(experiment, Growing) and grows(task.splits.get(split, ()), text_limit(experiment, split))


def predict_stage(case: Case) -> Stage:
    """What the model predicts for every text: class, probabilities, and the words, for whoever reads the run."""
    code = key_of(code=[code_hash(name) for name in ("exegete.training.evaluation", __name__)])
    at = case.stage("predict", key_of(**case.content, code=code), **case.content)
    if at.done:
        return at
    with at.held():
        if not at.done:
            write_shards(at.folder, case.shards, partial(_predictions, case), partial(case.tell, "predict"))
            at.finish()
    return at


def _predictions(case: Case, examples: tuple[Example, ...]) -> pl.DataFrame:
    labels = case.task.labels
    probabilities = predict(case.model, examples).double().softmax(-1)
    return pl.DataFrame(
        {
            "example": [e.id for e in examples],
            "gold": pl.Series([case.task.gold(e) for e in examples], dtype=pl.String),
            "predicted": [labels[c] for c in probabilities.argmax(-1).tolist()],
            "probabilities": probabilities.tolist() if len(labels) <= MOST else [None] * len(examples),
            "n": [len(e) for e in examples],
            "words": [list(e.words) for e in examples],
        }
    )


def score_stages(case: Case, importances: Sequence[str], only: int | None = None) -> dict[str, Stage]:
    """The importances of all words of all texts, or of one shard, each in a stage of its own, side by side."""
    built = {name: IMPORTANCES.make(name) for name in importances}
    at = {name: _score_stage(case, name, importance) for name, importance in built.items()}
    todo = {name: each for name, each in at.items() if not each.done}
    built |= {name: for_texts(built[name], case.task, case.split, case.examples) for name in todo}
    every = case.shards if todo else ()
    for number in range(len(every)):
        if only in (None, number):
            _score_shard(case, todo, built, number, every[number])
            case.tell(_short(" ".join(parse(name).name for name in todo)), number + 1, len(every))
    for name, each in todo.items():
        if has_shards(each.folder, len(every)):
            with each.held():
                if not each.done:
                    each.finish(ms=_milliseconds(case, name, built[name]), **_told(each.folder))
    return at


def _score_shard(
    case: Case, todo: Mapping[str, Stage], built: Mapping[str, Importance], number: int, examples: tuple[Example, ...]
) -> None:
    """What importances say of a shard of texts, and has not been written yet."""
    with ExitStack() as held:
        for each in sorted(todo.values(), key=lambda each: each.folder):  # one order for all: no circle of waiting
            if not part(each.folder, number).is_file():
                held.enter_context(each.held(number))
        missing = [name for name, each in todo.items() if not part(each.folder, number).is_file()]
        wanted, some = {name: built[name] for name in missing}, case.portions(len(examples))
        found = [score_frames(case.model, wanted, examples[portion]) for portion in some]
        for name in missing:
            write_parquet(part(todo[name].folder, number), pl.concat([frames[name] for frames in found]))


_timed: dict[tuple[str, str], float] = {}


def _milliseconds(case: Case, name: str, importance: Importance) -> float:
    """What an importance takes per text: timed once in a process, for a model takes as long on any of its texts."""
    at = (case.content["model"], name)
    if at not in _timed:
        _timed[at] = milliseconds(case.model, importance, case.examples)
    return _timed[at]


def _short(names: str) -> str:
    return names if len(names) <= 40 else f"{len(names.split())} importances"


def _score_stage(case: Case, name: str, importance: Importance) -> Stage:
    facts = case.content | {"importance": name}
    return case.stage("score", key_of(**facts, code=[code_of(importance), code_hash(__name__)]), **facts)


def _told(folder: Path) -> dict[str, float | int | None]:
    """What the scores of a stage tell of themselves: passes, errors, and texts of which no word got any score."""
    empty = pl.col("scores").list.eval(pl.element() == 0).list.all() & (pl.col("scores").list.len() > 0)
    parts = sorted(folder.glob("part-*.parquet"))
    told = (read_parquet(part).select("forward", "backward", "error", empty.alias("empty")) for part in parts)
    found = pl.concat(told).select(
        pl.len().alias("n"),
        pl.col("forward", "backward").mean(),
        pl.col("error").mean().alias("mean_error"),
        pl.col("error").max().alias("max_error"),
        pl.col("empty").sum().alias("all_zero"),
    )
    return found.row(0, named=True)


def experiment_stage(
    case: Case, name: str, built: Experiment, only: int | None = None
) -> tuple[Stage, dict[str, Stage], dict[str, str]]:
    """An experiment's rows, the scores they rest on, and which importances the model doesn't allow, and why.

    With `only`, of one shard: the stage is complete when every shard was asked for.
    """
    predicted = None if isinstance(case.checkpoint.model, Writing) else predict_stage(case)
    refused = refusals(case.checkpoint.model, built.importances) | _absent(case, built.importances)
    scored = score_stages(case, [wanted for wanted in built.importances if wanted not in refused], only)
    facts = case.content | {"experiment": name, "settings": repr(_of_a_text(case, built))}
    scores = {importance: at.folder.name for importance, at in scored.items()}
    own = [code_of(IMPORTANCES.make(method)) for method in builds(built)]  # by name: no import shows them
    code = [code_hash(EXPERIMENTS[name].load().__module__), code_hash(__name__), *own]
    beside = {companion: _what(found) for companion, found in case.companions.items()}
    key = key_of(**facts, scores=scores, code=code, **({"companions": beside} if beside else {}))
    at = case.stage("experiment", key, **facts, scores=scores)
    if not at.done:
        every = case.shards
        known = KnownTexts(predicted, scored, refused, every)
        rows = partial(_rows, case, known, built)
        if write_shards(at.folder, range(len(every)), rows, partial(case.tell, name), only):
            at.finish()
    return at, scored, refused


def _of_a_text(case: Case, built: Experiment) -> Experiment:
    """The settings that determine what an experiment says of a text: of one that grows, not how many there are."""
    return built.of_a_text() if case.growing and isinstance(built, Growing) else built


def _rows(case: Case, known: "KnownTexts", built: Experiment, number: int) -> pl.DataFrame:
    """What an experiment finds in a shard; of halves, in the order that rows of all texts would have."""
    examples = known.shards[number]
    found = [built.rows(_subject(case, known, number, examples, some)) for some in case.portions(len(examples))]
    by_example = len(found) > 1 and all("example" in rows.columns and rows["example"].is_sorted() for rows in found)
    return pl.concat(found).sort("example", maintain_order=True) if by_example else pl.concat(found)


def _what(companion: Companion) -> list[str]:
    """Everything that a companion's predictions depend on."""
    at = [] if companion.intervene is None else [repr(companion.intervene), code_of(companion.intervene)]
    return [model_key(companion.model), *at]


def model_key(model: Predictor) -> str:
    """What a model predicts by: weights, reader, name, and its code, which whoever asks by contract never imports."""
    written_by = [code_of(model.writer)] if isinstance(model, Stepwise) else []
    return key_of(is_=model.fingerprint(), code=[code_of(model), *written_by])


def refusals(model: Predictor, importances: Sequence[str]) -> dict[str, str]:
    """The importances that are not for this model, each with the reason."""
    reasons = {name: refusal(IMPORTANCES.make(name), model) for name in importances}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _absent(case: Case, importances: Sequence[str]) -> dict[str, str]:
    """The importances that have nothing to say of a split, each with the reason."""
    reasons = {name: absence(IMPORTANCES.make(name), case.task, case.split) for name in importances}
    return {name: reason for name, reason in reasons.items() if reason is not None}


class KnownTexts(NamedTuple):
    """What is known of a case's texts before an experiment asks."""

    predicted: Stage | None  # None: whole translations are asked about
    scored: dict[str, Stage]
    refused: dict[str, str]
    shards: Portions


def _subject(case: Case, known: KnownTexts, number: int, examples: tuple[Example, ...], some: slice) -> Subject:
    """Some texts of a shard with what was predicted and scored."""
    frames = {name: read_parquet(part(at.folder, number))[some] for name, at in known.scored.items()}
    return Subject(
        model=case.checkpoint.model,
        task=case.task,
        examples=examples[some],
        predicted=_classes(case, known, number)[some],
        scores={name: pad_rows(frame["scores"].to_list()) for name, frame in frames.items()},
        mean_length=known.shards.mean_length,
        signed={name: bool(frame["signed"][0]) for name, frame in frames.items()},
        refused=known.refused,
        split=case.split,
        companions=case.companions,
    )


def _classes(case: Case, known: KnownTexts, number: int) -> torch.Tensor:
    """What was predicted for a shard of texts, [example]; nothing of whole translations."""
    if known.predicted is None:
        return torch.empty(0, dtype=torch.int64)
    place = {label: i for i, label in enumerate(case.task.labels)}
    return torch.tensor([place[c] for c in read_parquet(part(known.predicted.folder, number))["predicted"]])
