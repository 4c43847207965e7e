"""Leave-one-out: what a prediction loses with one word deleted (Jain & Wallace 2019, section 4.1; PROTOCOLS 3.2)."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from exegete.importance.contract import Scores, Target, explained, on_words, predicted
from exegete.models.classifier import Classifier
from exegete.models.contract import AttentionModel
from exegete.models.deletion import without_each_word
from exegete.models.encoders import BiLSTM
from exegete.tasks.batching import Batch
from exegete.tasks.vocabulary import PAD

TOKENS = 65_536  # tokens of shortened texts that one forward pass holds


@dataclass(frozen=True)
class LeaveOneOut:
    """Delete every word in turn, run the model again, and compare the predictions.

    `tvd` (equation 2 of Neely & Schouten 2020) is ½ Σ_y |p_y(x) − p_y(x without t)|, for any class; `probability` and
    `logit` are the signed loss f_c(x) − f_c(x without t) of the explained class. A text whose only word is deleted
    leaves the decoder's bias.
    """

    of: Literal["tvd", "probability", "logit"] = "tvd"

    def __call__(self, model: AttentionModel, batch: Batch, target: Target | None = None) -> Scores:
        """T + 1 forward passes for a text of T words; far fewer steps for a BiLSTM (see exegete.models.deletion)."""
        with torch.no_grad():
            whole = model.trace(batch).logits.double()  # [batch, class]; double: a saturated p still orders the words
            without = deletions(model, batch).double()  # [batch, token, class]
        of = "probability" if self.of == "tvd" else self.of
        target = target or predicted(whole, of)
        if self.of == "tvd":
            values = 0.5 * (whole.softmax(-1)[:, None] - without.softmax(-1)).abs().sum(-1)
        else:
            values = explained(whole, target)[:, None] - _each(without, target)
        return Scores(on_words(values, batch), signed=self.of != "tvd", target=target)


def _each(without: Tensor, target: Target) -> Tensor:
    """f_c of every shortened text."""  # [batch, token]
    tokens = without.shape[1]
    flat = Target(target.label.repeat_interleave(tokens), of=target.of)
    return explained(without.flatten(0, 1), flat).view(-1, tokens)


def deletions(model: AttentionModel, batch: Batch) -> Tensor:
    """Logits [batch, token, class] without each word; NaN where the token is no word."""
    if isinstance(model, Classifier) and isinstance(model.encoder, BiLSTM):
        return without_each_word(model, batch)
    return re_encoded(model, batch)


def re_encoded(model: AttentionModel, batch: Batch) -> Tensor:
    """The literal way, for any model: write out every shortened text and run it."""
    rows, positions = batch.words.nonzero(as_tuple=True)
    size = max(1, TOKENS // batch.tokens.shape[1])
    with torch.no_grad():
        parts = [
            model.trace(shortened(batch, r, p)).logits
            for r, p in zip(rows.split(size), positions.split(size), strict=True)
        ]
    logits = torch.cat(parts)
    out = logits.new_full((*batch.tokens.shape, logits.shape[-1]), torch.nan)
    out[rows, positions] = logits
    return out


def shortened(batch: Batch, rows: Tensor, positions: Tensor) -> Batch:
    """Example rows[i] without its token positions[i], for every i."""
    width = batch.tokens.shape[1]
    places = torch.arange(width)
    places = places + (places >= positions[:, None])  # everything after the gap moves up by one

    def moved(table: Tensor, fill: int) -> Tensor:
        return torch.nn.functional.pad(table, (0, 1), value=fill)[rows[:, None], places][:, : max(1, width - 1)]

    return Batch(
        ids=batch.ids[rows],
        tokens=moved(batch.tokens, PAD),
        present=moved(batch.present, 0),
        words=moved(batch.words, 0),
        part=moved(batch.part, -1),
        sentence=moved(batch.sentence, -1),
        label=batch.label[rows],
    )
