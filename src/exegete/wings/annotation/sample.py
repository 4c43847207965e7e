"""Annotating: are the words that attention ranks first relevant to the prediction? (Vashishth et al. 2019, section 4.4)

People see test texts with their three highest-weighted words highlighted, and what the model predicts: `count` texts
with the model's own weights and as many others with permuted ones, shuffled together. They don't know which is which:
that is in the key. Everything is keyed by seed and example, so the same draw gives the same items in the same order.

An item with permuted weights is predicted under these. So the paper counts it: of bAbI's texts 98 % are predicted right
with the original weights and 24 % with permuted ones (figure 5). `prediction=original` shows the model's own instead.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, get_args

import torch
from torch import Tensor

from exegete.plugins import (
    MANIFEST as MANIFEST,
)
from exegete.plugins import (
    STUDY,
    Checkpoint,
    Example,
    Intervention,
    Permute,
    Site,
    Task,
    UsageError,
    Writing,
    as_read,
    batches_of_one_length,
    checkpoint_of_run,
    evaluate_checkpoint,
    fitting,
    levels,
    load_checkpoint,
    load_task,
    one_thread,
    sites_of,
    stable_seed,
    uniform,
    unknown,
    weight_of_tokens,
)
from exegete.wings.annotation.sheets import DrawnItems, ItemKey, Secret, SheetCondition, SheetItem

SPLIT = "test"


@dataclass(frozen=True)
class Draw:
    """What is drawn: so many texts per condition, and how many words are highlighted in each."""

    count: int = 100
    top: int = 3
    seed: int = 0
    prediction: SheetCondition = "permuted"  # what an item with permuted weights shows: under them, or the model's own
    labels: Mapping[str, str] = field(default_factory=dict)  # what annotators read in place of a class's name

    def __post_init__(self) -> None:
        for name, value in (("count", self.count), ("top", self.top)):
            if value < 1:
                raise UsageError(f"{name} must be 1 or more, not {value}")
        if self.prediction not in get_args(SheetCondition):
            raise unknown("prediction", self.prediction, get_args(SheetCondition))


def draw_sample(model: Path, task: str | None, asked: Draw) -> DrawnItems:
    """Draw items from the test split of a task for a checkpoint, or for the first model of a run.

    Without a task, its texts are those that the model was trained on.
    """
    if any((model / name).is_file() for name in (MANIFEST, STUDY)):
        model = checkpoint_of_run(model)
    with one_thread():
        checkpoint = load_checkpoint(model)
        loaded = load_task(as_read(task or checkpoint.task, str(model)))
        if loaded.kind == "translation":
            raise UsageError("a translation predicts word after word, and an item shows one prediction: use classes")
        sites_of(checkpoint.model, None)  # refuses a model without attention before anything is computed
        return draw_items(evaluate_checkpoint(fitting(checkpoint, loaded, model), loaded), loaded, asked)


def draw_items(checkpoint: Checkpoint, task: Task, asked: Draw) -> DrawnItems:
    """Draw items for a model that fits its task."""
    for label in asked.labels:
        if label not in task.labels:
            raise unknown(f"class of task '{task.name}'", label, task.labels)
    picked, left_out = _picked(task, asked)
    views = _views(checkpoint, picked, asked)
    shuffle = uniform(stable_seed("annotate order", asked.seed), torch.tensor([e.id for e in picked])).argsort()
    shuffled = [(picked[place], views[place]) for place in shuffle.tolist()]
    secrets = [_secret(example, view, task, asked) for example, view in shuffled]
    facts = _facts(checkpoint, task, asked)
    # With a letter first, so that no spreadsheet takes the name of an item for a number or a date.
    identity = f"k{_fingerprint([facts, secrets])}"
    names = [f"{identity}-{number:03d}" for number in range(1, len(secrets) + 1)]
    called = asked.labels
    items = tuple(
        SheetItem(name, example.texts, example.explained, view.marked, called.get(secret.predicted, secret.predicted))
        for name, (example, view), secret in zip(names, shuffled, secrets, strict=True)
    )
    key = ItemKey(identity, facts, dict(zip(names, secrets, strict=True)))
    notes = [*_notes(views, left_out, len(task.split(SPLIT)), asked), *_unnamed(task.labels, asked)]
    return DrawnItems(items, key, tuple(notes))


def _fingerprint(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:7]


def _facts(checkpoint: Checkpoint, task: Task, asked: Draw) -> dict[str, Any]:
    accuracy = checkpoint.metrics.get(SPLIT, {}).get("accuracy")
    model = {"model": checkpoint.model.spec, "weights": checkpoint.weights_hash, "test_accuracy": accuracy}
    return {"task": task.name, "data": task.hash, **model, **asdict(asked)}


def _picked(task: Task, asked: Draw) -> tuple[list[Example], int]:
    """Two different examples for every one that is asked for, half of them for each condition; how many are short."""
    examples = task.split(SPLIT)
    long_enough = [e for e in examples if len(e.words) >= asked.top]
    if 2 * asked.count > len(long_enough):
        raise UsageError(
            f"{2 * asked.count:,} different texts are asked for ({asked.count:,} per condition), and the {SPLIT} split "
            f"of task '{task.name}' has {len(long_enough):,} with at least {asked.top} words: "
            f"{_possible(examples, len(long_enough), asked)}"
        )
    noise = uniform(stable_seed("annotate", asked.seed), torch.tensor([e.id for e in long_enough]))
    picked = [long_enough[place] for place in noise.argsort()[: 2 * asked.count].tolist()]
    return picked, len(examples) - len(long_enough)


def _possible(examples: Sequence[Example], long_enough: int, asked: Draw) -> str:
    """What could be asked for instead: fewer texts, or fewer words of each."""
    if long_enough >= 2:
        return f"use --count {long_enough // 2} or less"
    lengths = sorted((len(e.words) for e in examples if len(e.words)), reverse=True)
    if len(lengths) < 2:
        return "two texts are needed at least, choose a task that has them"
    count = min(asked.count, len(lengths) // 2)
    fewer = f" and --count {count}" if count < asked.count else ""
    return f"use --top {lengths[2 * count - 1]}{fewer} or less"


class _View(NamedTuple):
    """An example under the weights of its condition."""

    condition: SheetCondition
    marked: tuple[int, ...]
    unpermuted: tuple[int, ...]  # what the model's own weights would highlight
    predicted: int
    original: int


def _views(checkpoint: Checkpoint, picked: Sequence[Example], asked: Draw) -> list[_View]:
    """The first half with the model's own weights, the second with permuted ones."""
    own = _read(checkpoint, picked, None)
    others = picked[asked.count :]
    permuted = _read(checkpoint, others, _permuting(sites_of(checkpoint.model, None), asked.seed))
    marks = [_top(weights, example, asked) for example, (weights, _) in zip(picked, own, strict=True)]
    views = [
        _View("original", marks[place], marks[place], label, label)
        for place, (_, label) in enumerate(own[: asked.count])
    ]
    for place, (weights, label) in enumerate(permuted):
        original = own[asked.count + place][1]
        mark = _top(weights, others[place], asked)
        views.append(_View("permuted", mark, marks[asked.count + place], label, original))
    return views


def _permuting(sites: Sequence[str], seed: int) -> Intervention:
    """Permute where weights are read, and nowhere else."""
    permute = Permute(seed=stable_seed("annotate", seed))

    def rewritten(site: Site) -> Tensor:
        return permute(site) if site.name in sites else site.weights

    return rewritten


def _read(
    checkpoint: Checkpoint, examples: Sequence[Example], intervene: Intervention | None
) -> list[tuple[Tensor, int]]:
    """The weights of the explained words of every example, [word], and the class that is predicted."""
    model, found = checkpoint.model, {}
    if isinstance(model, Writing):
        raise UsageError("a translation has a prediction per word, and people are asked about one: choose a classifier")
    sites = sites_of(model, None)
    for members in batches_of_one_length(examples, size=64, budget=32_768):
        batch = model.collate([examples[i] for i in members])
        with torch.no_grad():
            trace = model.trace(batch, intervene=intervene)
        weights = weight_of_tokens(trace, sites, model.readout).double()  # [batch, token]
        for row, place in enumerate(members):
            found[place] = (weights[row][batch.words[row]], int(trace.logits[row].argmax()))
    return [found[place] for place in range(len(examples))]


def _top(weights: Tensor, example: Example, asked: Draw) -> tuple[int, ...]:
    """The places of the highest weights above 0; of equal ones, those that a keyed draw takes."""
    noise = uniform(stable_seed("annotate ties", asked.seed), example.id, torch.arange(len(weights))).tolist()
    level = levels(weights).tolist()
    ranked = sorted((weights > 0).nonzero()[:, 0].tolist(), key=lambda place: (-level[place], noise[place]))
    return tuple(ranked[: asked.top])


def _secret(example: Example, view: _View, task: Task, asked: Draw) -> Secret:
    predicted = view.predicted if asked.prediction == "permuted" else view.original
    return Secret(
        example=example.id,
        condition=view.condition,
        gold=task.labels[example.label],
        predicted=task.labels[predicted],
        correct=predicted == example.label,
        original=task.labels[view.original],
        words=tuple(example.words[place] for place in view.marked),
    )


def _notes(views: Sequence[_View], left_out: int, texts: int, asked: Draw) -> list[str]:
    """What must be known of the draw, without a word on any single item."""
    said = []
    if left_out:
        said.append(f"{left_out:,} of {texts:,} test texts have fewer than {asked.top} words and are left out")
    if few := sum(len(view.marked) < asked.top for view in views):
        said.append(f"in {few} items fewer than {asked.top} words have any weight: only those are highlighted")
    permuted = [view for view in views if view.condition == "permuted"]
    if same := sum(set(view.marked) == set(view.unpermuted) for view in permuted):
        said.append(
            f"in {same} of {asked.count} permuted items the highlighted words are those of the original weights"
        )
    changed = sum(view.predicted != view.original for view in permuted)
    said.append(f"permuting the weights changes the prediction of {changed} of {asked.count} texts")
    return said


def _unnamed(labels: Sequence[str], asked: Draw) -> list[str]:
    """Numbers say nothing to an annotator."""
    numbers = [label for label in labels if label not in asked.labels and label.isdecimal()]
    example = ",".join(f"{label}=NAME" for label in numbers)
    return [f"annotators read {', '.join(numbers)} as the predictions: give them names with --labels {example}"] * bool(
        numbers
    )
