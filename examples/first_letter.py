"""First letter: an importance of your own, as small as one can be.

It scores a word by its place in the alphabet, z highest. It knows nothing of the model, so its agreement with the other
importances should be near chance.
"""

from dataclasses import dataclass

import torch

from exegete.plugins import IMPORTANCES, Batch, Predictor, Scores, Target, on_words, predicted


@dataclass(frozen=True)
class FirstLetter:
    """The place of a word's first letter in the alphabet; `flip` puts a first."""

    flip: bool = False

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        """One score per token; NaN where no word is."""
        with torch.no_grad():
            target = target or predicted(model.trace(batch).logits)  # what is explained: the predicted class
        written = batch.reader.spelled(batch.tokens.flatten().tolist())
        place = torch.tensor([_place(word) for word in written], dtype=torch.float64).view_as(batch.tokens)
        return Scores(on_words(-place if self.flip else place, batch), signed=False, target=target)


def _place(word: str) -> int:
    """1 for a to 26 for z; 0 for a word that begins with anything else."""
    return "abcdefghijklmnopqrstuvwxyz".find(word[0].lower()) + 1


IMPORTANCES.add("first_letter", FirstLetter, "the place of a word's first letter in the alphabet")
