"""Blocking: what a prediction loses when nobody looks at a word (Geva et al. 2023, knockout in all layers)."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from exegete.base.errors import UsageError
from exegete.importance.contract import Scores, Target
from exegete.importance.erasure import Removal
from exegete.importance.omission import Omission
from exegete.interventions.cut import Cut
from exegete.models.capabilities import Paired, Writing
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example

SAME = 1e-3  # logits may differ by rounding where nothing gets through
PROBE = ("a", "charming", "film", "of", "note")


@dataclass(frozen=True)
class Blocking(Omission):
    """f_c(x) − f_c(x with all edges to t cut at all sites).

    The word and all positions stay, and every embedding is one that the model knows. The settings are those of the
    family, see exegete.importance.omission.
    """

    family: ClassVar[str] = "erasure"

    by: ClassVar[Removal] = "blocked"

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        """As the family; a model in which words act otherwise would get scores of something else."""
        if (reason := unblocked(model)) is not None:
            raise UsageError(f"importance 'blocking': {reason}")
        return super().__call__(model, batch, target)

    def refuses(self, model: Predictor) -> str | None:
        """Words must act through attention alone."""
        return unblocked(model)


def unblocked(model: Predictor) -> str | None:
    """Why a word can't be blocked in a model, as a sentence; None if it can.

    Found, not known: with all edges to a word cut, another embedding of it must not change the prediction.
    """
    who = type(model).__name__
    if isinstance(model, Writing) or model.readout is None:
        return f"it cuts attention to a word, and {who} predicts no class by it: use it on classifiers that attend"
    texts = (PROBE,) * (2 if isinstance(model, Paired) else 1)
    batch = model.collate([Example(0, texts, 0)])
    word = batch.words & (batch.words.cumsum(-1) == 3)
    with torch.no_grad():
        own = model.embed(batch)
        other = own + word[..., None] * torch.linspace(-1, 1, own.shape[-1], dtype=own.dtype, device=own.device)
        try:
            blocked, moved = (model.logits(batch, embedded=each, intervene=Cut(word)) for each in (own, other))
        except UsageError:
            return f"it cuts attention to words, and {who} attends to other things, too: use it on models of words"
    if float((blocked - moved).abs().max()) <= SAME * max(1.0, float(blocked.abs().max())):
        return None
    return f"it cuts attention to a word, and in {who} words act in other ways, too: use it on transformers"
