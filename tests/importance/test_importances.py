"""Importances: each formula against a slow, independent recomputation."""

import pytest
import torch

from exegete.base.errors import UsageError
from exegete.importance.attention import Attention
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import Target
from exegete.importance.erased_texts import write
from exegete.importance.gradient import Gradient
from exegete.importance.leave_one_out import LeaveOneOut
from exegete.importance.omission import word_windows
from exegete.importance.random import RandomImportance
from exegete.models.ours import deletion
from exegete.models.ours.classifier import SITE, PoolingClassifier
from exegete.models.ours.deletion import deletions, without_each_word
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example
from tests.small import SPECS, batch_of, small_classifier, small_model, texts


def probability(model: PoolingClassifier, words: list[str]) -> torch.Tensor:
    """p of every class for a text, the decoder's bias alone for none."""
    if not words:
        return model.two_sided(model.decoder.bias).double().softmax(-1)
    return model.trace(batch_of(model, [Example(0, (tuple(words),), 0)])).logits[0].double().softmax(-1)


@pytest.mark.parametrize("spec", SPECS)
def test_leave_one_out_is_the_tvd_after_deleting_each_word(spec: str) -> None:
    examples = texts(8)
    model = small_model(spec, examples)
    got = LeaveOneOut()(model, batch_of(model, examples)).values
    with torch.no_grad():
        for e, row in zip(examples, got, strict=True):
            words = list(e.words)
            for t in range(len(words)):
                p, q = probability(model, words), probability(model, words[:t] + words[t + 1 :])
                assert float(row[t]) == pytest.approx(float(0.5 * (p - q).abs().sum()), abs=1e-5)


@torch.no_grad()
def re_encoded(model: PoolingClassifier, batch: Batch) -> torch.Tensor:
    """Logits [batch, token, class] without each word, from every shortened text written out and run."""
    rows, gone = word_windows(batch, 1)
    logits = model.trace(write(batch, rows, gone, "delete").batch(torch.arange(len(rows)))[0]).logits
    out = logits.new_full((*batch.tokens.shape, logits.shape[-1]), torch.nan)
    out[rows, gone.byte().argmax(-1)] = logits
    return out


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("spec", [s for s in SPECS if s.startswith("bilstm")])
def test_deletion_by_reuse_equals_writing_out_every_shortened_text(
    spec: str, wrap: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = texts(40, longest=14)
    model = small_classifier(spec, examples, wrap)
    batch = batch_of(model, examples)
    (whole, fast), literal = deletions(model, batch), re_encoded(model, batch)
    assert (whole - model.trace(batch).logits).abs().max() < 1e-5
    monkeypatch.setattr(deletion, "ROWS", 20)  # few texts at a time
    assert (without_each_word(model, batch) - fast).abs().nan_to_num().max() < 1e-5
    assert torch.equal(fast.isnan(), literal.isnan())
    assert (fast - literal).abs().nan_to_num().max() < 1e-5
    spread = fast[batch.words].amax(0) - fast[batch.words].amin(0)
    assert spread.min() > 1e-2  # the words do matter here, so equal numbers mean something


@pytest.mark.parametrize("of", ["logit", "probability"])
def test_signed_leave_one_out_is_the_loss_of_the_explained_class(of: str) -> None:
    examples = texts(6)
    model = small_model(SPECS[0], examples)
    batch = batch_of(model, examples)
    scores = IMPORTANCES.make(f"leave_one_out:of={of}")(model, batch)
    whole, without = model.trace(batch).logits.double(), re_encoded(model, batch).double()
    if of == "probability":
        whole, without = whole.softmax(-1), without.softmax(-1)
    c = scores.target.label
    expected = whole.gather(1, c[:, None]) - without[torch.arange(6), :, c]
    assert scores.signed
    assert torch.allclose(scores.values, expected, atol=1e-6, equal_nan=True)


def numeric_gradient(model: PoolingClassifier, e: Example, weights: torch.Tensor | None) -> torch.Tensor:
    """∂ logit of the predicted class / ∂ embedding by central differences; `weights` hold attention still."""
    model = model.double()
    batch = batch_of(model, [e])
    base = model.embed(batch).detach()
    c = int(model.trace(batch).logits.argmax())

    def logit(embedded: torch.Tensor) -> float:
        intervene = None if weights is None else lambda site: weights.double()
        return float(model.trace(batch, embedded=embedded, intervene=intervene).logits[0, c].detach())

    gradient = torch.zeros_like(base)
    for t in range(base.shape[1]):
        for d in range(base.shape[2]):
            step = torch.zeros_like(base)
            step[0, t, d] = 1e-5
            gradient[0, t, d] = (logit(base + step) - logit(base - step)) / 2e-5
    return gradient[0]


@pytest.mark.parametrize("detach", [False, True])
def test_gradient_against_finite_differences(detach: bool) -> None:
    examples = texts(3)
    model = small_model(SPECS[0], examples)
    for e in examples:
        batch = batch_of(model, [e])
        got = {norm: Gradient(norm, detach)(model, batch).values[0] for norm in ("input", "l1", "l2")}
        weights = model.trace(batch).attention[SITE].detach() if detach else None
        gradient = numeric_gradient(model, e, weights)
        embedded = model.embed(batch)[0].detach()
        model.float()
        assert torch.allclose(got["input"].double(), (gradient * embedded).sum(-1).abs(), atol=1e-4)
        assert torch.allclose(got["l1"].double(), gradient.abs().sum(-1), atol=1e-4)
        assert torch.allclose(got["l2"].double(), gradient.norm(dim=-1), atol=1e-4)


def test_detaching_matters_and_quantities_are_proportional_with_one_output() -> None:
    examples = texts(8, longest=6)
    model = small_model(SPECS[0], examples)
    batch = batch_of(model, examples)
    logit, held = Gradient()(model, batch).values, Gradient(detach=True)(model, batch).values
    assert (logit - held).abs().nan_to_num().max() > 1e-3
    for of in ("probability", "loss"):
        other = Gradient(of=of)(model, batch).values
        shares = [v / v.nansum(-1, keepdim=True) for v in (logit, other)]
        assert torch.allclose(shares[0], shares[1], atol=1e-5, equal_nan=True)


def test_a_given_target_is_explained_and_reported() -> None:
    examples = texts(8, classes=3)
    model = small_model(SPECS[2], examples, labels=("x", "y", "z"))
    batch = batch_of(model, examples)
    target = Target(torch.full((8,), 2))
    chosen, own = Gradient()(model, batch, target), Gradient()(model, batch)
    assert torch.equal(chosen.target.label, target.label)
    assert torch.equal(own.target.label, model.trace(batch).logits.argmax(-1))
    assert not torch.allclose(chosen.values, own.values, equal_nan=True)


def test_attention_is_the_models_weights_and_knows_its_sites() -> None:
    examples = texts(5)
    model = small_model(SPECS[0], examples, wrap=True)
    batch = batch_of(model, examples)
    weights = model.trace(batch).attention[SITE][:, 0, 0]
    values = Attention()(model, batch).values
    torch.testing.assert_close(values[batch.words], weights[batch.words])
    with pytest.raises(UsageError, match="did you mean 'attention'"):
        Attention("atention")(model, batch)


def test_random_depends_on_example_and_word_alone() -> None:
    examples = texts(10)
    plain, wrapped = (small_model(SPECS[0], examples, wrap) for wrap in (False, True))
    a, b = (
        RandomImportance()(plain, batch_of(plain, examples)),
        RandomImportance()(wrapped, batch_of(wrapped, examples[3:5])),
    )
    batch = batch_of(wrapped, examples[3:5])
    assert torch.equal(a.values[3][~a.values[3].isnan()], b.values[0][batch.words[0]])
    assert a.values[0, 0] != a.values[1, 0]


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [("gradients", "did you mean 'gradient'"), ("gradient:nrom=l2", "did you mean 'norm'"), ("gradient:norm=l3", "l2")],
)
def test_wrong_names_are_one_sentence(spec: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        IMPORTANCES.make(spec)
