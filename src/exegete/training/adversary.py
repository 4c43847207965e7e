"""Adversary: predict as another model does, with attention elsewhere (Wiegreffe & Pinter 2019, section 4, equation 1).

    L = mean over texts of  TVD(p_a, p_b) − λ KL(α_a ‖ α_b)

a is the adversary, b the base, which stays as it is. TVD is the true one, ½ Σ_c |p_a(c) − p_b(c)|; for two classes
that is |Δp|. The authors' code halves it once more (`legacy`): their printed TVD is half of ours, and their λ does what
ours does at 2λ. KL is in nats, over real keys, with 0 ln 0 = 0. Sparse attention of the base may be exactly 0, where KL
would be infinite: weights count as at least 1e-10 inside logarithms, so no text has more than 23 nats.
With several heads KL is the mean over them.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.models.capabilities import Writing
from exegete.models.contract import Predictor, Readout, Trace, refuse_foreign
from exegete.tasks.batching import Batch
from exegete.tasks.example import Task

FLOOR = 1e-10  # the least weight inside a logarithm
TextIds = tuple[tuple[int, ...], ...]  # words as rows of the vocabulary, with text and sentence; then the candidates


@dataclass(frozen=True)
class Adversary:
    """The settings: λ weighs other attention against the same predictions."""

    lam: float
    legacy: bool = False  # half the TVD, as in the authors' code

    def __post_init__(self) -> None:
        if not 0 <= self.lam < float("inf"):
            raise UsageError(f"objective 'adversary': lam is 0 or above, not {self.lam:g}")

    def bound(self, base: Predictor, task: Task) -> "AgainstBase":  # noqa: ARG002
        """The loss of an adversary of this model; the base runs on a text when it is first met, and never again."""
        return AgainstBase(self, base, last_site(base), {})


class BasePrediction(NamedTuple):
    """What the base does with a text."""

    probabilities: Tensor  # [class]
    weights: Tensor  # [row, key]: of every head and query that is read, without padding


@dataclass(frozen=True, eq=False)
class AgainstBase:
    """The loss against one base, whose predictions and weights are kept by text."""

    settings: Adversary
    base: Predictor
    site: str
    known: dict[TextIds, BasePrediction]

    def __call__(self, trace: Trace, batch: Batch) -> Tensor:
        """Mean TVD − λ mean KL; every text counts, also one of a single word, whose KL is 0."""
        if self.site not in trace.attention:
            raise UsageError(f"an adversary has its base's site '{self.site}', and this model has none of that name")
        refuse_foreign(batch, self.base.reader)  # stored or not, its rows must be the base's own words
        keys = _reach(trace, self.site)  # [batch, key]
        theirs, ours = self._stored(batch), self._rows(trace)  # ours [batch, row, key]
        rows = self._queries(ours, batch)
        weights = torch.zeros_like(ours)
        weights[rows[:, :, None] & keys[:, None]] = torch.cat([stored.weights.flatten() for stored in theirs])
        probabilities = torch.stack([stored.probabilities for stored in theirs])  # [batch, class]
        tvd = (trace.logits.softmax(-1) - probabilities).abs().sum(-1) / 2  # [batch]
        kl = relative_entropy(ours, weights, keys[:, None]).sum(-1) / rows.sum(-1).clamp(min=1)  # [batch]
        return (tvd / 2 if self.settings.legacy else tvd).mean() - self.settings.lam * kl.mean()

    def _rows(self, trace: Trace) -> Tensor:
        return trace.rows(readout_of(self.base))

    def _queries(self, rows: Tensor, batch: Batch) -> Tensor:
        """Which rows are no padding, [batch, row]: where every token is a query, those of tokens that are there."""
        if readout_of(self.base).query != "every":
            return rows.new_ones(rows.shape[:2], dtype=torch.bool)
        return batch.present.repeat(1, rows.shape[1] // batch.present.shape[1])

    def _stored(self, batch: Batch) -> list[BasePrediction]:
        """The base's predictions and weights for every text, computed where they are not known yet."""
        texts = text_ids(batch)
        if any(text not in self.known for text in texts):
            self.known.update(zip(texts, self._run(batch), strict=True))
        return [self.known[text] for text in texts]

    def _run(self, batch: Batch) -> list[BasePrediction]:
        with torch.no_grad():
            trace = self.base.trace(batch)
        rows = self._rows(trace)
        columns = (trace.logits.softmax(-1), rows, self._queries(rows, batch), _reach(trace, self.site))
        return [BasePrediction(p.clone(), own[real][:, keys]) for p, own, real, keys in zip(*columns, strict=True)]


def relative_entropy(a: Tensor, b: Tensor, keys: Tensor) -> Tensor:
    """KL(a ‖ b) = Σ a (ln a − ln b) over these keys, in nats, with weights of at least FLOOR in logarithms: [...].

    A clamped logarithm has a finite gradient where a is 0, and 0 · ln FLOOR = 0 there, as it must be.
    """
    terms = a * (a.clamp(min=FLOOR).log() - b.clamp(min=FLOOR).log())
    return terms.where(keys, 0.0).sum(-1)


def last_site(model: Predictor) -> str:
    """The attention that a class is predicted from: the only one, or the last, as of a hierarchical model."""
    return readout_of(model).sites[-1]


def readout_of(model: Predictor) -> Readout:
    """Where the attention of a predicted class is read."""
    if isinstance(model, Writing) or model.readout is None:
        raise UsageError(
            f"this objective is about the attention that a class is predicted from, and {type(model).__name__} has "
            "none: choose a model such as bilstm, average or cnn"
        )
    return model.readout


def real_keys(trace: Trace, site: str) -> Tensor:
    """Which keys of a site some word belongs to: bool [batch, key]."""
    owner, keys = trace.owner[site], trace.attention[site].shape[-1]
    owned = torch.zeros(len(owner), keys + 1, dtype=torch.bool, device=owner.device)
    return owned.scatter(1, owner + 1, True)[:, 1:]


def _reach(trace: Trace, site: str) -> Tensor:
    """All keys up to the last real one: bool [batch, key]; others among them have weight 0, or are a null key."""
    return real_keys(trace, site).flip(-1).cumsum(-1).flip(-1) > 0


def text_ids(batch: Batch) -> list[TextIds]:
    """What tells the examples of a batch apart: the words of all texts, which text and sentence each is in, and the
    classes that may be chosen; not how they are padded.
    """
    columns = torch.stack([batch.tokens, batch.part, batch.sentence], -1)  # [batch, token, 3]
    words = [tuple(map(tuple, row[there].tolist())) for row, there in zip(columns, batch.sentence >= 0, strict=True)]
    if batch.candidates is None:
        return words
    allowed = [tuple(c for c in row if c >= 0) for row in batch.candidates.tolist()]
    return [(*text, candidates) for text, candidates in zip(words, allowed, strict=True)]
