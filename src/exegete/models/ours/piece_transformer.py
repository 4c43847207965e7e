"""Piece Transformer: one that reads words by pieces, so that whatever explains words is tried on pieces, too.

A word is cut into chunks of `width` characters: with 3, "charming" is cha · rmi · ng. The chunks of the training words
are the table of pieces; a chunk that none of them has is the unknown piece. So a word that training did not show is
still read, and batches, sites, scores and weights are about words (`models.spelling`). Three ways to a prediction:

- `pool=attention`: the state of a word is the mean of its pieces', and an attention over words pools them.
- `pool=first`: the last state of the start symbol is read, as BERT's classifiers do (Devlin et al. 2019, section 3.2).
- `pool=mean`: the mean of the last states of all words and wrappers is read.

Where nothing pools, "the attention" of a prediction is that of the last layer: of the start symbol, or of all words.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from exegete.base.errors import UsageError
from exegete.base.places import places
from exegete.models.capabilities import Encoded
from exegete.models.contract import Intervention, Readout, ReplacedBy, Trace
from exegete.models.ours.classifier import TextClassifier, own_places
from exegete.models.ours.module import KeptSites
from exegete.models.ours.self_attention import AttentionHook
from exegete.models.ours.transformer import LAYER, Stack, StackOutput, Transformer
from exegete.models.settings import MODELS, SpelledSettings
from exegete.models.spelling import Grid, pieces_in_a_row, rewriting, spell_batch
from exegete.tasks.batching import Batch
from exegete.tasks.open_words import OpenWords
from exegete.tasks.vocabulary import PAD, SPECIAL, UNKNOWN, Vocabulary

if TYPE_CHECKING:
    from exegete.tasks.reader import Gone

INVISIBLE = "Cf"  # the Unicode category of soft hyphens and zero-width spaces, which tokenizers leave out, too


@dataclass(frozen=True, eq=False)
class Chunks(OpenWords):
    """Words in chunks of `width` characters; its length is that of the table of pieces."""

    width: int = 3

    def __len__(self) -> int:
        return len(SPECIAL) + len(self.place)

    @cached_property
    def place(self) -> dict[str, int]:
        """The row of every chunk in the table of pieces, after the special ones, in alphabetical order."""
        chunks = sorted({chunk for word in self.words for chunk in self.cut(word)})
        return {chunk: row for row, chunk in enumerate(chunks, start=len(SPECIAL))}

    def cut(self, word: str) -> list[str]:
        """Neighbouring chunks of what can be seen of a word; none where nothing can."""
        seen = "".join(letter for letter in word if unicodedata.category(letter) != INVISIBLE)
        return [seen[start : start + self.width] for start in range(0, len(seen), self.width)]

    def spell(self, row: int) -> tuple[int, ...]:
        """The pieces of a row: wrappers and the unknown word are pieces of their own, padding has none."""
        if row == PAD:
            return ()
        if row < len(SPECIAL):
            return (row,)
        if row not in self._spelt:
            (word,) = self.spelled((row,))
            self._spelt[row] = tuple(self.place.get(chunk, UNKNOWN) for chunk in self.cut(word))
        return self._spelt[row]

    @cached_property
    def _spelt(self) -> dict[int, tuple[int, ...]]:
        return {}

    def knows(self, word: str) -> bool:
        """Whether all of its chunks have a piece."""
        return all(chunk in self.place for chunk in self.cut(word))

    def cost(self, rows: Tensor) -> Tensor:
        """Pieces of every row."""
        some, at = rows.unique(return_inverse=True)
        return torch.tensor([len(self.spell(row)) for row in some.tolist()], device=rows.device)[at]

    def without(self, rows: Tensor, by: "Gone") -> Tensor:
        """Words of n pieces look alike once they are zeroed, or all of their pieces unknown."""
        return (-2 * self.cost(rows) - int(by == "unknown")).to(rows.dtype)

    @cached_property
    def fingerprint(self) -> str:
        """Of the words, the wrapping and the width."""
        return f"{super().fingerprint}-{self.width}"


class Spelled(TextClassifier):
    """What both kinds share: words to pieces, layers over pieces, and what these made of words."""

    settings: SpelledSettings
    vocabulary: Chunks
    encoder: Stack

    def __init__(self, spec: str, vocabulary: Vocabulary, labels: tuple[str, ...], size: int | None = None) -> None:
        chunks = Chunks(vocabulary.words, vocabulary.wrap, MODELS.make(spec).width)
        super().__init__(spec, chunks, labels, size)

    def looked_up(self, batch: Batch) -> Tensor:
        """The rows of a word's pieces side by side, [batch, token, P · size]."""
        grid = self._grid(batch)
        return grid.beside(self.embedding(grid.ids))

    def replaced(self, batch: Batch, words: Tensor, by: ReplacedBy) -> Tensor:
        """Piece by piece: a word keeps its width."""
        grid = self._grid(batch)
        other = torch.zeros((), device=words.device) if by == "zero" else grid.beside(self._other(grid, by))
        return torch.where(words[..., None], other, self.embed(batch))

    def _other(self, grid: Grid, by: ReplacedBy) -> Tensor:
        """What stands in the place of pieces, [batch, token, P, size]."""
        if by != "mean":
            return self.embedding(torch.full_like(grid.ids, UNKNOWN if by == "unknown" else PAD))  # type: ignore[no-any-return]
        if not self.vocabulary.place:
            raise UsageError("a mean word needs a vocabulary with words: lower the task's min_df")
        return self.embedding.weight[len(SPECIAL) :].mean(0).expand(*grid.ids.shape, -1)

    def _grid(self, batch: Batch) -> Grid:
        return spell_batch(batch, self.vocabulary.spell)

    def _read(
        self, batch: Batch, embedded: Tensor | None, intervene: Intervention | None, keep: KeptSites = ()
    ) -> StackOutput:
        """The layers over pieces, folded to words."""
        pieces = pieces_in_a_row(self._grid(batch))
        vectors = pieces.vectors(self.embed(batch) if embedded is None else embedded, self.size)

        def at(name: str) -> AttentionHook | None:
            return None if intervene is None else rewriting(name, batch, pieces, intervene)

        found = self.encoder.read(vectors, pieces.real, at, keep)
        return StackOutput(
            pieces.states_of_words(found.states),
            {site: pieces.weights_of_words(weights) for site, weights in found.weights.items()},
            {site: pieces.states_of_words(moved) for site, moved in found.moved.items()},
        )

    @property
    def self_attention(self) -> tuple[str, ...]:
        """The site of every layer, from the words up."""
        return tuple(f"{LAYER}{number}" for number in range(self.settings.layers))


class PooledSpelled(Spelled, Transformer):  # type: ignore[misc]
    """An attention over words pools their states."""

    settings: SpelledSettings

    def _pooling(self, states: Tensor, batch: Batch) -> Encoded:
        """A word without pieces is no key: it has no state."""
        whole = super()._pooling(states, batch)
        return whole._replace(mask=batch.words & (batch.cost > 0))


class ReadSpelled(Spelled):
    """The state of the start symbol, or the mean of all states, is decoded."""

    def _make_layers(self) -> None:
        self.encoder = Stack(self.settings, self.size)
        self.decoder = nn.Linear(self.encoder.out, self.outputs)

    @property
    def sites(self) -> tuple[str, ...]:
        """Every layer."""
        return self.self_attention

    @property
    def readout(self) -> Readout:
        """The last layer, as the start symbol sees it, or as all words do."""
        return Readout(self.sites[-1:], "first" if self.settings.pool == "first" else "every")

    def attention_parameters(self) -> Iterator[nn.Parameter]:
        """Queries and keys of every layer."""
        yield from self.encoder.attention_parameters()

    def _trace(self, batch: Batch, embedded: Tensor | None, intervene: Intervention | None, keep: KeptSites) -> Trace:
        layers = self._read(batch, embedded, intervene, keep)
        logits = self.two_sided(self.decoder(self._context(layers.states, batch)))
        return Trace(logits, layers.weights, layers.moved, dict.fromkeys(self.sites, own_places(batch)))

    def _context(self, states: Tensor, batch: Batch) -> Tensor:
        """What is decoded: [batch, size]."""
        if self.settings.pool == "first":
            return states[places(states, 0), batch.present.byte().argmax(-1)]
        read = batch.present & (batch.cost > 0)
        return (states * read[..., None]).sum(1) / read.sum(-1, keepdim=True).clamp(min=1)
