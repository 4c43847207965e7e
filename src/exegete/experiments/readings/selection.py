"""Selection: all that is found out on texts held out for it, before those that judge are looked at."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from exegete.experiments.mediation.effects import RemovalInCompany, sample_words
from exegete.experiments.mediation.experiment import mattering, portions
from exegete.experiments.readings.baselines import POSITION, Baselines, inverse_frequency, mean_effects
from exegete.experiments.readings.candidates import Candidate, candidates
from exegete.experiments.readings.cuts import reading_edges
from exegete.experiments.readings.idle_heads import TextEffects, find_idle_heads
from exegete.interventions.sites import Head
from exegete.measures.gini import gini_correlation
from exegete.models.contract import Predictor, Trace
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example, Task
from exegete.tasks.selection import choose_texts

CHOOSING = RemovalInCompany("delete", "alone", 1)  # how words go there: nothing is drawn
BEST = ("layer", "head")  # kinds of which only the best is asked for M


class WeighedTexts(NamedTuple):
    """Some texts with all their weights, and what their words do."""

    examples: list[Example]
    batch: Batch
    label: Tensor  # [text]
    asked: Tensor  # [text, token]
    trace: Trace
    removed: Tensor  # [scale, text, token]; NaN where nothing was asked


class Choice(NamedTuple):
    """What was chosen."""

    candidates: list[Candidate]  # all readings
    asked: list[Candidate]  # those that are asked for M, one of which may be read
    unread: dict[bool, frozenset[Head]]  # by their rows of the token that is read (True), by all of their rows
    baselines: Baselines

    def left_out(self, model: Predictor, candidate: Candidate) -> frozenset[Head]:
        """The heads of a reading that nobody reads."""
        sites, head, one = reading_edges(candidate.reading, model)
        own = [each for each in self.unread[one] if each.site in sites]
        return frozenset(each for each in own if head in (None, each.head))


def trace_texts(model: Predictor, examples: Sequence[Example], most: int, seed: int) -> Iterator[WeighedTexts]:
    """Texts with their traces, some at a time; of each so many words are asked about at most."""
    for members in portions(examples):
        some = [examples[i] for i in members]
        batch = model.collate(some)
        trace = model.trace(batch)
        label = trace.logits.argmax(-1)
        yield WeighedTexts(some, batch, label, sample_words(batch, most, seed), trace, torch.empty(0))


def chosen_by(model: Predictor, task: Task, seen: Sequence[WeighedTexts], flattened: int) -> Choice:
    """Which layer and head is asked for M, which heads are unread by so many of the texts, and the baselines."""
    weights = seen[0].trace.attention
    heads = [Head(site, head) for site in model.sites for head in range(weights[site].shape[1])]
    every = candidates(model, {site: weights[site].shape[1] for site in model.sites})
    some = list(_some(seen, flattened))
    rows = {reading_edges(each.reading, model).one for each in every}
    silent = {one: find_idle_heads(model, some, heads, one) for one in rows}
    return Choice(every, _asked(model, every, seen), silent, _baselines(task, seen))


def _asked(model: Predictor, every: Sequence[Candidate], seen: Sequence[WeighedTexts]) -> list[Candidate]:
    """All readings, but of single layers and heads only that of the highest Γ, the first of equals."""
    found = [each for each in every if each.kind not in BEST]
    for kind in BEST:
        own = [each for each in every if each.kind == kind]
        found += [max(own, key=lambda each: _level(model, each, seen))] if own else []
    return found


def _level(model: Predictor, candidate: Candidate, seen: Sequence[WeighedTexts]) -> float:
    """The mean Γ over texts in which some word matters."""
    scores = [candidate.reading.of(model, each.trace, each.batch) for each in seen]
    return _mean([gini_correlation(s, each.removed[0].abs()) for s, each in zip(scores, seen, strict=True)], seen)


def _mean(gammas: Sequence[Tensor], seen: Sequence[WeighedTexts]) -> float:
    counted = [g.where(mattering(each.removed)[0], torch.nan) for g, each in zip(gammas, seen, strict=True)]
    return float(torch.cat(counted).nanmean().nan_to_num(-1.0))  # no word matters anywhere: nothing is better


def _some(seen: Sequence[WeighedTexts], count: int) -> Iterator[TextEffects]:
    """So many of the texts, by a keyed choice."""
    some = choose_texts([text for each in seen for text in each.examples], count)
    ids = torch.tensor([text.id for text in some], device=seen[0].batch.ids.device)
    for each in seen:
        here = torch.isin(each.batch.ids, ids).nonzero()[:, 0]
        if len(here):
            yield TextEffects(each.batch.rows(here), each.label[here], each.removed[0, here])


def _baselines(task: Task, seen: Sequence[WeighedTexts]) -> Baselines:
    """By all texts that choose."""
    found: list[tuple[str, float]] = []
    for each in seen:
        for row, text in enumerate(each.examples):
            effects = each.removed[0, row, each.batch.words[row]].tolist()  # NaN where a word was not asked about
            found += [(word, e) for word, e in zip(text.words, effects, strict=True) if e == e]
    texts = [text for each in seen for text in each.examples]
    known = Baselines(inverse_frequency(task, texts), mean_effects(found), first=True)
    scores = [known.scores(each.examples, each.batch)[POSITION] for each in seen]
    gammas = [gini_correlation(s, each.removed[0].abs()) for s, each in zip(scores, seen, strict=True)]
    return replace(known, first=_mean(gammas, seen) >= 0)
