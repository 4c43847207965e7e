"""DeepLIFT: the rescale rule by hand and by loops, sums that are complete, and no traces left on a model."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.importance import deeplift
from exegete.importance.baselines import baseline
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import Target, refusal
from exegete.importance.deeplift import DeepLift
from exegete.importance.gradient import Gradient
from exegete.models.ours.classifier import SITE, Classifier, PoolingClassifier
from exegete.models.ours.encoders import CNN, Average
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example
from tests.small import batch_of, small_model, texts, vocabulary

ZOO = (
    "average:size=5,hidden=4,scale=1,projection=entmax,learned=true",
    "average:size=5,hidden=4,scale=1,activation=relu,attention=dot,outputs=classes",
    "cnn:size=5,hidden=8,scale=1",
    "cnn:size=5,hidden=8,scale=1,attention=dot,projection=sparsemax,outputs=classes",
)


def toy(activation: str = "relu") -> tuple[PoolingClassifier, Batch]:
    """One word of one number, e = 2: z = e − 1, logit of class 1 = 3 act(z) / 2."""
    model = Classifier(
        f"average:size=1,hidden=1,activation={activation},attention=dot", vocabulary(texts(3)), ("n", "y")
    )
    assert isinstance(model.encoder, Average)
    with torch.no_grad():
        model.embedding.weight[model.vocabulary.index["a"]] = 2.0
        for layer, weight, bias in ((model.encoder.linear, 1.0, -1.0), (model.decoder, 3.0, 0.0)):
            layer.weight.fill_(weight)
            layer.bias.fill_(bias)
    return model, batch_of(model, [Example(0, (("a",),), 1)])


def test_by_hand_a_kink_between_baseline_and_text() -> None:
    """From e = 0 to 2, z goes from −1 to 1 and relu(z) from 0 to 1: Δy/Δz = 1/2, so 3/2 · 1/2 · 2, not 3/2 · 1 · 2."""
    model, batch = toy()
    for label, expected in ((1, 1.5), (0, -1.5)):
        scores = DeepLift()(model, batch, Target(torch.tensor([label])))
        assert scores.values.tolist() == [[pytest.approx(expected)]]
        assert scores.signed
        assert scores.error is not None
        assert scores.error.item() < 1e-12
    assert Gradient()(model, batch).values.item() == pytest.approx(3.0)


def test_by_hand_a_bend() -> None:
    model, batch = toy("tanh")
    expected = 1.5 * 2 * torch.tensor(1.0, dtype=torch.float64).tanh()  # tanh 1 − tanh(−1)
    assert DeepLift()(model, batch).values.item() == pytest.approx(expected.item(), abs=1e-9)


def slow_contributions(model: PoolingClassifier, batch: Batch, label: int, b: Tensor) -> list[float]:
    """Every linear summand into every unit of every state, times Δy/Δz of the unit, attention and decoder weight."""
    x, weights = model.embed(batch)[0].detach().double(), model.trace(batch).attention[SITE][0, 0, 0].double().tolist()
    decoder = model.two_sided(model.decoder.weight.detach().double().T).T[label].tolist()
    tanh = isinstance(model.encoder, Average) and model.encoder.activation is torch.tanh
    act: Callable[[Tensor], Tensor] = torch.tanh if tanh else torch.relu
    if isinstance(model.encoder, CNN):
        parts = [(part.get_parameter("weight"), part.get_parameter("bias")) for part in model.encoder.convolutions]
        filters = [(f.double(), c.double()) for W, bias in parts for f, c in zip(W, bias, strict=True)]
    else:
        assert isinstance(model.encoder, Average)
        linear = model.encoder.linear
        filters = [(f.double()[:, None], c.double()) for f, c in zip(linear.weight, linear.bias, strict=True)]
    out = [0.0] * len(x)
    for t in range(len(x)):
        for unit, (f, c) in enumerate(filters):
            half = f.shape[1] // 2
            seen = [s for s in range(t - half, t + half + 1) if 0 <= s < len(x)]
            z, z_b = (c + sum(f[:, s - t + half] @ v[s] for s in seen) for v in (x, b))
            if z == z_b:
                continue
            multiplier = (act(z) - act(z_b)) / (z - z_b)
            for s in seen:
                out[s] += float(weights[t] * decoder[unit] * multiplier * (f[:, s - t + half] @ (x[s] - b[s])))
    return out


@pytest.mark.parametrize("name", ["zero", "unknown", "mean"])
@pytest.mark.parametrize("spec", ZOO)
@torch.no_grad()
def test_against_the_rule_written_out(spec: str, name: str) -> None:
    examples = texts(2, longest=4)
    model = small_model(spec, examples, wrap="dot" in spec)
    for label, e in enumerate(examples):
        batch = batch_of(model, [e])
        got = DeepLift(baseline=name)(model, batch, Target(torch.tensor([label % 2]))).values[0]  # type: ignore[arg-type]
        expected = slow_contributions(model, batch, label % 2, baseline(model, batch, name)[0].double())  # type: ignore[arg-type]
        words = batch.words[0]
        assert torch.allclose(got[words], torch.tensor(expected, dtype=torch.float64)[words], atol=1e-9)
        assert torch.equal(got.isnan(), ~words)


@pytest.mark.parametrize(("wrap", "classes"), [(False, ("no", "yes")), (True, ("x", "y", "z"))])
@pytest.mark.parametrize("spec", ZOO)
def test_words_share_all_of_the_difference(spec: str, wrap: bool, classes: tuple[str, ...]) -> None:
    examples = texts(5)
    model = small_model(spec, examples, wrap, classes)
    batch = batch_of(model, examples)
    scores = DeepLift()(model, batch)
    weights = model.trace(batch).attention[SITE].detach()
    empty = model.trace(batch, embedded=baseline(model, batch, "zero"), intervene=lambda _: weights).logits
    c = model.trace(batch).logits.argmax(-1)
    assert torch.equal(scores.target.label, c)
    difference = (model.trace(batch).logits - empty).gather(1, c[:, None])[:, 0].double().detach()
    assert torch.allclose(scores.values.nansum(-1), difference, atol=1e-5)
    assert scores.error is not None
    assert scores.error.max() < 1e-9
    assert scores.cost is not None
    assert scores.cost.forward.tolist() == [5] * 5


def test_the_error_finds_a_wrong_multiplier(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an activation that captum doesn't know it takes the derivative, and the sum is wrong."""
    model, batch = toy()

    class Unknown(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.relu()

    monkeypatch.setitem(deeplift.ACTIVATIONS, "relu", Unknown)
    error = DeepLift()(model, batch).error
    assert error is not None
    assert error.item() == pytest.approx(1.0)  # 3 instead of 1.5


def hooks(model: torch.nn.Module) -> int:
    names = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return sum(len(getattr(module, name)) for module in model.modules() for name in names)


def test_nothing_is_left_on_the_model_also_after_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = texts(4)
    model = small_model(ZOO[2], examples)
    batch = batch_of(model, examples)
    before = {name: (p.detach().clone(), p.requires_grad) for name, p in model.named_parameters()}
    expected = DeepLift()(model, batch).values
    made: list[deeplift.Imposed] = []
    own = deeplift.Imposed.__init__

    def remembered(self: deeplift.Imposed, of: Classifier, texts: Batch) -> None:
        own(self, of, texts)
        made.append(self)

    def failing(*_: object) -> None:
        assert sum(map(hooks, made)) > 0  # captum has set them
        raise RuntimeError("on the way")

    with monkeypatch.context() as patched:
        patched.setattr(deeplift.Imposed, "__init__", remembered)
        patched.setattr(deeplift, "explained", failing)
        with pytest.raises(RuntimeError, match="on the way"):
            DeepLift()(model, batch)
    assert made
    assert hooks(model) == sum(map(hooks, made)) == 0
    assert all(torch.equal(p, before[n][0]) and p.requires_grad == before[n][1] for n, p in model.named_parameters())
    assert all(p.grad is None for p in model.parameters())
    assert torch.equal(DeepLift()(model, batch).values.nan_to_num(), expected.nan_to_num())


@pytest.mark.parametrize("spec", ["bilstm:size=3,hidden=2", "bigru:size=3,hidden=2"])
def test_recurrent_models_are_refused(spec: str) -> None:
    examples = texts(3)
    model = small_model(spec, examples)
    sentence = f"deeplift is wrong where gates multiply signals, as in {model.name}"
    assert (refusal(DeepLift(), model) or "").startswith(sentence)
    with pytest.raises(UsageError, match=sentence):
        DeepLift()(model, batch_of(model, examples))


def test_what_else_is_refused() -> None:
    class Other(PoolingClassifier):
        pass

    examples = texts(3)
    model = small_model(ZOO[0], examples)
    batch = batch_of(model, examples)
    assert refusal(DeepLift(), model) is None
    assert "layers of Other" in (refusal(DeepLift(), Other(ZOO[0], model.vocabulary, model.labels)) or "")
    with pytest.raises(UsageError, match="not its loss"):
        DeepLift()(model, batch, Target(batch.label, of="loss"))
    with pytest.raises(UsageError, match="baseline"):
        IMPORTANCES.make("deeplift:baseline=ones")
