"""Five models that no calibration saw, on real sentences: `python -m tools.unseen FOLDER` keeps what was said of them.

They were written after the rules were frozen. Nothing is trained: words have the log-odds that counting gives them
among the training sentences of film reviews, and what attention does with them is set by hand, so that the answer is
known. What each is worth is graded as the families of calibration are (`calibration.truth`), on held-out texts.

The deciding tests are asked as the default and the quick audit ask them.
"""
# ruff: noqa: ARG002

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import torch
from torch import Tensor

from exegete.audits.criteria import load_criteria
from exegete.models.own.adapter import Attend, OwnModel
from exegete.runs.objects import checkpoint_of, wrap
from exegete.runs.tables import write_csv
from exegete.tasks.catalogue import load_task
from exegete.tasks.example import Example, Task
from exegete.wings.calibration.draws import AUDITS, audited, mediation_of
from exegete.wings.calibration.truth import Passes, population

TASK = "rotten_tomatoes:min_df=2"
HELD_OUT = 60  # texts that a truth is graded on
SHARP, GAIN = 2.0, 6.0
Lexicon = dict[str, tuple[float, float]]  # by word: log-odds of the second class, and rarity


class Counted(OwnModel):
    """A word is two numbers, log-odds and rarity; a logit is a sum of log-odds under some weights."""

    def __init__(self, lexicon: Lexicon) -> None:
        super().__init__()
        self.vocabulary = ["<pad>", "<unk>", *lexicon]
        self.table = torch.nn.Parameter(torch.tensor([(0.0, 0.0), (0.0, 0.0), *lexicon.values()]))

    def embed(self, tokens: Tensor) -> Tensor:
        """[batch, token, 2]."""
        return self.table[tokens]

    def forward(self, embedded: Tensor, mask: Tensor, attend: Attend) -> Tensor:
        """[-z/2, z/2]."""
        z = GAIN * self.odds(embedded, mask, attend)
        return torch.stack([-z, z], -1) / 2

    def odds(self, embedded: Tensor, mask: Tensor, attend: Attend) -> Tensor:
        """[batch]."""
        raise NotImplementedError


class Votes(Counted):
    """Yes: every word votes by its sign, with a weight that grows with how sure it is."""

    def odds(self, embedded: Tensor, mask: Tensor, attend: Attend) -> Tensor:
        """Σ α sign."""
        of = embedded[..., 0]
        return (attend("attention", SHARP * of.abs(), embedded) * (4 * of).tanh()).sum(-1)


class TwoHeads(Counted):
    """Yes: a head for each class, each on the words that speak for it."""

    def odds(self, embedded: Tensor, mask: Tensor, attend: Attend) -> Tensor:
        """Σ_t α¹_t v_t + Σ_t α²_t v_t, v the vote of a word."""
        of = embedded[..., 0]
        scores = SHARP * torch.stack([of.clamp(min=0), (-of).clamp(min=0)], 1)  # [batch, head, token]
        return (attend("attention", scores, embedded) * (4 * of).tanh()[:, None]).sum((1, 2)) / 2


class RareWords(Counted):
    """No: the mean decides, and attention to rare words, which matter more, is hardly read."""

    def odds(self, embedded: Tensor, mask: Tensor, attend: Attend) -> Tensor:
        """The mean log-odds, and a hundredth of what attention says."""
        weights = attend("attention", embedded[..., 1], embedded)
        mean = (embedded[..., 0] * mask).sum(-1) / mask.sum(-1)
        return 2 * mean + 0.01 * (weights * embedded[..., 0]).sum(-1)


class FullStop(Counted):
    """No: the last token gathers what all others say, and attention looks at it."""

    def odds(self, embedded: Tensor, mask: Tensor, attend: Attend) -> Tensor:
        """The state of the last token is the mean of the text's."""
        of, last = embedded[..., 0], mask.sum(-1, keepdim=True) - 1
        mean = (of * mask).sum(-1, keepdim=True) / mask.sum(-1, keepdim=True)
        here = torch.arange(mask.shape[1]) == last
        states = torch.where(here, 3 * mean, of)
        return (attend("attention", 6.0 * here + 0.3 * of.abs(), embedded) * states).sum(-1)


class Running(Counted):
    """No: a state is what was read so far, and attention points at the words that are sure."""

    def odds(self, embedded: Tensor, mask: Tensor, attend: Attend) -> Tensor:
        """h_t = 0.9 h_(t−1) + v_t."""
        states, state = [], torch.zeros_like(embedded[:, 0, 0])
        for vote in (4 * embedded[..., 0]).tanh().unbind(1):
            state = 0.9 * state + vote
            states.append(state)
        weights = attend("attention", SHARP * embedded[..., 0].abs(), embedded)
        return (weights * torch.stack(states, -1)).sum(-1) / 3


UNSEEN: dict[str, tuple[str, Callable[[Lexicon], Counted]]] = {
    "votes": ("strong", Votes), "two heads": ("strong", TwoHeads), "rare words": ("no", RareWords),
    "full stop": ("no", FullStop), "running": ("no", Running),
}  # fmt: skip


def lexicon(texts: Iterable[Example]) -> Lexicon:
    """Log-odds of every word with one added to each count, and rarity: minus the logarithm of its share."""
    counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for text in texts:
        counts[int(text.label or 0)].update(set(text.words))
    total = sum(map(sum, (each.values() for each in counts)))
    words = sorted(word for word in counts[0] | counts[1] if counts[0][word] + counts[1][word] > 1)
    return {w: (math.log((counts[1][w] + 1) / (counts[0][w] + 1)), -math.log((counts[0][w] + counts[1][w]) / total))
            for w in words}  # fmt: skip


def asked(name: str, task: Task) -> list[dict[str, Any]]:
    """What both audits say of one of them."""
    known, make = UNSEEN[name]
    model = checkpoint_of(wrap(make(lexicon(task.split("train")))), task).model
    texts = [model.reader.rows(text.words) for text in _some(task.split("dev"))]
    truth = population(Passes(model), texts, ("unseen", name))
    rows = []
    for audit in AUDITS:
        said = audited(model, task, mediation_of(audit), load_criteria())
        graded = {"truth": truth.truth, "ranks": min(truth.ranks), "reads": min(truth.reads)}
        rows.append({"model": name, "known": known, **graded, "audit": audit, "answer": said["answer"], **_spans(said)})
    return rows


def _some(texts: Sequence[Example]) -> list[Example]:
    return [text for text in texts if 4 <= len(text.words) <= 30][:HELD_OUT]


def _spans(said: dict[str, Any]) -> dict[str, float]:
    """The least and the largest mean of both tests over specifications."""
    means = {test: [ends[0] for ends in specs.values()] for test, specs in said["ends"].items()}
    return {f"{test}_{end.__name__}": end(means[test]) for test in means for end in (min, max) if means[test]}


def main(folder: Path) -> None:
    """Audit all of them."""
    task = load_task(TASK)
    table = pl.DataFrame([row for name in UNSEEN for row in asked(name, task)], infer_schema_length=None)
    write_csv(folder / "unseen.csv", table)
    with pl.Config(tbl_rows=20, tbl_cols=20):
        print(table)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
