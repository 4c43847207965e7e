"""Robustness: do scores add up to what erasing words does, and do they hold still when the input hardly moves?

Infidelity and maximal sensitivity (Yeh et al. 2019, definitions 2.1 and 2.2), both low where an explanation is good.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context

import torch
from torch import Tensor

from exegete.base.noise import stable_seed, uniform
from exegete.base.places import places
from exegete.importance.contract import Importance
from exegete.importance.erasure import Removal
from exegete.measures.faithfulness import target_value, without_words
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch


def infidelity(
    model: Predictor, batch: Batch, scores: Tensor, label: Tensor, by: Removal = "zero", draws: int = 50
) -> Tensor:
    """E_I (β I · scores − Δf)², Δf = f_c(x) − f_c(x without I), f the logit: how far scores are from adding up: [text].

    I is a random set of words: their number is uniform from 1 to T, then so many words of the text, keyed by the text.
    β = E[(I · scores) Δf] / E[(I · scores)²] is the scale that serves the scores best, so methods of any scale compare.
    β may be negative: scores with every sign turned are no worse. Scores without a sign can't match a Δf that changes
    sign: of those, infidelity mostly says that they have none. The formula is captum's, the draws and passes are ours.
    """
    from captum.metrics import infidelity as yeh

    real = places(scores) < batch.lengths[:, None]  # [text, word]
    subsets = _subsets(batch, real, draws)  # [text · draw, word]

    def predict(present: Tensor) -> Tensor:
        rows = places(real, 0).repeat_interleave(len(present) // len(real))
        gone = (present == 0) & real[rows]
        return target_value(without_words(model, batch, rows, gone, by), label[rows], "logit")

    def perturb(present: Tensor) -> tuple[Tensor, Tensor]:
        return subsets, present - subsets

    found: Tensor = yeh(
        predict, perturb, real.double(), scores.double().where(real, 0), n_perturb_samples=draws, normalize=True
    )
    return found.clamp(min=0)  # a perfect fit is 0 up to rounding of either sign


def _subsets(batch: Batch, real: Tensor, draws: int) -> Tensor:
    """Random sets of words, 1.0 on members: [text · draw, word]."""
    ids, draw = batch.ids[:, None], torch.arange(draws, device=batch.ids.device)
    seed = stable_seed("infidelity")  # other sets than those that LIME and KernelSHAP are fitted to
    size = 1 + (uniform(seed, ids, draw, -1) * batch.lengths[:, None]).floor().long()  # [text, draw]
    noise = uniform(seed, ids[..., None], draw[:, None], places(real))
    place = noise.masked_fill(~real[:, None], torch.inf).argsort(-1).argsort(-1)  # [text, draw, word]
    return ((place < size[..., None]) & real[:, None]).double().flatten(0, 1)


def sensitivity_max(
    importance: Importance, model: Predictor, batch: Batch, draws: int = 10, radius: float = 0.02
) -> Tensor:
    """max_δ ‖Φ(x + δ) − Φ(x)‖ / ‖Φ(x)‖ over δ uniform in [−radius, radius] per coordinate of an embedding: [text].

    Φ explains the same class throughout. A word is moved alike wherever it stands, also in texts that the importance
    makes of this one, so a draw is one other embedding table. NaN where Φ(x) is 0. Passes: `draws` times the method's.
    """
    whole = importance(model, batch)
    still = whole.values.double().where(batch.words, 0)  # [text, token]
    largest = still.new_zeros(len(still))
    for draw in range(draws):
        with shaken(model, radius, draw):
            # In a context of its own: predictions that `sharing()` keeps are of the model at rest.
            moved = Context().run(importance, model, batch, whole.target).values.double().where(batch.words, 0)
        largest = largest.maximum((moved - still).norm(dim=-1))
    size: Tensor = still.norm(dim=-1)
    return (largest / size).where(size > 0, torch.nan)


@contextmanager
def shaken(model: Predictor, radius: float, draw: int) -> Iterator[None]:
    """Inside, every embedding is moved by uniform noise in [−radius, radius], keyed by draw, word and dimension."""
    before = vars(model).get("embed")
    embed = model.embed

    def noisy(batch: Batch) -> Tensor:
        embedded = embed(batch)  # [text, token, size]
        noise = 2 * uniform(0, draw, batch.tokens[..., None], places(embedded)) - 1
        return embedded + (radius * noise * batch.present[..., None]).to(embedded.dtype)

    vars(model)["embed"] = noisy
    try:
        yield
    finally:
        del vars(model)["embed"]
        if before is not None:
            vars(model)["embed"] = before
