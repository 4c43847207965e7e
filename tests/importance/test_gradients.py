"""Gradient methods: against captum, against slow loops over the papers' formulas, and by hand."""

import math
from collections.abc import Callable

import pytest
import torch
from captum.attr import InputXGradient, Saliency
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.base.noise import normal
from exegete.importance import derivative
from exegete.importance.attention_x_gradient import AttentionXGradient
from exegete.importance.attention_x_norm import AttentionXNorm
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import Target
from exegete.importance.gradient import Gradient
from exegete.importance.gradient_x_input import GradientXInput
from exegete.importance.smoothgrad import SmoothGrad
from exegete.models.ours.classifier import SITE, PoolingClassifier
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example
from tests.small import SPECS, batch_of, small_model, texts

KINDS = (SPECS[0], SPECS[4], SPECS[5])  # bilstm, average, cnn


def predicts(model: PoolingClassifier, batch: Batch) -> Callable[[Tensor], Tensor]:
    return lambda embedded: model.trace(batch, embedded=embedded).logits


@pytest.mark.parametrize("spec", KINDS)
def test_gradients_are_those_of_captum(spec: str) -> None:
    examples = texts(8)
    model = small_model(spec, examples, wrap=True)
    batch = batch_of(model, examples)
    embedded, label = model.embed(batch).detach(), model.trace(batch).logits.argmax(-1)
    embedded.requires_grad_()  # captum warns otherwise
    gradient = Saliency(predicts(model, batch)).attribute(embedded, label, abs=False).detach()
    product = InputXGradient(predicts(model, batch)).attribute(embedded, label).sum(-1).detach()
    for norm, power in (("l1", 1), ("l2", 2)):
        found = IMPORTANCES.make(f"gradient:norm={norm}")(model, batch).values
        assert torch.allclose(found[batch.words], gradient.norm(power, -1)[batch.words], atol=1e-5)
    signed = GradientXInput()(model, batch)
    assert signed.signed
    assert torch.allclose(signed.values[batch.words], product[batch.words], atol=1e-5)
    assert torch.allclose(Gradient()(model, batch).values[batch.words], product[batch.words].abs(), atol=1e-5)
    assert (product[batch.words] < -1e-3).any()  # the sign is not idle here


def test_gradient_x_input_with_attention_as_constants() -> None:
    examples = texts(6)
    model = small_model(SPECS[0], examples)
    batch = batch_of(model, examples)
    held = model.trace(batch).attention[SITE].detach()
    embedded = model.embed(batch).detach().requires_grad_()
    logits = model.trace(batch, embedded=embedded, intervene=lambda site: held).logits
    (gradient,) = torch.autograd.grad(logits.max(-1).values.sum(), embedded)
    found = GradientXInput(detach=True)(model, batch).values
    assert torch.allclose(found[batch.words], (gradient * embedded).sum(-1)[batch.words], atol=1e-6)
    assert not torch.allclose(found, GradientXInput()(model, batch).values, atol=1e-3, equal_nan=True)


def test_a_positive_score_speaks_for_the_class_whatever_is_explained() -> None:
    examples = texts(8)
    model = small_model(SPECS[0], examples).double()
    batch = batch_of(model, examples)
    label = torch.arange(8) % 2
    logit, probability, loss = (
        GradientXInput()(model, batch, Target(label, of=of)).values[batch.words]
        for of in ("logit", "probability", "loss")
    )
    assert torch.equal(logit.sign(), probability.sign())
    assert torch.equal(logit.sign(), loss.sign())
    other = GradientXInput()(model, batch, Target(1 - label)).values[batch.words]
    assert torch.allclose(other, -logit, atol=1e-6)  # one output: what speaks for one class speaks against the other


def test_a_probability_near_one_keeps_its_gradient() -> None:
    examples = texts(6)
    model = small_model(SPECS[0], examples)
    with torch.no_grad():
        model.decoder.weight.zero_()[:, 0] = 1
        model.decoder.bias.fill_(25.0)  # 1 − p is about 1e-11: less than float32 can tell from 0
    batch = batch_of(model, examples)
    logit = GradientXInput()(model, batch).values[batch.words]
    probability = GradientXInput("probability")(model, batch).values[batch.words]
    q = model.trace(batch).logits.double().softmax(-1)[:, :1].expand_as(batch.words)[batch.words].float()
    # dp/dx = p (1 − p) dz/dx, where the logit of class 1 is z/2.
    assert torch.allclose(probability, 2 * q * (1 - q) * logit, rtol=1e-3, atol=0)


def slow_smoothgrad(model: PoolingClassifier, e: Example, samples: int, noise: float, seed: int) -> Tensor:
    """The mean gradient of one text, one draw, word and dimension at a time."""
    batch = batch_of(model, [e])
    base = model.embed(batch).detach()
    places = batch.words[0].nonzero()[:, 0].tolist()
    numbers = [float(v) for t in places for v in base[0, t]]
    sigma = noise * (max(numbers) - min(numbers))
    label = int(model.trace(batch).logits.argmax())
    total = torch.zeros_like(base)
    for draw in range(samples):
        noisy = base.clone()
        for place, t in enumerate(places):
            for d in range(base.shape[2]):
                noisy[0, t, d] += sigma * float(normal(seed, e.id, draw, place, d))
        noisy.requires_grad_()
        model.trace(batch, embedded=noisy).logits[0, label].backward()
        assert noisy.grad is not None
        total += noisy.grad
    return (total / samples)[0]


@pytest.mark.parametrize("wrap", [False, True])
def test_smoothgrad_is_the_mean_over_noisy_words(wrap: bool) -> None:
    examples = texts(3, longest=5)
    model = small_model(SPECS[0], examples, wrap)
    batch = batch_of(model, examples)
    found = {norm: SmoothGrad(norm, samples=3, seed=5)(model, batch) for norm in ("l1", "l2", "input")}
    assert [found[norm].signed for norm in ("l1", "l2", "input")] == [False, False, True]
    for i, e in enumerate(examples):
        gradient, words = slow_smoothgrad(model, e, 3, 0.15, 5), batch.words[i]
        embedded = model.embed(batch)[i].detach()
        gradient = torch.nn.functional.pad(gradient, (0, 0, 0, len(words) - len(gradient)))
        assert torch.allclose(found["l1"].values[i, words], gradient.abs().sum(-1)[words].double(), atol=1e-5)
        assert torch.allclose(found["l2"].values[i, words], gradient.norm(dim=-1)[words].double(), atol=1e-5)
        assert torch.allclose(found["input"].values[i, words], (gradient * embedded).sum(-1)[words].double(), atol=1e-5)


def test_smoothgrad_goes_to_the_gradient_as_noise_goes_to_zero() -> None:
    examples = texts(8)
    model = small_model(SPECS[0], examples)
    batch = batch_of(model, examples)
    plain = Gradient("l2")(model, batch).values.double()
    apart = [
        float((SmoothGrad(samples=3, noise=noise)(model, batch).values - plain).abs().nan_to_num().max())
        for noise in (0.15, 0.001, 0.0)
    ]
    assert apart[0] > 1e-2 > apart[1] > apart[2]
    assert apart[2] < 1e-6


def test_the_size_of_a_pass_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = texts(6)
    model = small_model(SPECS[0], examples)
    batch = batch_of(model, examples)
    whole = SmoothGrad(samples=5)(model, batch).values
    sizes = []
    real = PoolingClassifier.trace

    def watched(self: PoolingClassifier, part: Batch, **rest: object) -> object:
        sizes.append(part.tokens.numel())
        return real(self, part, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(derivative, "TOKENS", 16)
    monkeypatch.setattr(PoolingClassifier, "trace", watched)
    assert torch.allclose(SmoothGrad(samples=5)(model, batch).values, whole, atol=1e-6, equal_nan=True)
    assert max(sizes[1:]) <= 16  # the first pass asks for the class


@pytest.mark.parametrize("labels", [("no", "yes"), ("x", "y", "z")])
def test_the_derivative_by_a_weight_is_what_the_linear_decoder_reads_there(labels: tuple[str, ...]) -> None:
    examples = texts(8, classes=len(labels))
    model = small_model(SPECS[0], examples, wrap=True, labels=labels)
    batch = batch_of(model, examples)
    scores = AttentionXGradient()(model, batch)
    trace = model.trace(batch)
    read = model.two_sided(trace.states[SITE] @ model.decoder.weight.T)  # [batch, key, class]: W h_t
    of_class = read[torch.arange(8), :, scores.target.label]
    expected = trace.attention[SITE][:, 0, 0] * of_class
    assert scores.signed
    assert torch.allclose(scores.values[batch.words], expected[batch.words], atol=1e-6)
    bias = model.two_sided(model.decoder.bias)[scores.target.label]
    logit = trace.logits.gather(1, scores.target.label[:, None])[:, 0]
    assert torch.allclose(scores.values.nansum(-1) + bias, logit, atol=1e-5)


def test_the_derivative_of_a_probability_by_a_weight_against_differences() -> None:
    examples = texts(3)
    model = small_model(SPECS[0], examples).double()
    batch = batch_of(model, examples)
    scores = AttentionXGradient(of="probability")(model, batch)
    weights, label = model.trace(batch).attention[SITE].detach(), scores.target.label
    for t in range(batch.tokens.shape[1]):
        step = torch.zeros_like(weights)
        step[..., t] = 1e-6
        up, down = (
            model.trace(batch, intervene=lambda site, moved=weights + by: moved).logits.softmax(-1)  # type: ignore[misc]
            for by in (step, -step)
        )
        slope = (up - down).gather(1, label[:, None])[:, 0] / 2e-6
        here = batch.words[:, t]
        assert torch.allclose(scores.values[here, t], (weights[:, 0, 0, t] * slope)[here], atol=1e-7)


def test_attention_x_norm_weighs_the_length_of_a_state() -> None:
    examples = texts(5)
    model = small_model(SPECS[0], examples, wrap=True)
    batch = batch_of(model, examples)
    trace, scores = model.trace(batch), AttentionXNorm()(model, batch)
    for i, t in batch.words.nonzero().tolist():
        length = math.sqrt(sum(v**2 for v in trace.states[SITE][i, t].tolist()))
        assert float(scores.values[i, t]) == pytest.approx(trace.attention[SITE][i, 0, 0, t].item() * length, abs=1e-6)
    assert not scores.signed


@pytest.mark.parametrize(
    ("method", "forward", "backward"),
    [
        ("attention", 1, 0), ("attention_x_norm", 1, 0), ("attention_x_gradient", 1, 1), ("gradient", 1, 1),
        ("gradient_x_input", 1, 1), ("smoothgrad:samples=3", 3, 3), ("random", 0, 0),
    ],
)  # fmt: skip
def test_a_method_says_what_it_cost(method: str, forward: int, backward: int) -> None:
    examples = texts(4)
    model = small_model(SPECS[0], examples)
    cost = IMPORTANCES.make(method)(model, batch_of(model, examples)).cost
    assert cost.forward.tolist() == [forward] * 4
    assert cost.backward.tolist() == [backward] * 4


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("gradient_x_input:of=loss", "logit"), ("smoothgrad:samples=0", "at least 1 sample, not 0"),
        ("smoothgrad:noise=-1", "0 or more"), ("smoothgrad:norm=l3", "l2"), ("attention_x_gradient:of=loss", "logit"),
    ],
)  # fmt: skip
def test_wrong_settings_are_one_sentence(spec: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        IMPORTANCES.make(spec)


@pytest.mark.parametrize("method", ["attention_x_gradient", "attention_x_norm"])
def test_an_unknown_site_is_refused_by_name(method: str) -> None:
    examples = texts(2)
    model = small_model(SPECS[0], examples)
    with pytest.raises(UsageError, match="did you mean 'attention'"):
        IMPORTANCES.make(f"{method}:site=atention")(model, batch_of(model, examples))
