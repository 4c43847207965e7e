"""A model of transformers on words: it spells them into pieces, and folds what it computed back (`models.spelling`)."""

import hashlib
import inspect
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook

from exegete.base.errors import ExegeteError, UsageError
from exegete.base.names import Spec, parse
from exegete.models.contract import Intervention, Query, ReplacedBy, Trace, refuse_foreign
from exegete.models.huggingface.attention import AttentionPass, input_embeddings, one_at_a_time
from exegete.models.huggingface.decomposition import decompose_layers, why_not
from exegete.models.huggingface.load import LoadedParts, quiet
from exegete.models.huggingface.one_query import BegunAtOne, begin, logits_of_one
from exegete.models.huggingface.parameters import attention_parameters, freeze, layers_of
from exegete.models.huggingface.proof import Proof
from exegete.models.huggingface.resumption import BegunPass
from exegete.models.huggingface.sites import Access, probe_sites, reading
from exegete.models.huggingface.source import settings_of
from exegete.models.huggingface.word_pieces import PROBES, WordPieces, reader_of
from exegete.models.ours.classifier import own_places
from exegete.models.ours.module import KeptSites, Model, hash_tensors
from exegete.models.ours.self_attention import AttentionHook
from exegete.models.separable import Apart, Copies, Mixed
from exegete.models.spelling import Grid, SpelledRows, pieces_in_a_row, rewriting
from exegete.tasks.batching import Batch
from exegete.tasks.catalogue import load_task
from exegete.tasks.example import Example, Task
from exegete.tasks.tokenizers import VERBATIM

HEAD = "head.safetensors"  # beside transformers' own files: the tensors of a head of ours
TEXTS = ("passage", "question")  # of a model of pairs
REWRITTEN = 100  # texts by which it is shown what another way of writing them changes
MANY = 256  # pieces of a batch from which on a pass that narrows at its end is the faster one
Around = Callable[[AttentionPass], AbstractContextManager[Any]]


class ModelOutput(NamedTuple):
    """What the model made of a batch."""

    pieces: SpelledRows
    output: Any  # transformers' own
    weights: dict[str, Tensor]  # by site that was kept: [batch, head, word, word]
    states: dict[str, Tensor]  # by site: [batch, word, size]


class HuggingFace(Model):
    """Words in, one class out, through a model of transformers."""

    vocabulary: WordPieces
    texts: tuple[str, str]  # only of a model of pairs
    proof: Proof  # that its attention is read and rewritten
    ends_at_padding = True  # a text ends where the padding piece is; else where there are no more pieces

    def __init__(
        self, spec: str, parts: LoadedParts, labels: tuple[str, ...], reader: WordPieces | None = None
    ) -> None:
        table, settings = input_embeddings(parts.base), settings_of(spec)
        limit = limit_of(parts)
        reader = reader or reader_of(parts.tokenizer, limit if settings.truncate else None)
        super().__init__(spec, reader, labels, table.embedding_dim)
        self.settings, self.place, self.limit = settings, parts.place, limit
        self.base, self.tokenizer = parts.base, parts.tokenizer
        _check_pieces(self, table)
        self.invented_padding = self._pad()
        if self.settings.pair:
            self.texts = TEXTS
        self.access: Access = self._probed()
        freeze(self.base, self.access, self.settings.frozen)

    def _probed(self) -> Access:
        batch = self.collate([Example(0, (tuple(PROBES[0].split()),), 0)])
        return probe_sites(self.base, self.inputs(self.pieces(batch), batch))

    @property
    def who(self) -> str:
        """Its name, for sentences about it."""
        return parse(self.spec).name

    @property
    def sites(self) -> tuple[str, ...]:
        """Every layer that attends, from the words up."""
        return self.access.sites

    @property
    def self_attention(self) -> tuple[str, ...]:
        """Every layer that attends, from the words up: all are self-attention."""
        return self.access.sites

    @property
    def tables(self) -> tuple[nn.Embedding, ...]:
        """The embeddings of pieces."""
        return (input_embeddings(self.base),)

    @property
    def encoder(self) -> nn.Module:
        """All layers of transformers' model, which can only be drawn anew together."""
        base: nn.Module = self.base
        return base

    def parts(self) -> Iterator[nn.Module]:
        """Those of transformers, and a head of ours."""
        yield from self.modules()

    def inseparable(self, at: Apart) -> str | None:
        """Found out on a text, once for every place."""
        known: dict[Apart, str | None] = self.__dict__.setdefault("_inseparable", {})
        if at not in known:
            known[at] = why_not(self, at)
        return known[at]

    def apart(self, batch: Batch, at: Apart, compare: Callable[[Copies], Tensor]) -> Mixed:
        """By leaving each word out of each layer."""
        return decompose_layers(self, batch, at, compare)

    @cached_property
    def adds_positions(self) -> bool:
        """By its tables."""
        return any(True for _ in _positions(self.base))

    def pieces(self, batch: Batch) -> SpelledRows:
        """Every text's pieces in one row; a text that is too long is refused, or cut where `truncate` says so."""
        pieces = pieces_in_a_row(self.vocabulary.grid(batch))
        lengths = pieces.real.sum(-1)
        if self.limit is not None and pieces.real.shape[1] > self.limit:
            text = int(lengths.argmax())
            words = self.reader.spelled(batch.tokens[text][batch.sentence[text] >= 0].tolist())
            which = f"the text that begins '{' '.join(words[:5])}'"
            raise too_long(self, which, len(words), int(lengths[text]))
        if int(pieces.ids.max()) >= self.tables[0].num_embeddings:
            piece = self.tokenizer.convert_ids_to_tokens(int(pieces.ids.max()))
            raise UsageError(
                f"a text holds {piece}, which the tokenizer knows and {self.who} has no embedding of: resize the "
                "model's embeddings, or leave such texts out"
            )
        if self.ends_at_padding and self.invented_padding and bool((pieces.real & (pieces.ids == self.padding)).any()):
            piece = self.tokenizer.convert_ids_to_tokens(self.padding)
            raise UsageError(
                f"{self.who} has no padding piece, and a text holds {piece}, which stands for it here: set "
                "config.pad_token_id to a piece that no text holds"
            )
        return pieces._replace(ids=pieces.ids.where(pieces.real, self.padding))

    @property
    def padding(self) -> int:
        """The piece that stands for padding to the model."""
        return int(self.base.config.get_text_config().pad_token_id)

    def _pad(self) -> bool:
        """Whether a model knew no padding piece: it gets a special one that the tokenizer puts around no text.

        By this piece transformers' causal classifiers know where a text ends.
        """
        config, cutter = self.base.config.get_text_config(), self.tokenizer
        if config.pad_token_id is not None:
            return False
        around = set(chain.from_iterable(self.vocabulary.wrappers))
        given = (cutter.pad_token_id, cutter.eos_token_id, cutter.unk_token_id, cutter.vocab_size - 1, 0)
        rows = self.tables[0].num_embeddings
        config.pad_token_id = next(each for each in given if each is not None and each < rows and each not in around)
        return True

    def inputs(self, pieces: SpelledRows, batch: Batch) -> dict[str, Tensor | bool]:
        """What transformers' model is called with."""
        given: dict[str, Tensor | bool] = {"input_ids": pieces.ids, "attention_mask": pieces.real.long()}
        takes = self._takes
        if "token_type_ids" in takes and "token_type_ids" in self.tokenizer.model_input_names:
            of = batch.part.clamp(min=0).gather(-1, pieces.word.clamp(min=0))
            given["token_type_ids"] = of.where(pieces.real, 0)
        return given | ({"use_cache": False} if "use_cache" in takes else {})

    def call(self, pieces: SpelledRows, batch: Batch) -> Any:
        """What transformers' model makes of these pieces, by itself."""
        return self.base(**self.inputs(pieces, batch))

    @cached_property
    def _takes(self) -> frozenset[str]:
        return frozenset(inspect.signature(self.base.forward).parameters)

    def looked_up(self, batch: Batch) -> Tensor:
        """The embeddings of a word's pieces side by side, [batch, token, P · size]."""
        grid = self.grid(batch)
        return grid.beside(self.tables[0](grid.ids))

    def grid(self, batch: Batch) -> Grid:
        """The pieces whose embeddings are those of a word."""
        return self.vocabulary.grid(batch)

    def vectors(self, pieces: SpelledRows, batch: Batch, embedded: Tensor) -> Tensor:  # noqa: ARG002
        """The embeddings of pieces, [batch, piece, size], of those of words."""
        return pieces.vectors(embedded, self.size)

    def replaced(self, batch: Batch, words: Tensor, by: ReplacedBy) -> Tensor:
        """Piece by piece: a word keeps its width. Unknown is the mask piece, where the tokenizer has one."""
        grid, table = self.grid(batch), self.tables[0]
        if by == "zero":
            other = torch.zeros((), device=words.device)
        elif by == "mean":
            rows = table(torch.arange(table.num_embeddings, device=words.device)).mean(0)
            other = grid.beside(rows.expand(*grid.ids.shape, -1))
        else:
            piece = self.vocabulary.unknown if by == "unknown" else self.padding
            other = grid.beside(table(torch.full_like(grid.ids, piece)))
        return torch.where(words[..., None], other, self.embed(batch))

    def read(
        self, batch: Batch, embedded: Tensor | None, intervene: Intervention | None, keep: KeptSites = ()
    ) -> ModelOutput:
        """One pass over pieces, folded to words."""
        pieces = self.pieces(batch)
        vectors = None if embedded is None else self.vectors(pieces, batch, embedded)
        return self.run(batch, pieces, intervene, keep, vectors)

    def run(
        self,
        batch: Batch,
        pieces: SpelledRows,
        intervene: Intervention | None,
        keep: KeptSites = (),
        vectors: Tensor | None = None,
        around: Around = lambda run: nullcontext(),  # noqa: ARG005
    ) -> ModelOutput:
        """One pass over pieces, with what is put around it."""

        def at(name: str) -> AttentionHook | None:
            return None if intervene is None else rewriting(name, batch, pieces, intervene)

        with reading(self.base, self.access, at, keep, vectors) as run, around(run):
            output = self.call(pieces, batch)
        if any(found.shape[-1] != pieces.ids.shape[1] for found in run.weights.values()):
            raise UsageError(
                f"{self.who} attends to places that no text has, as prompt and prefix tuning add them, and they belong "
                "to no word: take an adapter that is merged into the weights, as LoRA's is"
            )
        weights = {site: pieces.weights_of_words(found, self.query) for site, found in run.weights.items()}
        return ModelOutput(
            pieces, output, weights, {site: pieces.states_of_words(own) for site, own in run.states.items()}
        )

    def logits(self, batch: Batch, *, embedded: Tensor | None = None, intervene: Intervention | None = None) -> Tensor:
        """[batch, class], and nothing kept; of the last layer only what is read, where enough is saved by that."""
        if intervene is not None or self.training or not self._reads_one or int(batch.cost.sum()) < MANY:
            return super().logits(batch, embedded=embedded, intervene=intervene)
        refuse_foreign(batch, self.reader)
        return logits_of_one(self, batch, embedded)

    @property
    def _reads_one(self) -> bool:
        """Whether one query is read, the proof has shown that it may go on alone, and nobody listens to layers."""
        if not (hasattr(self, "proof") and self.proof.narrows):
            return False
        with one_at_a_time:  # hooks of ours are gone then
            return not (_has_any_global_hook() or any(map(_heard, self.base.modules())))

    def _trace(self, batch: Batch, embedded: Tensor | None, intervene: Intervention | None, keep: KeptSites) -> Trace:
        return self.told(self.read(batch, embedded, intervene, keep), batch, intervene)

    def told(self, read: ModelOutput, batch: Batch, intervene: Intervention | None) -> Trace:  # noqa: ARG002
        """What a pass tells; an intervention acts at sites of ours after it."""
        owner = dict.fromkeys(read.weights, own_places(batch))
        return Trace(self.decoded(read, batch), read.weights, read.states, owner)

    def read_out(self, pieces: SpelledRows, output: Any, batch: Batch, intervene: Intervention | None) -> Tensor:
        """Logits [batch, class] of what transformers' model gave of these pieces."""
        return self.told(ModelOutput(pieces, output, {}, {}), batch, intervene).logits

    def begun(self, batch: Batch, site: str, intervene: Intervention, *, whole: bool = False) -> BegunPass | BegunAtOne:
        """Run a batch once under an intervention; what is below a site is kept, and passes may start there."""
        narrow = self.proof.narrows and not (self.training or whole)
        return begin(self, batch, site, intervene, self._skipped, narrow)

    @property
    def _skipped(self) -> Sequence[str]:
        """Layers that a resumed pass leaves out; none where the proof found that it computes something else."""
        return layers_of(self.access) if self.proof.resumes and not self.training else ()

    @property
    @abstractmethod
    def query(self) -> Query:
        """Which query of the last site a prediction is read from."""

    @abstractmethod
    def decoded(self, read: ModelOutput, batch: Batch) -> Tensor:
        """Logits [batch, class] from what the model made of the words."""

    def attention_parameters(self) -> Iterator[nn.Parameter]:
        """Queries and keys of every layer, as far as they are parameters of their own."""
        yield from attention_parameters(self.base, self.access)

    @abstractmethod
    def relabelled(self, labels: tuple[str, ...]) -> Self:
        """The model with these classes, matched to its own by name."""

    def notes(self, task: Task) -> tuple[str, ...]:
        """How its attention is reached, and where a task writes texts otherwise than people do."""
        said = (f"{self.who}: {self.proof.sentence}", *self._kept_here(), *self._cut(task))
        if not (self.as_it_is and (task.lower or task.tokenizer not in VERBATIM)):
            return said
        rewritten = (
            f"{self.who} was trained elsewhere and reads texts here as task '{task.name}' cuts and writes them "
            f"(tokenizer={task.tokenizer}, lower={str(task.lower).lower()}): {self._changed_by(task)}; to leave them "
            "as people wrote them, set tokenizer=whitespace,lower=false"
        )
        return *said, rewritten

    def _kept_here(self) -> Iterator[str]:
        if self.settings.wrapped:
            yield (
                f"{self.who} is not what transformers makes of its files, and was asked in this process as it is, by "
                "one worker"
            )

    def _cut(self, task: Task) -> Iterator[str]:
        """How many texts are longer than what is read."""
        for split, examples in task.splits.items():
            if not self.settings.truncate or self.limit is None or (split == "train" and self.as_it_is):
                continue
            long = sum(pieces > self.limit for pieces in self.lengths(examples))
            if long:
                yield (
                    f"{long:,} of {len(examples):,} texts of {split} have more than {self.limit:,} pieces, and "
                    f"{self.who} reads their beginning only (truncate=true)"
                )

    def _changed_by(self, task: Task) -> str:
        """How a task's way of writing texts changes predictions, on some texts of its test split."""
        spec = parse(task.name)
        as_people = Spec(spec.name, spec.settings | {"tokenizer": "whitespace", "lower": "false"})
        try:
            original = {example.id: example for example in load_task(str(as_people)).split("test")}
        except ExegeteError:
            return "what that changes can't be told, as they can't be read again"
        pairs = [(original[e.id], e) for e in task.split("test") if e.id in original][:REWRITTEN]
        with torch.no_grad():
            one, other = (
                torch.cat([self.logits(self.collate([example])).softmax(-1) for example in side])
                for side in zip(*pairs, strict=True)
            )
        written = sum(one != other for one, other in ((self._ids(a), self._ids(b)) for a, b in pairs))
        flips = int((one.argmax(-1) != other.argmax(-1)).sum())
        largest = float((one - other).abs().max())
        return (
            f"of {len(pairs)} test texts {written} have other pieces than as people wrote them, {flips} another "
            f"prediction, and a probability changes by up to {largest:.3f}"
        )

    def _ids(self, example: Example) -> list[int]:
        pieces = self.pieces(self.collate([example]))
        ids: list[int] = pieces.ids[pieces.real].tolist()
        return ids

    def lengths(self, examples: Sequence[Example]) -> list[int]:
        """Pieces of every example, the symbols around and between its texts included."""
        return [self.vocabulary.length(example) for example in examples]

    def head(self) -> dict[str, Tensor]:
        """The tensors that are not transformers': of a head of ours."""
        return {name: tensor for name, tensor in self.state_dict().items() if not name.startswith("base.")}

    def save(self, folder: Path) -> None:
        """Write it as transformers does, so that transformers can read it; a head of ours lies beside."""
        with quiet():
            self.base.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)
        if head := self.head():
            save_file({name: tensor.contiguous() for name, tensor in head.items()}, folder / HEAD)

    def fingerprint(self) -> str:
        """Of weights, tokenizer, classes and settings, of which files, by which transformers and which access."""
        settings = sorted(parse(self.spec).settings.items())
        how = (self.place, version("transformers"), str(self.dtype), self.access.way, _own_code(type(self.base)))
        parts = (settings, self.labels, self.reader.fingerprint, self._weights(), how)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]

    def _weights(self) -> str:
        """The hash of all weights, taken again only where one was written to."""
        tensors = self.state_dict()
        written = tuple((tensor.data_ptr(), tensor._version) for tensor in tensors.values())
        known: tuple[Any, str] | None = self.__dict__.get("_hashed")
        if known is None or known[0] != written:
            known = (written, hash_tensors(tensors))
            self.__dict__["_hashed"] = known
        return known[1]

    def state(self) -> dict[str, Any]:
        """Name, size and classes; words need no table."""
        return super().state() | {"access": self.access.way, "transformers": version("transformers")}


def _heard(part: nn.Module) -> bool:
    """Whether somebody listens to what goes through it, forwards or backwards."""
    return bool(part._forward_hooks or part._forward_pre_hooks or part._backward_hooks or part._backward_pre_hooks)


def _own_code(kind: type) -> str:
    """What a class does that is none of transformers': its source, or else the code of its forward."""
    if kind.__module__.startswith("transformers."):
        return ""
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):  # typed in
        return repr((kind.__qualname__, kind.forward.__code__.co_code, kind.forward.__code__.co_consts))  # type: ignore[attr-defined]


def too_long(model: HuggingFace, which: str, words: int, pieces: int, most: int | None = None) -> UsageError:
    """An error for a text that the model can't read whole; `most` words would be few enough."""
    longest = "…" if most is None else str(max(1, most))
    return UsageError(
        f"{which} has {pieces:,} pieces ({words:,} words), and {model.who} reads {model.limit:,} pieces at most: cut "
        f"long texts as pipelines do, with the model's setting truncate=true, or leave them out with the task's "
        f"setting max_length={longest}, in words"
    )


def check_lengths(model: HuggingFace, task: Task) -> None:
    """Refuse texts that are too long before anything is computed; those of train count only where it is trained."""
    if model.limit is None or model.settings.truncate:
        return
    for split, examples in task.splits.items():
        if split == "train" and model.as_it_is:
            continue
        lengths = model.lengths(examples)
        long = [(e, pieces) for e, pieces in zip(examples, lengths, strict=True) if pieces > model.limit]
        if long:
            example, pieces = long[0]
            most = min(max(map(len, e.texts)) for e, _ in long) - 1
            others = f" (and {len(long) - 1:,} more)" if len(long) > 1 else ""
            which = f"row {example.id + 1:,} of {split}{others}"
            raise too_long(model, which, len(example.all_words), pieces, most)


def limit_of(parts: LoadedParts) -> int | None:
    """Pieces that a text may have, symbols included; None: any number."""
    given = [parts.tokenizer.model_max_length, *_positions(parts.base)]
    return min((int(each) for each in given if each is not None and each < 1 << 30), default=None)


def _check_pieces(model: HuggingFace, table: nn.Embedding) -> None:
    """A tokenizer may have fewer pieces than a model has rows for, never more; what was added to it may be unused."""
    pieces = model.vocabulary.tokenizer.get_vocab_size(with_added_tokens=False)
    if pieces > table.num_embeddings:
        raise UsageError(
            f"the tokenizer has {pieces:,} pieces and {model.who} has embeddings of {table.num_embeddings:,}: it is "
            "another model's; give the one that the model was trained with"
        )


def _positions(base: nn.Module) -> Iterator[int]:
    """Places in tables of positions; some start after the row of padding (RoBERTa)."""
    for name, part in base.named_modules():
        if isinstance(part, nn.Embedding) and name.rpartition(".")[2] in ("position_embeddings", "wpe"):
            yield part.num_embeddings - (0 if part.padding_idx is None else part.padding_idx + 1)
