"""Showing: an explanation as a heat map, by word or by sentence, with its numbers and sentences."""

from collections.abc import Sequence

import torch

from exegete.base.names import parse
from exegete.explanations.result import Explanation, Method, Unit
from exegete.explanations.verdict import decimal
from exegete.importance.aggregation import aggregate
from exegete.page.heatmap import HeatMap, Matrix, Row
from exegete.page.labels import importance_labels

SHOWN = 4  # classes whose probabilities are shown
CAPTION = (
    "How far the methods rank the words alike: Kendall’s τ-b on this text; of the scores where both are signed, of "
    "their sizes otherwise."
)


def heatmap(found: Explanation, by: Unit = "word") -> HeatMap:
    """The map; by sentence, scores are the sums of the words' scores, all else stays by word."""
    vouched = bool(found.trust.comprehensiveness)
    whole = by == "word"
    return HeatMap(
        title=_title(found),
        words=found.words if whole else _sentences(found),
        rows=tuple(_row(found, method, by, vouched) for method in found.methods),
        toward=_class(found.target),
        columns=("τ att.", *(("in run", "here") if vouched else ("compr.",)), "flip"),
        unknown=frozenset(found.unknown) if whole else frozenset(),
        notes=(*found.notes, *(f"{name} is left out: {why}" for name, why in found.refused.items())),
        question="May attention be read here?",
        reading=_reading(found),
        small_print=_small_print(found, by),
        matrix=Matrix(_labels(found), found.agreement.tau, CAPTION) if len(found.methods) > 1 else None,
        unit=by,
    )


def _labels(found: Explanation) -> tuple[str, ...]:
    """The methods as people say them, in the order of the agreement."""
    labels = importance_labels(found.agreement.names)
    return tuple(labels[name] for name in found.agreement.names)


def _title(found: Explanation) -> str:
    ranked = sorted(found.probabilities.items(), key=lambda pair: -pair[1])[:SHOWN]
    odds = ", ".join(f"{_class(label)} {p:.3f}" for label, p in ranked)
    return f"Predicted: {_class(found.prediction)} (p: {odds}). Explained: the {found.of} of {_class(found.target)}."


def _class(label: str) -> str:
    """A class that is only a number says that it is one."""
    return f"class {label}" if label.isdigit() else label


def _sentences(found: Explanation) -> tuple[str, ...]:
    groups: list[list[str]] = [[] for _ in range(max(found.sentences) + 1)]
    for word, sentence in zip(found.words, found.sentences, strict=True):
        groups[sentence].append(word)
    return tuple(" ".join(group) for group in groups)


def _summed(scores: Sequence[float], sentences: Sequence[int]) -> tuple[float, ...]:
    """The sum of every sentence's scores."""
    values, owner = torch.tensor([scores], dtype=torch.float64), torch.tensor([sentences])
    return tuple(aggregate(values, owner, "sum")[0].tolist())


def _row(found: Explanation, method: Method, by: Unit, vouched: bool) -> Row:
    run = ("–" if method.vouched is None else decimal(method.vouched),) if vouched else ()
    return Row(
        name=importance_labels(each.name for each in found.methods)[method.name],
        values=method.scores if by == "word" else _summed(method.scores, found.sentences),
        signed=method.signed,
        numbers=(_with_attention(found, method), *run, decimal(method.comprehensiveness), _flip(method)),
        complaint=" ".join(method.complaints),
        main=parse(method.name).name == "attention",
    )


def _with_attention(found: Explanation, method: Method) -> str:
    names = found.agreement.names
    attention = next((name for name in names if name.partition(":")[0] == "attention"), None)
    if attention in (None, method.name):
        return ""
    value = found.agreement.tau[names.index(attention)][names.index(method.name)]
    return "–" if value is None else decimal(value)


def _flip(method: Method) -> str:
    return "–" if method.flip is None else str(method.flip)


def _reading(found: Explanation) -> tuple[str, ...]:
    """What a reader should take away, the conclusion first."""
    if found.reading is None:
        return ()
    conclusion, *rests_on = found.reading.sentences
    return (conclusion, *filter(None, [" ".join(rests_on)]))


def _small_print(found: Explanation, by: Unit) -> tuple[str, ...]:
    """Who vouches for the methods, and what the numbers beside the words are."""
    vouched = bool(found.trust.comprehensiveness)
    run, here = ("in run: mean comprehensiveness over the run's test texts. ", "here") if vouched else ("", "compr.")
    columns = (
        f"τ att.: Kendall's τ-b with attention. {run}{here}: comprehensiveness on this text, the mean loss of "
        f"p({_class(found.target)}) with the first 1, 5, 10, 20 and 50 % of the words deleted. flip: words deleted "
        "when the decision changes (– never)."
    )
    sums = "A sentence's score is the sum of its words' scores; all other numbers are by word."
    trust = " ".join(filter(None, (found.trust.sentence, found.trust.doubt)))
    return (f"Model: {found.model}. {trust}", columns, *([sums] if by == "sentence" else []))
