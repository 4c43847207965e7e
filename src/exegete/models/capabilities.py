"""Capabilities: what some models can do beyond predicting. Whoever needs one asks for its protocol, not for a class."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

import torch
from torch import Tensor, nn

from exegete.models.contract import Intervention, Predictor, Trace
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example, Task


class Encoded(NamedTuple):
    """A batch, encoded once, to be decoded under any weights."""

    states: Tensor  # [batch, key, size]
    scores: Tensor  # [batch, key], before projection
    mask: Tensor  # [batch, key], True on real keys
    values: Tensor | None  # [batch, key, class]: W h_t, if the decoder is linear
    query: Tensor | None = None  # [batch, size]: what else the decoder reads, such as the state of a question
    candidates: Tensor | None = None  # [batch, candidate]: as in the batch

    def to(self, dtype: torch.dtype) -> "Encoded":
        """In another precision: decoders compute in that of what they decode."""
        values, query = (None if x is None else x.to(dtype) for x in (self.values, self.query))
        return self._replace(states=self.states.to(dtype), scores=self.scores.to(dtype), values=values, query=query)

    def rows(self, which: Tensor) -> "Encoded":
        """Some of its examples."""
        return Encoded(*(None if column is None else column[which] for column in self))  # type: ignore[arg-type]


@runtime_checkable
class Trainable(Predictor, Protocol):
    """A model that can be trained, and kept as a checkpoint."""

    @property
    def as_it_is(self) -> bool:
        """Whether it came trained: there is nothing to learn."""

    def attention_parameters(self) -> Iterator[nn.Parameter]:
        """What decides the weights and nothing else."""

    def penalty(self) -> Tensor | float:
        """What training adds to the loss of the batch that was just traced."""

    def state(self) -> dict[str, Any]:
        """What it is rebuilt from beside its weights, as JSON takes it."""

    def parameters(self) -> Iterator[nn.Parameter]:
        """All that may be learnt."""

    def state_dict(self) -> dict[str, Any]:
        """Its weights by name."""

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> Any:
        """Take weights by name."""

    def train(self) -> Self:
        """As it is while it learns: what is random is drawn."""

    def eval(self) -> Self:
        """As it is ever after: nothing is random."""


@runtime_checkable
class Saving(Trainable, Protocol):
    """A model that writes its own files: others than ours read them, too."""

    def save(self, folder: Path) -> None:
        """Its weights and all else that it is read from again."""


@runtime_checkable
class Pretrained(Saving, Protocol):
    """A model that comes with classes and a way of reading of its own."""

    @property
    def adds_positions(self) -> bool:
        """Whether every place has a vector of its own that is added to the word's."""

    def relabelled(self, labels: tuple[str, ...]) -> Self:
        """The model with these classes, matched to its own by name."""

    def notes(self, task: Task) -> tuple[str, ...]:
        """What a reader must know of how it reads a task, in sentences."""

    def head_parameters(self) -> Iterator[nn.Parameter]:
        """What is new in it and has learnt nothing yet."""

    def lengths(self, examples: Sequence[Example]) -> list[int]:
        """What reading every example takes, in pieces."""


@runtime_checkable
class Pooling(Predictor, Protocol):
    """A model whose last attention pools states for a decoder that sees nothing else of it."""

    @property
    def dtype(self) -> torch.dtype:
        """The precision that it computes in by itself."""

    def encode(self, batch: Batch, *, embedded: Tensor | None = None) -> Encoded:
        """States and scores, once."""

    def weigh(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Scores [..., key] to weights, as the last attention does."""

    def decode(self, encoded: Encoded, weights: Tensor) -> Tensor:
        """Weights [batch, draw, key] to logits [batch, draw, class], many times."""

    def null_keys(self, encoded: Encoded) -> Tensor | None:
        """Keys of value 0 that take the weight that no word has, [batch, key]; None: there are none."""


@runtime_checkable
class Unpooled(Predictor, Protocol):
    """A model that knows why it is not `Pooling`, for whoever asked."""

    def unpooled(self) -> str:
        """Why its attention can't be rewritten after encoding, as a sentence."""


@runtime_checkable
class Writing(Predictor, Protocol):
    """A model that writes a text word by word: its logits are [batch, step, word]."""

    @property
    def words(self) -> tuple[str, ...]:
        """What it may write, by row."""

    def begin(self, batch: Batch, *, embedded: Tensor | None = None, intervene: Intervention | None = None) -> Any:
        """Read the sources; nothing is written yet."""

    def advance(self, writing: Any, tokens: Tensor) -> tuple[Tensor, Any]:
        """Read one more token of what is written, [batch]: logits of the next [batch, word]."""

    def last(
        self,
        batch: Batch,
        *,
        embedded: Tensor | None = None,
        intervene: Intervention | None = None,
        keep: Collection[str] | None = None,
    ) -> Trace:
        """`trace` of the last step alone: logits [batch, word], and one query at the decoder's sites."""

    def as_classes(self) -> Any:
        """The model as a classifier of the word that follows a given beginning: a `Stepwise` one."""


@runtime_checkable
class Stepwise(Predictor, Protocol):
    """A writing model seen as a classifier of its next word: attention acts at every step before it, too."""

    @property
    def writer(self) -> Writing:
        """What writes."""


@runtime_checkable
class Continuing(Predictor, Protocol):
    """A language model whose classes are the pieces that may come next."""

    def next_word(self, example: Example) -> str:
        """The likeliest next word, of one piece or several."""

    def pieces_after(self, example: Example, answer: str) -> tuple[int, ...]:
        """The pieces of an answer as it is cut after a text, by their places among the classes."""

    def answering(self, answers: Sequence[tuple[int, ...]]) -> Any:
        """A model whose classes are one or two answers, given by their pieces: log p, the sum over them."""


@runtime_checkable
class Selecting(Predictor, Protocol):
    """A model that reads only the words it has selected."""

    def selected(self, batch: Batch) -> Tensor:
        """Which words may be read, [batch, token]."""


@runtime_checkable
class Voting(Predictor, Protocol):
    """A model whose words vote: its decisions jump, and what every vote brings is known by construction."""

    def effects(self, batch: Batch) -> Tensor:
        """What deleting each word takes from every logit, [batch, token, class]."""


@runtime_checkable
class Recurrent(Pooling, Protocol):
    """A model that pools the states of one bidirectional LSTM over its embeddings."""

    @property
    def lstm(self) -> nn.LSTM:
        """What makes states of embeddings."""


@runtime_checkable
class Deleting(Predictor, Protocol):
    """A model that predicts without each of its words faster than by as many passes."""

    def deletions(self, batch: Batch, instead: Tensor | None = None, asked: Tensor | None = None) -> "Deletions":
        """Of whole texts, and with each word deleted in turn, or another one, [batch], in its place.

        Of the words that are asked about, [batch, token]; of all, unless given.
        """


class Deletions(NamedTuple):
    """What a model predicts of texts with all their words, and without each of them."""

    whole: Tensor  # [batch, class]; NaN for a text without tokens
    without: Tensor  # [batch, token, class]; NaN where the token is no word, or was not asked about


@runtime_checkable
class Resuming(Predictor, Protocol):
    """A model that need not run anew what lies below a site, where only the weights there are others."""

    def begun(self, batch: Batch, site: str, intervene: Intervention, *, whole: bool = False) -> "Begun":
        """Run a batch once under an intervention, up to a site; whole: of which all queries are to be seen."""


class Begun(Protocol):
    """A batch that was run up to a site."""

    @property
    def one_query(self) -> bool:
        """Whether, of the queries of the site, an intervention sees the one alone that is read."""

    def logits(self, rows: Tensor, intervene: Intervention) -> Tensor:
        """Of some of its texts, [row], each as often as it is named: [row, class]. What acts from the site on acts."""


@runtime_checkable
class SelfAttentive(Protocol):
    """A model in whose first layers the tokens look at each other."""

    @property
    def self_attention(self) -> tuple[str, ...]:
        """The sites at which queries and keys are the tokens of the input, from the words up."""


@runtime_checkable
class Paired(Predictor, Protocol):
    """A model of two texts, one of which asks about the other."""

    @property
    def texts(self) -> tuple[str, str]:
        """What they are called, in their order in an example."""


class LayersByKind(Protocol):
    """Layers by kind, `layers("linear", x, weight, bias)`: whoever runs a model by them gives every kind its rule."""

    def __call__(self, kind: str, *arguments: Tensor) -> Tensor:
        """What a layer of this kind computes."""


class Layered(NamedTuple):
    """What a model computed layer by layer."""

    logits: Tensor  # [batch, class]
    initial: tuple[Tensor, ...]  # [way, batch, hidden] each: the zeros that recurrent encoders start from


@runtime_checkable
class Relevant(Predictor, Protocol):
    """A model that can be run layer by layer, in float64: so that relevance goes back through it by rules of layers."""

    @property
    def layer_kinds(self) -> tuple[str, ...]:
        """The kinds of layers between embeddings and logits, from the words up."""

    def layered(self, batch: Batch, embedded: Tensor, layers: LayersByKind) -> Layered:
        """Run texts of equal lengths from their embeddings [batch, token, size]; attention weights are constants."""


@runtime_checkable
class Composed(Predictor, Protocol):
    """A model of sums, linear maps, norms, activations and attention, all computed by torch's functions.

    None of it is recurrent. So relevance goes back through it by rules of these functions.
    """

    def parts(self) -> Iterator[nn.Module]:
        """All modules that it is made of."""
