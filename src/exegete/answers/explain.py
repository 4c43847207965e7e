"""Explaining: every method on the words of one text, in one go, so that what two of them need is computed once."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, get_args

import torch

from exegete.answers.comparison import Removals, compare_removals, method_agreement
from exegete.answers.continued import continued
from exegete.answers.explanation import Explanation, Method
from exegete.answers.question import (
    Of,
    TextInput,
    Wanted,
    check_parts,
    classes_of,
    methods_of,
    read_texts,
    step_of,
    text_parts,
)  # fmt: skip
from exegete.answers.text_verdict import read_verdict
from exegete.answers.translations import at_step, piece_owners, read_source, translate
from exegete.answers.trust import ModelGiven, Trust, subject
from exegete.base.errors import UsageError
from exegete.base.names import parse
from exegete.base.noise import stable_seed
from exegete.base.progress import Progress, silent
from exegete.base.threads import one_thread
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.checks import complaints, finite
from exegete.importance.contract import Quantity, Scores, Target, explains, refusal
from exegete.importance.sharing import sharing
from exegete.models.capabilities import Continuing, Writing
from exegete.models.contract import Predictor
from exegete.models.huggingface.prompts import name_with_template
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example
from exegete.tasks.prepare import characters_of
from exegete.tasks.scripts import is_uncut
from exegete.tasks.sentences import sentences
from exegete.tasks.tokenizers import TOKENIZERS
from exegete.training.checkpoint import Checkpoint

LIKELIEST = 10  # next words whose probabilities are kept
SMALL = 0.005  # a share that is 0 % when it is told
SATURATED = 1e-3  # a probability that is nearer to 0 or 1 hardly changes with a word


class TextQuestion(NamedTuple):
    """What is asked of every text."""

    checkpoint: Checkpoint
    methods: tuple[str, ...]
    target: str | None  # a class; the predicted one unless given
    contrast: str | None  # the class that it is set against
    of: Of
    trust: Trust
    progress: Progress = silent
    named: bool = False  # whether somebody asked for these methods
    step: int = 1  # of a translator: which word of its output, counted from 1


def explain_prediction(
    model: ModelGiven,
    text: TextInput,
    methods: Sequence[str] | None = None,
    target: Wanted = None,
    of: Of = "logit",
    run: str | Path | None = None,
    progress: Progress = silent,
) -> Explanation:
    """Explain the prediction for one text.

    `model` is a checkpoint, its folder, or None for the default audit's (trained into `runs/audit` if it isn't there).
    `methods` are importances with settings, all of them unless given. `target` is the class to explain, the predicted
    one unless given, or a `Contrast` of two, and `of` which function of it. `run` is a run whose leaderboard orders the
    methods. For a model of pairs, `text` is a passage and its question, or a premise and its hypothesis: (passage,
    question). Of a translator, the first word of its output is explained, or the one that a `Word` names.
    """
    return explain_all(model, [text], methods, target, of, run, progress)[0]


def explain_all(
    model: ModelGiven,
    texts: Sequence[TextInput],
    methods: Sequence[str] | None = None,
    target: Wanted = None,
    of: Of = "logit",
    run: str | Path | None = None,
    progress: Progress = silent,
) -> list[Explanation]:
    """Explain the predictions for several texts, each by itself; all else as in `explain_prediction`."""
    wanted = methods_of(methods, of)
    if isinstance(texts, str):
        raise UsageError("a text is a string: give one to `explain`, a list of them to `explain_all`")
    pairs = [text_parts(text) for text in texts]
    checkpoint, trust = subject(model, run, progress)
    for parts in pairs:
        check_parts(parts, checkpoint)
    classes, step = classes_of(target, checkpoint), step_of(target, checkpoint)
    asked = TextQuestion(checkpoint, wanted, *classes, of, trust, progress, methods is not None, step)
    with one_thread():
        return [explain_question(asked, parts) for parts in pairs]


def explain_file(model: ModelGiven, path: str | Path, methods: Sequence[str] | None = None) -> list[Explanation]:
    """Explain the predicted class of every line of a file."""
    return explain_all(model, read_texts(Path(path)), methods)


class _Scored(NamedTuple):
    scores: Scores
    milliseconds: float


def explain_question(asked: TextQuestion, parts: tuple[str, ...]) -> Explanation:
    """All methods on one text, perhaps with its question; of a translator or language model, on one word it writes."""
    if isinstance(asked.checkpoint.model, Continuing):
        return _explain_next_word(asked, parts)
    if not isinstance(asked.checkpoint.model, Writing):
        return _explain_one(asked, parts, example_of(asked.checkpoint, parts))
    output = translate(asked.checkpoint, parts[0])
    viewed, example = at_step(asked.checkpoint, parts[0], output, asked.step)
    asked = asked._replace(checkpoint=viewed, target=asked.target or output[asked.step - 1])
    found = _explain_one(asked, parts, example)
    return replace(
        found,
        probabilities=dict(sorted(found.probabilities.items(), key=lambda word: -word[1])[:LIKELIEST]),
        written=output,
        step=asked.step,
        pieces=piece_owners(found.words),
    )


def _explain_next_word(asked: TextQuestion, parts: tuple[str, ...]) -> Explanation:
    """On what comes next: the likeliest piece, or given answers."""
    model, example = asked.checkpoint.model, example_of(asked.checkpoint, parts)
    assert isinstance(model, Continuing)
    checkpoint, target, contrast = continued(asked.checkpoint, example, asked.target, asked.contrast)
    found = _explain_one(asked._replace(checkpoint=checkpoint, target=target, contrast=contrast), parts, example)
    named = (found.target, found.contrast)
    likely = sorted(found.probabilities.items(), key=lambda word: -word[1])
    kept = {word: p for place, (word, p) in enumerate(likely) if place < LIKELIEST or word in named}
    return replace(found, probabilities=kept, next_word=model.next_word(example))


def _explain_one(asked: TextQuestion, parts: tuple[str, ...], example: Example) -> Explanation:
    model, (text, *question) = asked.checkpoint.model, parts
    words, batch = example.texts[0], model.collate([example])
    with torch.no_grad():
        logits = model.logits(batch).double()[0]
    prediction = model.labels[int(logits.argmax())]
    target = asked.target or prediction
    if target == asked.contrast:
        raise UsageError(f"'{target}' is what the model predicts: name the class to explain, too, with target")
    names, refused = _allowed(asked.methods, model, asked.of)
    with sharing():
        found = dict(_scores(asked, batch, target, names))
        values = {name: each.scores.values[batch.words].double() for name, each in found.items()}
        gone = compare_removals(model, batch, logits[None], torch.tensor([model.labels.index(target)]), values)
    signed = {name: each.scores.signed for name, each in found.items()}
    order = _order(names, asked.trust, gone)
    unseen = tuple(place for place, word in enumerate(words) if not model.reader.knows(word))
    probabilities = dict(zip(model.labels, logits.softmax(-1).tolist(), strict=True))
    return Explanation(
        text=text,
        model=_told(asked.checkpoint),
        words=words,
        unknown=unseen,
        sentences=tuple(sentences(words)),
        prediction=prediction,
        probabilities=probabilities,
        target=target,
        of=asked.of,
        contrast=asked.contrast,
        methods=tuple(_method(name, found[name], batch, gone, asked.trust) for name in order),
        refused=refused,
        agreement=method_agreement({name: values[name] for name in order}, signed),
        reading=read_verdict({name: values[name] for name in order}, signed, gone, target == prediction),
        trust=asked.trust,
        notes=(
            *(f"the question is: {written}" for written in question),
            *_uncut(asked.checkpoint, text),
            *_notes(words, unseen, gone, asked.of, probabilities[target]),
            *_elsewhere(model, batch),
        ),
        named=asked.named,
    )


def _told(checkpoint: Checkpoint) -> str:
    """What a model is, and on what it was trained."""
    return f"{name_with_template(checkpoint.model.spec)}, trained on {checkpoint.task or 'texts that we do not know'}"


def example_of(checkpoint: Checkpoint, parts: tuple[str, ...]) -> Example:
    """A text, perhaps with its question, as a model's example.

    Keyed by its words, so that a text has the same noise alone and in a file.
    """
    if isinstance(checkpoint.model, Writing):
        texts = tuple(read_source(checkpoint, part) for part in parts)
        return Example(stable_seed(*texts), texts, 0)
    written = tuple(part.lower() if checkpoint.lower else part for part in parts)
    texts = tuple(tuple(TOKENIZERS[checkpoint.tokenizer](part)) for part in written)
    return Example(stable_seed(*texts), texts, 0, written=characters_of(written, texts, checkpoint.tokenizer))


def _allowed(methods: Sequence[str], model: Predictor, of: Of) -> tuple[list[str], dict[str, str]]:
    """The methods that this model allows, and why it doesn't allow the others."""
    reasons = {name: refusal(IMPORTANCES.make(name), model) or _unexplained(name, of) for name in methods}
    refused = {name: why for name, why in reasons.items() if why is not None}
    if len(refused) == len(methods):
        raise UsageError(f"no method is left: {'; '.join(f'{name}: {why}' for name, why in refused.items())}")
    return [name for name in methods if name not in refused], refused


def _unexplained(method: str, of: Of) -> str | None:
    """Why a method can't explain what is asked, or None."""
    name = parse(method).name
    return None if explains(IMPORTANCES.make(method), of) else f"{name} explains the logit of a class, not its {of}"


def _scores(asked: TextQuestion, batch: Batch, label: str, names: Sequence[str]) -> Iterator[tuple[str, _Scored]]:
    labels = asked.checkpoint.model.labels
    chosen = torch.tensor([labels.index(label)])
    contrast = None if asked.contrast is None else torch.tensor([labels.index(asked.contrast)])
    for place, name in enumerate(names):
        asked.progress(f"explain · {name}", place, len(names))
        # What a method was told to explain wins over what all were told.
        of = parse(name).settings.get("of", asked.of)
        quantity: Quantity = of if of in get_args(Quantity) else asked.of  # type: ignore[assignment]
        target = Target(chosen, of=quantity, contrast=contrast)
        started = time.perf_counter()
        scores = IMPORTANCES.make(name)(asked.checkpoint.model, batch, target)
        finite(name, scores, batch)
        yield name, _Scored(scores, 1000 * (time.perf_counter() - started))
    asked.progress("explain · done", len(names), len(names))


def _order(names: Sequence[str], trust: Trust, gone: Removals) -> list[str]:
    """Those that a run vouches for, best first; then the others, by this text alone."""
    return sorted(names, key=lambda n: (trust.of(n) is None, -(trust.of(n) or 0), -gone.comprehensiveness[n]))


def _method(name: str, found: _Scored, batch: Batch, gone: Removals, trust: Trust) -> Method:
    scores, cost = found.scores, found.scores.cost
    said = (complaint for complaint in complaints(scores, batch) if complaint is not None)
    return Method(
        name=name,
        scores=tuple(scores.values[batch.words].double().tolist()),
        signed=scores.signed,
        error=None if scores.error is None or not scores.error.isfinite() else float(scores.error),
        forward=None if cost is None else int(cost.forward),
        backward=None if cost is None else int(cost.backward),
        milliseconds=round(found.milliseconds, 3),
        complaints=tuple(complaint.replace(f"example {int(batch.ids)}", "this text") for complaint in said),
        comprehensiveness=gone.comprehensiveness[name],
        flip=gone.flip[name],
        vouched=trust.of(name),
    )


def _uncut(checkpoint: Checkpoint, text: str) -> Iterator[str]:
    """What a reader must know of a text in a script without spaces that nobody cut into words."""
    if checkpoint.tokenizer != "characters" and is_uncut([text]):
        yield (
            "the text has no spaces between words, so a whole clause is one word here: put spaces between words, or "
            "train with tokenizer=characters"
        )


def _elsewhere(model: Predictor, batch: Batch) -> Iterator[str]:
    """How much of the weight of a language model's prediction is on no word of the text: a sink, a prompt."""
    readout = model.readout
    if readout is None or readout.query != "last":
        return
    with torch.no_grad():
        trace = model.trace(batch, keep=readout.sites[-1:])
    weights, on_words = trace.read(readout).double().mean(1).sum(), trace.word_weights(readout, batch)
    if on_words is not None and (share := 1 - float(on_words.double().sum() / weights)) > SMALL:
        yield (
            f"attention gives {share:.0%} of its weight to what is no word of the text (a start symbol, a prompt), "
            "which is not shown"
        )


def _notes(words: Sequence[str], unseen: Sequence[int], gone: Removals, of: str, p: float) -> Iterator[str]:
    """What a reader must know of this text and this prediction."""
    if len(unseen) == len(words):
        yield "no word of this text is in the model's vocabulary: to the model they are all the same"
    elif unseen:
        yield f"{len(unseen)} of {len(words)} words are unknown to the model, and all the same to it (marked ?)"
    if len(words) == 1:
        yield "the text has one word: there is nothing to rank"
    if gone.constant:
        yield "the prediction doesn't change with any words deleted: there is nothing to explain"
    if of == "probability" and not SATURATED < p < 1 - SATURATED:
        yield "the probability is saturated, so its changes are tiny: the logit is easier to explain (of=logit)"
