"""One query: where a prediction is read from one query of the last site, only what that one gives is computed again.

What comes after the weights (output map, residual, norms, feed-forward layer, head) is computed place by place, so that
a resumed pass need not hold the other places: keys and values of the last site are remembered, layers below it give the
state of this query, and the model runs as if every text were one piece long. MiniLM then takes a tenth of a millisecond
for other weights, where a pass of 26 pieces takes eight, and gradients go the same short way.

A prediction as such goes the same way: a pass ends where the last site is reached, and goes on with one query. Of six
layers that leaves out an eighth of all products, forwards and backwards, whatever was asked.

Nothing is known of the architecture; that it computes the same is tried at load (`proof`). It is none where values are
multiplied out of our sight (access by softmax), or where more than one query is read.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from exegete.base.places import places
from exegete.models.contract import Intervention, Readout, query_rows
from exegete.models.huggingface.attention import AttentionInputs, AttentionPass, real_queries
from exegete.models.huggingface.parameters import layers_of
from exegete.models.huggingface.resumption import BegunPass, Below, each, recording, resuming
from exegete.models.huggingface.sites import reading
from exegete.models.ours.self_attention import AttentionHook
from exegete.models.spelling import SpelledRows, rewriting
from exegete.tasks.batching import Batch

if TYPE_CHECKING:
    from exegete.models.huggingface.model import HuggingFace


class Reached(Exception):  # noqa: N818 - nothing is wrong
    """The last site is reached, and what its query looks at is known: nobody reads the rest of this pass."""


class QueryRow(NamedTuple):
    """What the query of every text that is read looks at."""

    site: str
    query: Tensor  # [batch]: its piece
    look: AttentionInputs  # scores and mask of this query alone

    def of(self, rows: Tensor) -> AttentionInputs:
        """Of some texts."""
        scores, mask, project, value = self.look
        return AttentionInputs(scores[rows], mask[rows], project, value[rows])


@dataclass(frozen=True)
class BegunAtOne:
    """A batch of words, run up to the last site, of which one query per text goes on."""

    model: "HuggingFace"
    batch: Batch
    pieces: SpelledRows
    below: Below  # of this query
    row: QueryRow
    one_query: bool = True

    def logits(self, rows: Tensor, intervene: Intervention | None, vectors: Tensor | None = None) -> Tensor:
        """Of some of its texts, [row], under an intervention, if any, at the site, which has one query: [row, class].

        `vectors` [row, 1, size] stand for the embedding of this query; its own, unless given.
        """
        batch, pieces = self.batch.rows(rows), self.pieces.rows(rows)
        one = pieces.at(self.row.query[rows])

        def at(name: str) -> AttentionHook | None:
            return None if intervene is None else rewriting(name, batch, pieces, intervene, one.word)

        base, texts = self.model.base, len(self.batch.ids)
        with reading(base, self.model.access, at, (), vectors) as run, resuming(base, run, self.below, rows, texts):
            run.look = lambda name, look: self.row.of(rows) if name == self.row.site else look
            output = self.model.call(one, batch)
        return self.model.read_out(one, output, batch, intervene)


def logits_of_one(model: "HuggingFace", batch: Batch, embedded: Tensor | None) -> Tensor:
    """Logits [batch, class], from embeddings if given, by a pass that goes on with the one query that is read."""
    pieces, readout = model.pieces(batch), Readout(model.sites[-1:], model.query)
    if model.ends_at_padding and readout.query == "last" and bool((pieces.real & (pieces.ids == model.padding)).any()):
        return model.trace(batch, embedded=embedded, keep=()).logits  # transformers then takes another one for the last
    query = readout.place(pieces.real)
    vectors = None if embedded is None else model.vectors(pieces, batch, embedded)
    narrow = partial(_of_query, query, pieces)  # at once: what other pieces have may be forgotten
    found, rows = list[Below](), list[QueryRow]()

    @contextmanager
    def around(run: AttentionPass) -> Iterator[None]:
        run.look = _ending(readout, query, rows)
        layers = layers_of(model.access)
        with recording(model.base, layers, run, model.access, readout.sites[-1], narrow) as below:
            found.append(below)
            yield

    with suppress(Reached):
        model.run(batch, pieces, None, vectors=vectors, around=around)
    (below,), (row,) = found, rows
    begun = BegunAtOne(model, batch, pieces, below, row)
    return begun.logits(places(batch.ids), None, None if vectors is None else narrow(vectors))


def begin(
    model: "HuggingFace", batch: Batch, site: str, intervene: Intervention, skipped: Sequence[str], narrow: bool
) -> BegunPass | BegunAtOne:
    """Run a batch once under an intervention: what layers to be skipped gave below a site is kept.

    Narrow: at the last site, of the one query that is read, where it is one.
    """
    pieces, found = model.pieces(batch), list[tuple[Below, list[QueryRow]]]()
    narrow = narrow and site == model.sites[-1] and model.query in ("first", "last")

    @contextmanager
    def around(run: AttentionPass) -> Iterator[None]:
        rows: list[QueryRow] = []
        if narrow:
            run.look = _remembering(Readout((site,), model.query), rows)
        with recording(model.base, skipped, run, model.access, site) as below:
            found.append((below, rows))
            yield

    model.told(model.run(batch, pieces, intervene, around=around), batch, intervene)
    ((below, rows),) = found
    if not rows:
        return BegunPass(model, batch, pieces, below)
    return BegunAtOne(model, batch, pieces, _narrowed(below, rows[0].query, pieces), rows[0])


_Look = Callable[[str, AttentionInputs], AttentionInputs]


def _remembering(readout: Readout, found: list[QueryRow]) -> _Look:
    """Changes nothing, and remembers what the query looks at that is read."""
    (site,) = readout.sites

    def look(name: str, seen: AttentionInputs) -> AttentionInputs:
        if name == site:
            mask = seen.mask.expand_as(seen.scores)
            query = readout.place(real_queries(mask, seen.scores, name).any(-1).any(1))
            detached = seen._replace(scores=seen.scores.detach(), value=seen.value.detach())
            found.append(_row(site, query, detached))
        return seen

    return look


def _ending(readout: Readout, query: Tensor, found: list[QueryRow]) -> _Look:
    """Remembers what this query of every text, [batch], looks at at the site, and ends the pass there."""
    (site,) = readout.sites

    def look(name: str, seen: AttentionInputs) -> AttentionInputs:
        if name == site:
            found.append(_row(site, query, seen))
            raise Reached
        return seen

    return look


def _row(site: str, query: Tensor, seen: AttentionInputs) -> QueryRow:
    """Of all that is looked at what one query of every text sees."""
    mask = seen.mask.expand_as(seen.scores)
    scores, allowed = (query_rows(tensor, query)[:, :, None] for tensor in (seen.scores, mask))
    return QueryRow(site, query, seen._replace(scores=scores, mask=allowed))


def _narrowed(below: Below, query: Tensor, pieces: SpelledRows) -> Below:
    """What layers gave, of one piece of every text; all else as it is."""
    narrow = partial(_of_query, query, pieces)
    return below._replace(outputs={path: [each(one, narrow) for one in given] for path, given in below.outputs.items()})


def _of_query(query: Tensor, pieces: SpelledRows, tensor: Tensor) -> Tensor:
    """Of one piece of every text, where it is about pieces."""
    whole = tensor.dim() == 3 and tensor.shape[:2] == pieces.ids.shape
    return tensor[places(query), query][:, None] if whole else tensor
