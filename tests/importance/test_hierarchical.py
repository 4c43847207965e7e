"""Importances of documents: what attention means at two levels."""

import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.importance.attention import Attention
from exegete.importance.attention_x_gradient import AttentionXGradient
from exegete.importance.attention_x_norm import AttentionXNorm
from exegete.importance.contract import refusal
from exegete.importance.deeplift import DeepLift
from exegete.importance.leave_one_out import LeaveOneOut
from exegete.importance.lrp import Lrp
from exegete.models.contract import Site
from exegete.models.ours.hierarchical import SENTENCE, WORD
from exegete.tasks.example import Example
from exegete.tasks.sentences import split_sentences
from tests.documents import HIERARCHICAL, SMALL, document_model, documents, hierarchical, last_state
from tests.small import batch_of

DOCUMENTS = documents(7, sentences=3, longest=3)


@torch.no_grad()
def test_attention_is_the_product_of_both_levels_unless_a_site_is_named() -> None:
    model = hierarchical(HIERARCHICAL[0], DOCUMENTS)
    batch = batch_of(model, DOCUMENTS)
    trace = model.trace(batch)
    scores = {site: Attention(site)(model, batch).values for site in (None, WORD, SENTENCE)}
    norms = AttentionXNorm()(model, batch).values
    for i, e in enumerate(DOCUMENTS):
        t = 0
        for s, sentence in enumerate(split_sentences(e.words)):
            for _ in sentence:
                within, across = float(trace.attention[WORD][i, 0, s, t]), float(trace.attention[SENTENCE][i, 0, 0, s])
                assert float(scores[WORD][i, t]) == pytest.approx(within, abs=1e-6)
                assert float(scores[SENTENCE][i, t]) == pytest.approx(across, abs=1e-6)
                assert float(scores[None][i, t]) == pytest.approx(within * across, abs=1e-6)
                length = float(trace.states[WORD][i, t].norm())
                assert float(norms[i, t]) == pytest.approx(within * across * length, abs=1e-5)
                t += 1
    assert torch.allclose(scores[None].nansum(-1), torch.ones(len(DOCUMENTS)), atol=1e-5)


def test_attention_times_gradient_is_the_derivative_by_the_weights_of_words() -> None:
    model = hierarchical(HIERARCHICAL[0], DOCUMENTS).double()
    for e in DOCUMENTS[:5]:
        batch = batch_of(model, [e])
        scores = AttentionXGradient()(model, batch)
        assert torch.equal(scores.values, AttentionXGradient(site=WORD)(model, batch).values)
        weights, c = model.trace(batch).attention[WORD].detach(), int(scores.target.label[0])
        for t in range(len(e)):
            s = int(batch.sentence[0, t])

            def logit(step: float, s: int = s, t: int = t, weights: Tensor = weights, c: int = c) -> float:
                def moved(site: Site) -> Tensor:
                    return weights + step * at if site.name == WORD else site.weights

                at = torch.zeros_like(weights)
                at[0, 0, s, t] = 1
                return float(model.trace(batch, intervene=moved).logits[0, c].detach())  # noqa: B023

            slope = (logit(1e-5) - logit(-1e-5)) / 2e-5
            assert float(scores.values[0, t]) == pytest.approx(float(weights[0, 0, s, t]) * slope, abs=1e-6)


@pytest.mark.parametrize("spec", [HIERARCHICAL[0], HIERARCHICAL[2]])
@torch.no_grad()
def test_leave_one_out_deletes_a_word_and_keeps_the_other_sentences(spec: str) -> None:
    model = hierarchical(spec, DOCUMENTS)
    got = LeaveOneOut()(model, batch_of(model, DOCUMENTS)).values
    for e, row in zip(DOCUMENTS, got, strict=True):
        p = model.trace(batch_of(model, [e])).logits[0].double().softmax(-1)
        for t in range(len(e)):
            left = batch_of(model, [Example(0, ((*e.words[:t], *e.words[t + 1 :]),), 0)])
            kept = [n for i, n in enumerate(batch_of(model, [e]).sentence[0].tolist()) if i != t]
            if kept:  # the sentences are those of the whole text, also without the mark between two of them
                left = left._replace(sentence=torch.tensor([kept]))
            q = model.trace(left).logits[0].double().softmax(-1)
            assert float(row[t]) == pytest.approx(float(0.5 * (p - q).abs().sum()), abs=1e-5)


def test_what_needs_one_level_is_refused_and_what_has_no_encoder_is_exact() -> None:
    model = hierarchical(HIERARCHICAL[0], DOCUMENTS)
    for importance in (Lrp(), DeepLift()):
        assert "Hierarchical" in str(refusal(importance, model))
    plain = document_model(f"flat:{SMALL},encoder=none", DOCUMENTS)
    batch = batch_of(plain, DOCUMENTS)
    logit = plain.trace(batch).logits.amax(-1)
    bias = plain.two_sided(plain.decoder.bias)[plain.trace(batch).logits.argmax(-1)]
    share = AttentionXGradient()(plain, batch).values  # α_t (W e_t)_c: with imposed weights the model is linear
    assert torch.allclose(share.nansum(-1), logit - bias, atol=1e-5)
    assert torch.allclose(DeepLift()(plain, batch).values.float(), share, atol=1e-5, equal_nan=True)
    relevance = Lrp()(plain, batch)
    assert torch.allclose(relevance.values.nansum(-1).float(), logit, atol=1e-4)
    assert relevance.error is not None
    assert relevance.error.max() < 1e-6


def test_a_model_without_attention_has_no_weights_to_read() -> None:
    model = last_state(f"flat:{SMALL},attention=none", DOCUMENTS)
    for importance in (Attention(), AttentionXNorm(), AttentionXGradient()):
        assert "no attention" in str(refusal(importance, model))
        with pytest.raises(UsageError, match="no attention"):
            importance(model, batch_of(model, DOCUMENTS))
