"""DeepLIFT: share the difference to a baseline among the words (Shrikumar et al. 2017, rescale rule).

An activation y = act(z) has the multiplier Δy / Δz instead of its derivative, where Δ is the difference between a text
and a baseline in which its words say nothing. So a word counts all the way from the baseline, past any kink, and

    Σ_t s_t = f(x) − f(baseline).

Attention is imposed: f keeps the weights of the text at the baseline too, as constants. For models of linear layers and
activations only: where gates multiply signals, as in LSTM and GRU, the rescale rule doesn't hold and sums go wrong.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from exegete.base.errors import UsageError
from exegete.base.names import parse
from exegete.base.places import places
from exegete.importance.baselines import Baseline, baseline, no_mean_word
from exegete.importance.contract import Quantity, Scores, Target, cost, explained, on_words, predicted
from exegete.importance.derivative import copy_passes
from exegete.importance.relevance import RULES
from exegete.models.capabilities import Relevant
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}
FLOOR = 1e-3  # below this difference of logits, the error is relative to this


@dataclass(frozen=True)
class DeepLift:
    """Contributions to f(x) − f(baseline), f the logit of the class; in the baseline every word is replaced."""

    family: ClassVar[str] = "relevance"
    label: ClassVar[str] = "DeepLIFT"

    explains: ClassVar[tuple[Quantity, ...]] = ("logit",)
    baseline: Baseline = "zero"

    def refuses(self, model: Predictor) -> str | None:
        """Only linear layers and activations."""
        kinds = model.layer_kinds if isinstance(model, Relevant) else ("unknown",)
        if "gate" in kinds:
            name = parse(model.spec).name
            return f"deeplift is wrong where gates multiply signals, as in {name}: use lrp, or average or cnn"
        if not set(kinds) <= RULES.keys() or len(_activations(kinds)) > 1:
            return f"deeplift doesn't know the layers of {type(model).__name__}: use it on average or cnn"
        return no_mean_word(model) if self.baseline == "mean" else None

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        """Text and baseline forward and backward together, once; then both once more to check the sum."""
        if (reason := self.refuses(model)) is not None:
            raise UsageError(reason)
        if target is not None and target.of != "logit":
            raise UsageError(f"deeplift explains the logit of a class, not its {target.of}: ask for of=logit")
        assert isinstance(model, Relevant)
        with torch.no_grad():
            trace = model.trace(batch)
        target = target or predicted(trace.logits)
        values = torch.zeros_like(batch.tokens, dtype=torch.float64)
        error = torch.zeros_like(batch.ids, dtype=torch.float64)
        for rows, texts in copy_passes(batch, places(batch.ids)):
            weights = trace.attention[model.sites[-1]][rows, 0, 0, : texts.tokens.shape[1]].double()
            classes = (each[rows] for each in (target.label, target.contrast) if each is not None)
            found, error[rows] = self._contributions(model, texts, (weights, *classes))
            values[rows, : found.shape[1]] = found
        run = cost(batch, forward=5, backward=2)  # for the weights; text and baseline; both again for the error
        return Scores(on_words(values, batch), signed=True, target=target, error=error, cost=run)

    def _contributions(self, model: Relevant, texts: Batch, given: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """Σ_d m_td (e_td − b_td) [batch, token] at given weights for given classes, and the error [batch]."""
        with torch.no_grad():
            x, b = model.embed(texts).double(), baseline(model, texts, self.baseline).double()
        network = Imposed(model, texts)
        with torch.enable_grad(), _captum() as deeplift:
            found = deeplift(network).attribute(x, b, additional_forward_args=given).detach().sum(-1)
        with torch.no_grad():
            difference = network(x, *given) - network(b, *given)
        return found, (found.sum(-1) - difference).abs() / difference.abs().clamp(min=FLOOR)


@contextmanager
def _captum() -> Iterator[Any]:
    """captum's DeepLIFT, imported only now (that is slow), without its warning that it sets hooks: we gave it them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Setting forward, backward hooks", UserWarning)
        warnings.filterwarnings("ignore", module="captum")
        from captum.attr import DeepLift as Captum

        yield Captum


class Imposed(nn.Module):
    """A model from embeddings to the logit of a class under given attention weights, layer by layer in float64.

    The weights are the model's own. The activation is new: captum hooks it, and the hooks go where it goes.
    """

    def __init__(self, model: Relevant, texts: Batch) -> None:
        super().__init__()
        self._of = (model, texts)  # in a tuple, so that it is no submodule: no hook reaches the model itself
        self.activation = next((ACTIVATIONS[kind]() for kind in _activations(model.layer_kinds)), nn.Identity())

    def forward(self, x: Tensor, weights: Tensor, label: Tensor, contrast: Tensor | None = None) -> Tensor:
        """[batch, token, size], [batch, token] and [batch] -> [batch]; captum stacks texts and their baselines."""
        (model, texts), rows = self._of, places(x, 0)

        def layers(kind: str, *arguments: Tensor) -> Tensor:
            if kind == "pool":
                return (weights[:, None] @ arguments[0])[:, 0]
            return self.activation(*arguments) if kind in ACTIVATIONS else RULES[kind].compute(*arguments)

        logits = model.layered(texts.rows(rows % len(texts.ids)), x, layers).logits
        return explained(logits, Target(label, contrast=contrast))


def _activations(kinds: tuple[str, ...]) -> list[str]:
    return [kind for kind in kinds if kind in ACTIVATIONS]
