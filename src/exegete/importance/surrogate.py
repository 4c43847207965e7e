"""Surrogate: a linear function of which words stay, fitted to what a model says of erased texts (LIME, KernelSHAP)."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.base.places import places
from exegete.importance.blocking import unblocked
from exegete.importance.coalitions import coalitions
from exegete.importance.contract import Scores, Target, cost, explained, on_words, predicted
from exegete.importance.erasure import Removal, erased
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch

CELLS = 1 << 22  # samples × tokens of the texts that are fitted side by side: 32 MB as numbers


class Game(NamedTuple):
    """What f_c says of a text, of nothing, and of the coalitions in between."""

    words: Tensor  # [text, token]
    kept: Tensor  # [text, sample, token]
    share: Tensor  # [text, sample]: see exegete.importance.coalitions
    values: Tensor  # [text, sample]: f_c of a coalition, 0 where the share is 0
    whole: Tensor  # [text]: f_c(x)
    empty: Tensor  # [text]: f_c(∅), all words erased

    @property
    def lengths(self) -> Tensor:
        """Words of every text."""  # [text]
        return self.words.sum(-1).double()

    @property
    def sizes(self) -> Tensor:
        """Words that stay."""  # [text, sample]
        return self.kept.sum(-1).double()


@dataclass(frozen=True)
class Surrogate(ABC):
    """Erase many subsets of the words, and explain f_c by a weighted linear fit; `fit` says which.

    `samples` counts the coalitions of a text; the whole and the empty text come on top. Coalitions are keyed by seed,
    example and word, and do not depend on the method.
    """

    samples: int = 1000
    seed: int = 0
    removal: Removal = "delete"
    of: Literal["logit", "probability"] = "logit"

    def __post_init__(self) -> None:
        if self.samples < 2:
            raise UsageError(f"importances 'lime' and 'kernel_shap' need 2 or more samples, not {self.samples}")

    def refuses(self, model: Predictor) -> str | None:
        """Words can be blocked only where they act through attention alone."""
        return unblocked(model) if self.removal == "blocked" else None

    @abstractmethod
    def fit(self, game: Game) -> Tensor:
        """One coefficient per word."""  # [text, token]

    def error(self, game: Game, values: Tensor) -> Tensor | None:  # noqa: ARG002
        """How far the coefficients are from what they should sum to, where the method promises a sum."""  # [text]
        return None

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        """At most `samples` + 2 forward passes per text; some texts at a time, so that memory is bounded."""
        texts = places(batch.ids)
        whole = erased(model, batch, texts, torch.zeros_like(batch.words), self.removal)  # [batch, class]
        target = target or predicted(whole, self.of)
        values, errors, passes = [], [], []
        for rows in texts.split(max(1, CELLS // (self.samples * batch.tokens.shape[1]))):
            some = batch.rows(rows)
            game = self._play(model, some, target.at(rows), whole[rows])
            values.append(self.fit(game))
            errors.append(self.error(game, values[-1]))
            passes.append(2 + (game.share > 0).sum(-1))
        error = torch.cat([e for e in errors if e is not None]) if errors[0] is not None else None
        return Scores(on_words(torch.cat(values), batch), True, target, error, cost(batch, forward=torch.cat(passes)))

    def _play(self, model: Predictor, batch: Batch, target: Target, whole: Tensor) -> Game:
        """Ask for all coalitions of some texts."""
        kept, share = coalitions(batch, self.samples, self.seed)
        rows, sample = (share > 0).nonzero(as_tuple=True)
        gone = batch.words[rows] & ~kept[rows, sample]
        every = places(batch.ids)
        logits = erased(model, batch, torch.cat([rows, every]), torch.cat([gone, batch.words]), self.removal)
        asked = explained(logits, target.at(torch.cat([rows, every])))
        values = torch.zeros_like(share)
        values[rows, sample] = asked[: len(rows)]
        return Game(batch.words, kept, share, values, explained(whole, target), asked[len(rows) :])
