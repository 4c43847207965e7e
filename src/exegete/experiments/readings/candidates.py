"""Candidates: the readings of attention that are asked about, each as an importance that can be asked for by name.

The declared default is the readout: the site and query from which the prediction is made, the mean of its heads. All
others are what people read instead of it.
"""

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from exegete.base.names import Spec
from exegete.importance.reading import READOUT, Reading, ReadingPlace
from exegete.interventions.sites import EVERY
from exegete.models.capabilities import SelfAttentive
from exegete.models.contract import Predictor

ReadingKind = Literal[
    "readout", "layers", "columns", "columns of all layers", "rollout", "flow", "layer", "head", "baseline"
]
# What each is, in words, of which a sentence says where.
SAID: dict[ReadingKind, str] = {
    "readout": "the readout",
    "layers": "the mean over layers",
    "columns": "column means of the last layer",
    "columns of all layers": "column means of all layers",
    "rollout": "rollout",
    "flow": "flow",
    "layer": "one layer",
    "head": "one head",
    "baseline": "no attention",
}
NAMED: dict[ReadingKind, Reading] = {
    "readout": Reading(),
    "layers": Reading(site=EVERY),
    "columns": Reading(query="every"),
    "columns of all layers": Reading(site=EVERY, query="every"),
    "rollout": Reading("rollout", EVERY),
    "flow": Reading("flow", EVERY),
}


class Candidate(NamedTuple):
    """A reading, what kind it is of, and where it looks in a model."""

    kind: ReadingKind
    reading: Reading
    place: ReadingPlace

    @property
    def name(self) -> str:
        """As an importance is asked for."""
        own = {"how": "mean", "site": READOUT, "head": None, "query": READOUT}
        given = {key: getattr(self.reading, key) for key in own}
        return str(Spec("reading", {key: str(value) for key, value in given.items() if value != own[key]}))


def candidates(model: Predictor, heads: Mapping[str, int]) -> list[Candidate]:
    """All readings of a model, of which the heads of every site are known; none twice."""
    return [Candidate(kind, reading, reading.place(model)) for kind, reading in _readings(model, heads)]


def _readings(model: Predictor, heads: Mapping[str, int]) -> Iterator[tuple[ReadingKind, Reading]]:
    assert isinstance(model, SelfAttentive)
    assert model.readout is not None
    last = model.readout.sites[-1]
    one = model.readout.query in ("first", "last")  # else all rows are read, or one row is all that there is
    yield from ((kind, own) for kind, own in NAMED.items() if one or kind != "columns")
    yield from (("layer", Reading(site=site)) for site in model.self_attention if site != last)
    for site in model.self_attention:
        if heads[site] > 1:
            yield from (("head", Reading(site=site, head=head)) for head in range(heads[site]))
