"""Contrast: why this class and not that one? f_c − f_d is explained, by every method that knows of classes."""

import pytest
import torch

from exegete.importance.catalogue import IMPORTANCES, computable
from exegete.importance.contract import Quantity, Target, explained, refusal
from exegete.models.ours.classifier import PoolingClassifier
from tests.small import batch_of, small_model, texts

EXAMPLES = texts(6, classes=3)
SPECS = ("cnn:size=7,hidden=8,scale=1", "bilstm:size=7,hidden=6,scale=1")
# Linear in f: what they say of a difference is the difference of what they say.
LINEAR = (
    "gradient_x_input", "integrated_gradients:steps=4,bound=0", "lrp", "deeplift", "leave_one_out:of=logit",
    "leave_one_out:of=probability", "occlusion", "replacement", "lime:samples=20", "kernel_shap:samples=20",
)  # fmt: skip


def three(spec: str) -> PoolingClassifier:
    return small_model(spec, EXAMPLES, labels=("no", "yes", "perhaps"))


def classes(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    label = torch.arange(n) % 3
    return label, (label + 1 + torch.arange(n) % 2) % 3


@pytest.mark.parametrize("of", ["logit", "probability", "loss"])
def test_what_is_explained_is_the_difference(of: Quantity) -> None:
    logits, (label, contrast) = torch.randn(6, 3, dtype=torch.float64), classes(6)
    p = logits.softmax(-1)
    number = {"logit": logits, "probability": p, "loss": -p.log()}[of]
    found = explained(logits, Target(label, of=of, contrast=contrast))
    for i, (c, d) in enumerate(zip(label.tolist(), contrast.tolist(), strict=True)):
        assert float(found[i]) == pytest.approx(float(number[i, c] - number[i, d]))


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("method", LINEAR)
def test_a_linear_method_says_the_difference_of_what_it_says_of_both(method: str, spec: str) -> None:
    model, importance = three(spec), IMPORTANCES.make(method)
    if refusal(importance, model) is not None:
        assert (method, model.name) == ("deeplift", "bilstm")
        return
    batch, (label, contrast) = batch_of(model, EXAMPLES), classes(len(EXAMPLES))
    of: Quantity = "probability" if "probability" in method else "logit"
    one, other = (importance(model, batch, Target(c, of=of)).values for c in (label, contrast))
    both = importance(model, batch, Target(label, of=of, contrast=contrast)).values
    assert both[batch.words].abs().max() > 1e-4
    torch.testing.assert_close(both, one - other, atol=1e-5, rtol=1e-5, equal_nan=True)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("method", ["gradient:norm=l2", "smoothgrad:samples=4", "attention_x_gradient"])
def test_a_gradient_is_that_of_the_difference(method: str, spec: str) -> None:
    """A model whose classes' logits are differences already, asked about one class."""
    model, importance = three(spec), IMPORTANCES.make(method)
    batch, (label, contrast) = batch_of(model, EXAMPLES), classes(len(EXAMPLES))
    found = importance(model, batch, Target(label, contrast=contrast)).values
    for row, (c, d) in enumerate(zip(label.tolist(), contrast.tolist(), strict=True)):
        subtracted = three(spec)
        with torch.no_grad():
            for part in (subtracted.decoder.weight, subtracted.decoder.bias):
                part[c] -= part[d].clone()
        alone = importance(subtracted, batch, Target(label)).values[row]
        torch.testing.assert_close(found[row], alone, atol=1e-5, rtol=1e-4, equal_nan=True)


def test_no_method_is_forgotten() -> None:
    """What is in neither list above takes no notice of a class: its scores are the same with a contrast."""
    model = three(SPECS[0])
    batch, (label, contrast) = batch_of(model, EXAMPLES), classes(len(EXAMPLES))
    told = {name.partition(":")[0] for name in (*LINEAR, "gradient", "smoothgrad", "attention_x_gradient")}
    for name in sorted(set(computable()) - told):
        importance = IMPORTANCES.make(name)
        if refusal(importance, model) is None:
            one, other = (importance(model, batch, Target(label, contrast=c)).values for c in (None, contrast))
            torch.testing.assert_close(one, other, equal_nan=True)
