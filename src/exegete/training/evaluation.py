"""Evaluation: what a model predicts, and how well."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from exegete.models.capabilities import Pretrained, Trainable, Writing
from exegete.models.contract import Intervention, Predictor
from exegete.models.ours.translator import gold
from exegete.tasks.batching import batches_by_cost, batches_of_one_length
from exegete.tasks.disk import column_of
from exegete.tasks.example import Example, Task
from exegete.tasks.vocabulary import PAD
from exegete.training.metrics import Metrics, all_metrics
from exegete.training.objectives import Objective

SIZE, BUDGET = 512, 32_768  # examples and words that are predicted at a time
PIECES = 64, 8_192  # examples and pieces of them: every layer holds weights of all pairs of pieces
NUMBERS = 1 << 22  # logits that a pass over translations may hold


def predict(model: Predictor, examples: Sequence[Example], intervene: Intervention | None = None) -> Tensor:
    """Logits [example, class] in the order of the examples, on the CPU: whatever is counted next is counted there."""
    found = torch.empty(len(examples), len(model.labels))  # one block: pieces pin what passes leave behind
    with torch.no_grad():
        for members in prediction_passes(model, examples):
            batch = model.collate([examples[i] for i in members])
            logits = model.logits(batch, intervene=intervene).cpu()
            found = found.to(torch.promote_types(found.dtype, logits.dtype))
            found[members] = logits.to(found.dtype)
    return found


def evaluate(model: Trainable, examples: Sequence[Example], intervene: Intervention | None = None) -> Metrics:
    """All metrics on a split; those of a translation are of its words, each after the right ones before it."""
    if isinstance(model, Writing):
        return _of_words(model, examples, intervene)
    return all_metrics(predict(model, examples, intervene), torch.from_numpy(column_of(examples, "label")))


def _of_words(model: Writing, examples: Sequence[Example], intervene: Intervention | None) -> Metrics:
    """Accuracy and mean −log p of the target's words and ends; perplexity is its exponential."""
    right, loss, count = 0, 0.0, 0
    with torch.no_grad():
        for members in prediction_passes(model, examples):
            batch = model.collate([examples[i] for i in members])
            logits, words = model.logits(batch, intervene=intervene).flatten(0, 1), gold(batch).flatten()
            there = words != PAD
            right += int((logits.argmax(-1) == words)[there].sum())
            loss += float(cross_entropy(logits[there].double(), words[there], reduction="sum"))
            count += int(there.sum())
    return {"accuracy": right / max(1, count), "auc": None, "macro_f1": None, "loss": loss / max(1, count)}


def prediction_passes(model: Predictor, examples: Sequence[Example]) -> list[list[int]]:
    """Examples that go through a model together; few at a time where every word has logits for a whole vocabulary."""
    if isinstance(model, Pretrained):
        return list(batches_by_cost(model.lengths(examples), *PIECES))
    if not isinstance(model, Writing):
        return list(batches_of_one_length(examples, SIZE, BUDGET))
    longest = max((len(text) + 2 for e in examples for text in e.texts), default=1)
    return list(batches_of_one_length(examples, max(1, NUMBERS // (longest * len(model.words))), BUDGET))


def evaluate_held_out(model: Trainable, task: Task, intervene: Intervention | None = None) -> dict[str, Metrics]:
    """All metrics on every split but train; none is known of texts without labels."""
    if not task.labelled:
        return {split: dict.fromkeys(("accuracy", "auc", "macro_f1", "loss")) for split in task.splits}
    held_out = {split: examples for split, examples in task.splits.items() if split != "train"}
    return {split: evaluate(model, examples, intervene) for split, examples in held_out.items()}


def mean_loss(model: Trainable, examples: Sequence[Example], objective: Objective, at: Intervention | None) -> float:
    """An objective's mean over examples."""
    total = 0.0
    with torch.no_grad():
        for members in prediction_passes(model, examples):
            batch = model.collate([examples[i] for i in members])
            total += len(members) * float(objective(model.trace(batch, intervene=at), batch))
    return total / len(examples)
