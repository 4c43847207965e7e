"""Causal: language models of transformers. The prediction is the next piece, or a class that is asked for in words.

All layers and heads are sites; the prediction is read at the last real piece, whose row of the last layer is the
readout. Padding is on the right and places are given, so that a text alone and in a batch has the same logits. The
vocabulary is asked at that piece alone: its states are chosen before the model's own last map, so that whatever the
model does with its logits (caps, scales) is done.

- `LanguageModel`: the classes are all pieces of the vocabulary. The logit of A minus that of B says why A rather than B
  comes next (Yin & Neubig 2022, section 3).
- `Answering`: the classes are given answers, of one piece or several, after a text: log p(answer), the sum over its
  pieces. Of one answer alone, the classes are this answer and any other: log p and log(1 − p).
- `PromptClassifier`: the text stands in a prompt, and a class is log Σ exp over the logits of the first pieces of its
  words.

What goes back through a sum of exponentials meets constant weights, log Σ_v exp z_v = Σ_v a_v z_v + H(a) with
a = softmax(z): the value and the gradient are the same, and relevance is conserved.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from exegete.base.errors import UsageError
from exegete.base.places import places
from exegete.models.contract import Intervention, Query, Readout
from exegete.models.huggingface.labels import class_order
from exegete.models.huggingface.load import LoadedParts
from exegete.models.huggingface.model import HuggingFace, ModelOutput, limit_of
from exegete.models.huggingface.prompt_pieces import PromptPieces
from exegete.models.huggingface.prompts import EMPTY, FilledPrompt, default_prompt, filled
from exegete.models.huggingface.sites import Access
from exegete.models.huggingface.source import settings_of
from exegete.models.huggingface.word_pieces import reader_of
from exegete.models.ours.module import KeptSites
from exegete.models.spelling import Grid, SpelledRows
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example, Task
from exegete.tasks.vocabulary import END

CAUSAL = "decoder."  # sites where words look back only
WORD = 8  # pieces of the next word, at most
OTHER = "another"  # the class of all answers but one


class Causal(HuggingFace):
    """Words in, the logits of the next piece out."""

    vocabulary: PromptPieces
    ends_at_padding = False

    def __init__(
        self, spec: str, parts: LoadedParts, labels: tuple[str, ...], prompt: FilledPrompt | None = None
    ) -> None:
        limit, settings = _limit(parts), settings_of(spec)
        around = {} if prompt is None else {"before": prompt.before, "after": prompt.after, "chat": prompt.chat}
        reader = reader_of(parts.tokenizer, limit if settings.truncate else None, PromptPieces, **around)
        assert isinstance(reader, PromptPieces)
        super().__init__(spec, parts, labels, reader)
        self.limit = limit
        if not all(site.startswith(CAUSAL) for site in self.sites):
            raise UsageError(
                f"words of {self.who} look both ways, and no next word can be asked of it: train a classifier on its "
                "states, with head=cls, head=mean or head=attention"
            )

    def _probed(self) -> Access:
        with self.without_prompt():
            return super()._probed()

    @property
    def as_it_is(self) -> bool:
        """Yes: it is asked, and never trained here."""
        return True

    @property
    def query(self) -> Query:
        """The last real piece's."""
        return "last"

    @property
    def readout(self) -> Readout:
        """The last layer, as the last real piece sees it."""
        return Readout(self.sites[-1:], self.query, self.proof.gated)

    def head_parameters(self) -> Iterator[nn.Parameter]:
        """None: all of it has learnt."""
        yield from ()

    def inputs(self, pieces: SpelledRows, batch: Batch) -> dict[str, Tensor | bool]:
        """What transformers' model is called with; its own places, whatever it makes of padding."""
        given = super().inputs(pieces, batch)
        if "position_ids" in self._takes:
            given["position_ids"] = (pieces.real.long().cumsum(-1) - 1).clamp(min=0)
        return given

    def call(self, pieces: SpelledRows, batch: Batch) -> Any:
        """The vocabulary is asked where something is predicted: logits [batch, place, piece of the vocabulary]."""
        where = _asked(pieces)

        def narrow(module: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
            del module
            return (_at(given[0], where), *given[1:])

        handle = output_map(self.base).register_forward_pre_hook(narrow)
        try:
            return super().call(pieces, batch)
        finally:
            handle.remove()

    def grid(self, batch: Batch) -> Grid:
        """The pieces of words; those of a prompt are looked up inside, for nobody explains them."""
        grid = super().grid(batch)
        there = grid.there & (batch.sentence >= 0)[..., None]
        width = max(1, int(there.sum(-1).max()))
        return Grid(grid.ids[..., :width], there[..., :width])

    def vectors(self, pieces: SpelledRows, batch: Batch, embedded: Tensor) -> Tensor:
        """Those of words as given, and the prompt's own."""
        of_word = pieces.real & (batch.sentence >= 0).gather(-1, pieces.word.clamp(min=0))
        width = embedded.shape[-1] // self.size
        words = pieces._replace(real=of_word, within=pieces.within.clamp(min=0, max=width - 1)).vectors(
            embedded, self.size
        )
        prompt: Tensor = self.tables[0](pieces.ids).detach() * ~of_word[..., None]
        return words + prompt  # a constant that is added: what it gets is counted

    def next_logits(self, read: ModelOutput) -> Tensor:
        """[batch, piece of the vocabulary]."""
        logits: Tensor = read.output.logits
        return _at(logits, _asked(read.pieces))[:, 0]

    @contextmanager
    def without_prompt(self) -> Iterator[None]:
        """Inside, texts are read by themselves: what is tried at load is tried on short ones."""
        own = self.vocabulary
        self.vocabulary = replace(own, before="", after="", chat=False)
        try:
            yield
        finally:
            self.vocabulary = own


class LanguageModel(Causal):
    """The classes are the pieces of its vocabulary, as they are written after others."""

    def __init__(self, spec: str, parts: LoadedParts) -> None:
        super().__init__(spec, parts, piece_names(parts))

    def decoded(self, read: ModelOutput, batch: Batch) -> Tensor:
        """As the model makes them."""
        del batch
        return self.next_logits(read)

    def relabelled(self, labels: tuple[str, ...]) -> Any:
        """A `PromptClassifier` of this model, asked for these classes in words."""
        prompt = filled(default_prompt(labels), labels, self.tokenizer, self.who)
        parts = LoadedParts(self.base, self.tokenizer, self.place)
        return PromptClassifier(self.spec, parts, labels, prompt).proven_by(self)

    def next_word(self, example: Example) -> str:
        """The likeliest next pieces, up to where the next word would begin."""
        ids, written = self.vocabulary.ids(example), list[int]()
        for _ in range(WORD):
            with torch.no_grad():
                piece = int(self.base(torch.tensor([[*ids, *written]], device=self.device)).logits[0, -1].argmax())
            said = self.labels[piece]
            if written and not said[:1].isalnum():
                break
            written.append(piece)
            if not said.strip() or not said[-1].isalnum():
                break
        return "".join(self.labels[piece] for piece in written)

    def pieces_after(self, example: Example, answer: str) -> tuple[int, ...]:
        """The pieces of an answer, as it is cut after a text."""
        if not answer:
            raise UsageError("the continuation is empty: give at least one character, such as --target ' are'")
        found = self.vocabulary.following(example, answer)
        if found is None:
            raise UsageError(
                f"“{answer}” is cut together with the end of the text, which the model then doesn't read: begin it "
                "with a space, or take the space at the end of the text into it"
            )
        return found

    def answering(self, answers: Sequence[tuple[int, ...]]) -> "Answering":
        """This model where it chooses among answers, given by their pieces."""
        return Answering(self, answers)


class Answering(Causal):
    """The classes are one or two answers, each with all of its pieces; with one, the other class is any other."""

    def __init__(self, model: LanguageModel, answers: Sequence[tuple[int, ...]]) -> None:
        names = ["".join(model.labels[piece] for piece in answer) for answer in answers]
        parts = LoadedParts(model.base, model.tokenizer, model.place)
        super().__init__(model.spec, parts, (*names, OTHER)[:2])
        self.answers = [torch.tensor(answer, device=model.device) for answer in answers]
        self.proof = model.proof._replace(resumes=False, narrows=False)
        self.eval()

    def read(
        self, batch: Batch, embedded: Tensor | None, intervene: Intervention | None, keep: KeptSites = ()
    ) -> ModelOutput:
        """Weights and states of the text, and log p [batch, class]: a pass with each answer after it."""
        pieces = self.pieces(batch)
        vectors = None if embedded is None else self.vectors(pieces, batch, embedded)
        likely = [self._log_p(batch, pieces, answer, vectors, intervene) for answer in self.answers]
        if len(likely) == 1:
            likely.append(torch.log(-torch.expm1(likely[0])))
        found = ModelOutput(pieces, None, {}, {})
        if keep is None or keep:
            found = self.run(batch, pieces, intervene, keep, vectors)
        return found._replace(output=torch.stack(likely, -1).to(self.dtype))

    def _log_p(
        self, batch: Batch, pieces: SpelledRows, answer: Tensor, vectors: Tensor | None, intervene: Intervention | None
    ) -> Tensor:
        """Σ_k log p(piece k | text, pieces before it), in float64: [batch]."""
        longer = _continued(pieces, answer, batch)
        if vectors is not None:
            vectors = pad(vectors, (0, 0, 0, len(answer))) + self.tables[0](longer.ids).detach() * (
                longer.within[..., None] < 0
            )
        logits = self.run(batch, longer, intervene, (), vectors).output.logits
        z = _at(logits, _asked(longer)).double()  # [batch, piece of the answer, piece of the vocabulary]
        own = z.gather(-1, answer.expand(len(z), -1)[..., None])[..., 0]
        return (own - log_sum_exp(z)).sum(-1)

    def decoded(self, read: ModelOutput, batch: Batch) -> Tensor:
        """They are log p."""
        del batch
        found: Tensor = read.output
        return found

    def begun(self, batch: Batch, site: str, intervene: Intervention, *, whole: bool = False) -> Any:  # noqa: ARG002
        """None: an answer is read at several places."""
        raise UsageError(
            "an answer of several pieces is read at several places, and weights of one of them can't be imposed: ask "
            "about its first piece"
        )

    def relabelled(self, labels: tuple[str, ...]) -> "Answering":
        """It has no classes but its answers."""
        raise UsageError(f"the classes are the answers {', '.join(self.labels)}, not {', '.join(labels)}")


class PromptClassifier(Causal):
    """A class is a set of words that may come next after a prompt."""

    def __init__(self, spec: str, parts: LoadedParts, labels: tuple[str, ...], prompt: FilledPrompt) -> None:
        super().__init__(spec, parts, labels, prompt)
        self.prompt = prompt
        self.answers = self._first_pieces()
        self.prior = torch.zeros(len(labels))

    def proven_by(self, other: Causal) -> "PromptClassifier":
        """At rest, with what was shown of the same model, and its prior."""
        self.eval()
        self.proof = other.proof
        return self.calibrated()

    def calibrated(self) -> "PromptClassifier":
        """What it answers to texts without content is known, where that is to be taken away (Zhao et al. 2021)."""
        if self.prompt.calibrate:
            self.prior = torch.zeros(len(self.labels))
            texts = [Example(place, (tuple(text.split()),), 0) for place, text in enumerate(EMPTY)]
            with torch.no_grad():
                rows = [self.logits(self.collate([text]))[0].float().cpu() for text in texts]
            self.prior = torch.stack(rows).log_softmax(-1).mean(0)
        return self

    def relabelled(self, labels: tuple[str, ...]) -> "PromptClassifier":
        """This model with its classes in another order."""
        order = class_order(self.labels, labels, self.settings.labels, self.who)
        prompt = self.prompt._replace(words=tuple(self.prompt.words[place] for place in order))
        parts = LoadedParts(self.base, self.tokenizer, self.place)
        return PromptClassifier(self.spec, parts, labels, prompt).proven_by(self)

    def decoded(self, read: ModelOutput, batch: Batch) -> Tensor:
        """log Σ exp over the words of each class, less the prior."""
        del batch
        z = self.next_logits(read)
        classes = torch.stack([log_sum_exp(z[:, list(own)]) for own in self.answers], -1)
        return classes - self.prior.to(classes) if self.prompt.calibrate else classes

    def notes(self, task: Task) -> tuple[str, ...]:
        """The prompt as it is sent, and the words of every class."""
        words = "; ".join(
            f"{label}: {', '.join(map(repr, own))}" for label, own in zip(self.labels, self.prompt.words, strict=True)
        )
        sent = f"{self.prompt.before}{{text}}{self.prompt.after}"
        less = ", less what it answers to texts without content" if self.prompt.calibrate else ""
        return (
            *super().notes(task),
            f"{self.who} is asked in words, with the prompt {sent!r}, which stays as it is: a class is the first piece "
            f"of one of its words ({words}){less}",
        )

    def state(self) -> dict[str, Any]:
        """With its prompt as it was filled in."""
        return super().state() | {"prompt": self.prompt._asdict()}

    def fingerprint(self) -> str:
        """Of words and prior, too."""
        return f"{super().fingerprint()}-{self.prompt.key}"

    def _first_pieces(self) -> list[tuple[int, ...]]:
        """The first pieces of the words of every class, as they are cut after the prompt."""
        text, owner = Example(0, (("a",),), 0), dict[int, tuple[str, str]]()
        found = []
        for label, words in zip(self.labels, self.prompt.words, strict=True):
            pieces = []
            for word in words:
                cut = self.vocabulary.following(text, word)
                if not cut:
                    raise UsageError(
                        f"the answer {word!r} is cut together with the end of the prompt, {self.prompt.after[-20:]!r}, "
                        "which the model then doesn't read: end the prompt with a letter or sign, and begin answers "
                        "with a space"
                    )
                other = owner.setdefault(cut[0], (label, word))
                if other[0] != label:
                    raise UsageError(
                        f"{word!r} of class '{label}' and {other[1]!r} of class '{other[0]}' begin with the same "
                        f"piece, {self.tokenizer.decode([cut[0]])!r}, by which classes are told apart: choose answers "
                        "that begin differently"
                    )
                pieces.append(cut[0])
            found.append(tuple(dict.fromkeys(pieces)))
        return found


def log_sum_exp(z: Tensor) -> Tensor:
    """log Σ exp over the last dimension as Σ a z + H(a), with constant weights a = softmax(z)."""
    known = z.detach()
    weights = known.softmax(-1)
    rest = known.logsumexp(-1) - (weights * known).sum(-1)
    return (weights * z).sum(-1) + rest


def piece_names(parts: LoadedParts) -> tuple[str, ...]:
    """What every row of the vocabulary writes after another piece; a part of a letter has the tokenizer's name."""
    tokenizer = parts.tokenizer
    last: Any = output_map(parts.base)
    cutter, count = tokenizer.backend_tokenizer, last.weight.shape[0]
    known = len(tokenizer)
    anchor = cutter.encode("a", add_special_tokens=False).ids[-1]
    start = len(cutter.decode([anchor], skip_special_tokens=False))
    rows = [[anchor, row] for row in range(min(known, count))]
    said = [text[start:] for text in cutter.decode_batch(rows, skip_special_tokens=False)]
    raw = tokenizer.convert_ids_to_tokens(list(range(len(said))))
    names: dict[str, None] = {}
    for row in range(count):
        each = said[row] if row < len(said) else ""
        if not each or "\ufffd" in each or each in names:
            each = f"<{raw[row]}>" if row < len(said) else f"<row {row}>"
        names[each if each not in names else f"<row {row}>"] = None
    return tuple(names)


def output_map(base: Any) -> nn.Module:
    """The map from states to the vocabulary."""
    found = base.get_output_embeddings()
    if not isinstance(found, nn.Module):
        raise UsageError(f"{type(base).__name__} has no language-model head, by which a next word could be asked for")
    return found


def _limit(parts: LoadedParts) -> int | None:
    """Pieces that it learnt to read, also where it has no table of places."""
    learnt = getattr(parts.base.config.get_text_config(), "max_position_embeddings", None)
    return min((each for each in (limit_of(parts), learnt) if each is not None), default=None)


def _asked(pieces: SpelledRows) -> Tensor:
    """Where the next piece is predicted: at the last one of a text, [batch, 1], and at all but the last of an answer.

    An answer's have `within` −1; of a text without any piece it is the first place.
    """
    answer = pieces.real & (pieces.within < 0)
    last = ((pieces.real & ~answer).sum(-1, keepdim=True) - 1).clamp(min=0)
    return last + torch.arange(max(1, int(answer.sum(-1).max())), device=last.device)


def _at(tensor: Tensor, where: Tensor) -> Tensor:
    """[batch, piece, size] at some places, [batch, place, size]; as it is where these were chosen already."""
    return tensor if tensor.shape[1] == where.shape[1] else tensor[places(where, 0)[:, None], where]


def _continued(pieces: SpelledRows, answer: Tensor, batch: Batch) -> SpelledRows:
    """Every text with an answer after it, whose pieces are of the end symbol; `within` is −1 of these."""
    count, more = pieces.real.sum(-1, keepdim=True), len(answer)
    place = torch.arange(pieces.ids.shape[1] + more, device=pieces.ids.device)[None]
    ends = (batch.tokens == END).long().argmax(-1, keepdim=True)
    at = (place - count).clamp(min=0, max=more - 1)
    own, real = place < count, place < count + more

    def longer(column: Tensor, new: Tensor) -> Tensor:
        return torch.where(own, pad(column, (0, more)), new)

    ids = longer(pieces.ids, answer[at])
    word = torch.where(real, longer(pieces.word, ends.expand(-1, place.shape[1])), -1)
    within = longer(pieces.within, torch.full_like(at, -1))
    member = word[..., None] == places(pieces.member)
    return SpelledRows(ids, real, word, within, member.to(pieces.member.dtype))
