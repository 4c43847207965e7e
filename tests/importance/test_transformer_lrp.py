"""LRP of transformers: against relevance handed back by hand, conserved on every architecture, and leaving no trace."""

import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import Target
from exegete.importance.lrp import Lrp
from exegete.importance.torch_rules import relevant
from exegete.models.huggingface.attention import switch_attention
from exegete.models.huggingface.model import HuggingFace
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example
from tests.importance import slow_transformer_lrp as slow
from tests.models.architectures import MADE, NO_CLASSIFIER, classifier, each_of
from tests.small import SPECS, batch_of, small_model, texts

TEXTS = ("an unbelievably charming movie of plot", "bad", "a dull ok", "terrific movie of a bad plot")
EXAMPLES = tuple(Example(i, (tuple(text.split()),), i % 2) for i, text in enumerate(TEXTS))
CLASSIFIERS = tuple(name for name in MADE if name not in NO_CLASSIFIER)


def folded(model: HuggingFace, batch: Batch, pieces: Tensor) -> Tensor:
    """Summed over the pieces of a word, NaN where no word is."""
    found = model.pieces(batch)
    assert found.real.all()
    total = torch.zeros(batch.tokens.shape[1], dtype=pieces.dtype).index_add_(0, found.word[0], pieces)
    return total.where(batch.words[0], torch.nan)


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("text", range(len(TEXTS)))
def test_a_bert_by_hand(text: int, label: int) -> None:
    model = classifier("bert", torch.float64)
    batch = model.collate([EXAMPLES[text]])
    with torch.no_grad():
        pieces, logit = slow.bert(model.base, model.pieces(batch).ids[0], label)
    scores = Lrp()(model, batch, Target(torch.tensor([label])))
    torch.testing.assert_close(scores.values[0], folded(model, batch, pieces), rtol=1e-7, atol=1e-9, equal_nan=True)
    assert scores.error is not None
    assert float(scores.error) < 1e-12
    assert abs(float(pieces.sum() - logit)) > 1e-3  # constants do get something


@pytest.mark.parametrize("text", range(len(TEXTS)))
def test_a_llama_by_hand(text: int) -> None:
    model = classifier("llama", torch.float64)
    batch = model.collate([EXAMPLES[text]])
    with torch.no_grad(), switch_attention(model.base, "eager"):  # no other kernel of transformers tells its weights
        output = model.base(**model.inputs(model.pieces(batch), batch), output_attentions=True)
        weights = [of_layer[0] for of_layer in output.attentions]
        pieces, logit = slow.llama(model.base, model.pieces(batch).ids[0], 1, weights)
    scores = Lrp()(model, batch, Target(torch.tensor([1])))
    # The norms of LLaMA compute in single precision, whatever they are given.
    torch.testing.assert_close(scores.values[0], folded(model, batch, pieces), rtol=1e-5, atol=1e-6, equal_nan=True)
    assert float(pieces.sum()) == pytest.approx(float(logit), abs=1e-6)  # without constants, its pieces share all


@pytest.mark.parametrize("model_type", each_of(CLASSIFIERS))
def test_relevance_is_conserved(model_type: str) -> None:
    model = classifier(model_type)
    scores = Lrp()(model, model.collate(EXAMPLES))
    assert scores.error is not None
    assert float(scores.error.max()) < 1e-5
    assert scores.values.nansum() != 0


def test_half_gives_weights_their_part_and_is_not_conserved() -> None:
    model = classifier("bert")
    batch = model.collate(EXAMPLES)
    gates, half = (IMPORTANCES.make(f"lrp:attention={way}")(model, batch) for way in ("gates", "half"))
    assert not torch.allclose(gates.values, half.values, equal_nan=True)
    assert half.error is not None
    assert float(half.error.max()) > 0.01


def test_half_of_a_product_and_the_softmaxs_own_derivative() -> None:
    """One attention by hand: R_v = half; the other half goes through softmax to query and key, half of it each."""
    draw = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 1, 3, 4, dtype=torch.float64, generator=draw).requires_grad_() for _ in range(3))
    with relevant((), "half", 1):
        out = (q @ k.mT).softmax(-1) @ v
    got = torch.autograd.grad(out.sum(), (q, k, v))
    scores = (q @ k.mT).detach()[0, 0]
    weights, values = scores.softmax(-1), v.detach()[0, 0]
    of_weights = values.sum(-1).expand(3, 3) / 2  # ∂ Σ out / ∂ α_ij, halved
    of_scores = torch.zeros_like(scores)
    for i in range(3):
        for j in range(3):
            of_scores[i, j] = weights[i, j] * (of_weights[i, j] - (weights[i] * of_weights[i]).sum())
    torch.testing.assert_close(got[2][0, 0], weights.sum(0)[:, None].expand(3, 4) / 2)
    torch.testing.assert_close(got[0][0, 0], of_scores @ k.detach()[0, 0] / 2)
    torch.testing.assert_close(got[1][0, 0], of_scores.mT @ q.detach()[0, 0] / 2)


def test_contrast_is_the_difference_of_two_classes() -> None:
    model = classifier("roberta")
    batch = model.collate(EXAMPLES)
    one, other = torch.ones(4, dtype=torch.int64), torch.zeros(4, dtype=torch.int64)
    both = Lrp()(model, batch, Target(one, contrast=other)).values
    apart = Lrp()(model, batch, Target(one)).values - Lrp()(model, batch, Target(other)).values
    torch.testing.assert_close(both, apart, atol=1e-5, rtol=1e-4, equal_nan=True)


def test_the_model_is_as_it_was_also_after_an_exception() -> None:
    model = classifier("gpt2")
    batch = model.collate(EXAMPLES)
    own = model.logits(batch)
    frozen = next(model.parameters())
    frozen.requires_grad_(False)
    try:
        with pytest.raises(ArithmeticError), relevant(model.parts(), "gates", 4):
            raise ArithmeticError
        learning = [parameter.requires_grad for parameter in model.parameters()]
        assert learning.count(False) == 1
        assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
        assert torch.equal(model.logits(batch), own)
    finally:
        frozen.requires_grad_(True)


def test_settings_of_the_other_kind_are_refused() -> None:
    model, ours = classifier("bert"), small_model(SPECS[0], texts(2))
    for spec in ("lrp:epsilon=0.1", "lrp:bias=false"):
        with pytest.raises(UsageError, match="no epsilon and no bias"):
            IMPORTANCES.make(spec)(model, model.collate(EXAMPLES))
    with pytest.raises(UsageError, match="attention=half is for"):
        IMPORTANCES.make("lrp:attention=half")(ours, batch_of(ours, texts(2)))
