"""The classifier: against the paper's formulas written out slowly, for single texts and in batches."""

from collections.abc import Callable

import pytest
import torch

from exegete.base.errors import UsageError
from exegete.models.capabilities import Pooling
from exegete.models.contract import Predictor, Site
from exegete.models.ours.attention import Additive
from exegete.models.ours.classifier import SITE, PoolingClassifier
from exegete.models.ours.encoders import BiGRU, BiLSTM
from exegete.models.settings import MODELS
from tests.small import SPECS, batch_of, small_model, texts


def slow_logits(model: PoolingClassifier, words: list[str]) -> tuple[list[float], list[float]]:
    """Embedding, states, scores, softmax and linear decoder, position by position (bilstm, tanh, softmax)."""
    assert isinstance(model.encoder, BiLSTM)
    assert isinstance(model.scorer, Additive)
    lstm, hidden = model.encoder.lstm, model.settings.hidden
    vectors = [model.embedding.weight[model.vocabulary.index[w]] for w in words]
    sides = []
    for suffix, order in (("", range(len(words))), ("_reverse", reversed(range(len(words))))):
        w_ih, w_hh, b_ih, b_hh = (
            getattr(lstm, f"{n}_l0{suffix}") for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        h = c = torch.zeros(hidden)
        out: dict[int, torch.Tensor] = {}
        for t in order:
            i, f, g, o = (w_ih @ vectors[t] + b_ih + w_hh @ h + b_hh).split(hidden)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            out[t] = h
        sides.append(out)
    states = [torch.cat([side[t] for side in sides]) for t in range(len(words))]
    scores = torch.stack(
        [
            model.scorer.outer.weight[0] @ (model.scorer.linear.weight @ h + model.scorer.linear.bias).tanh()
            for h in states
        ]
    )
    alpha = scores.exp() / scores.exp().sum()
    context = sum((a * h for a, h in zip(alpha, states, strict=True)), torch.zeros(2 * hidden))
    z = model.decoder.weight[0] @ context + model.decoder.bias[0]
    return [-float(z) / 2, float(z) / 2], alpha.tolist()


def test_a_bilstm_predicts_as_the_paper_says() -> None:
    examples = texts(6)
    model = small_model(SPECS[0], examples)
    with torch.no_grad():
        for e in examples:
            trace = model.trace(batch_of(model, [e]))
            logits, alpha = slow_logits(model, list(e.words))
            assert trace.logits[0].tolist() == pytest.approx(logits, abs=1e-5)
            assert trace.attention[SITE][0, 0, 0].tolist() == pytest.approx(alpha, abs=1e-5)


@pytest.mark.parametrize("spec", SPECS)
def test_weights_lie_on_words_and_sum_to_one(spec: str) -> None:
    examples = texts(25)
    model = small_model(spec, examples, wrap=True)
    batch = batch_of(model, examples)
    weights = model.trace(batch).attention[SITE][:, 0, 0]
    assert (weights.sum(-1) - 1).abs().max() < 1e-5
    assert weights[~batch.words].abs().sum() == 0


@pytest.mark.parametrize("spec", SPECS)
def test_encode_once_decode_many_is_trace(spec: str) -> None:
    examples = texts(12)
    model = small_model(spec, examples)
    batch = batch_of(model, examples)
    encoded, trace = model.encode(batch), model.trace(batch)
    draws = torch.stack([trace.attention[SITE][:, 0, 0], batch.words / batch.lengths[:, None]], 1)
    uniform = model.trace(batch, intervene=lambda site: site.mask / site.mask.sum(-1, keepdim=True)).logits
    assert torch.allclose(model.decode(encoded, draws), torch.stack([trace.logits, uniform], 1), atol=1e-5)
    context = (draws[:, 1:] @ encoded.states)[:, 0]  # the literal order: pool first, decode after
    assert torch.allclose(model.two_sided(model.decoder(context)), uniform, atol=1e-5)


def test_one_output_shows_both_classes() -> None:
    examples = texts(5)
    model = small_model(SPECS[0], examples)
    logits = model.trace(batch_of(model, examples)).logits
    assert torch.equal(logits[:, 0], -logits[:, 1])


def test_interventions_see_the_site_and_rewrite_it() -> None:
    examples = texts(5)
    model = small_model(SPECS[0], examples)
    seen: list[Site] = []

    def first_word(site: Site) -> torch.Tensor:
        seen.append(site)
        return torch.zeros_like(site.weights).index_fill(-1, torch.tensor([0]), 1.0)

    trace = model.trace(batch_of(model, examples), intervene=first_word)
    assert seen[0].name == SITE
    assert seen[0].scores.shape == seen[0].weights.shape == trace.attention[SITE].shape
    assert torch.equal(trace.attention[SITE][..., 0], torch.ones(5, 1, 1))


def test_more_than_two_classes() -> None:
    examples = texts(10, classes=3)
    model = small_model(SPECS[0], examples, labels=("x", "y", "z"))
    assert model.trace(batch_of(model, examples)).logits.shape == (10, 3)
    assert isinstance(model, Predictor)
    assert isinstance(model, Pooling)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("bilstn", "unknown model 'bilstn': did you mean 'bilstm'"),
        ("bilstm:atention=dot", "unknown setting of model 'bilstm' 'atention': did you mean 'attention'"),
        ("bilstm:attention=cosine", "tanh"),
        ("bilstm:projection=sparsegen", "lam"),
        ("bilstm:projection=sparsegen,lam=1", "less than 1"),
        ("bilstm:hidden=many", "hidden"),
        ("bilstm:hidden", "key=value"),
    ],
)
def test_wrong_settings_are_one_sentence(spec: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        MODELS.make(spec)


@pytest.mark.parametrize("make", [lambda: BiLSTM(5, 4), lambda: BiGRU(5, 4), lambda: BiGRU(5, 4, layers=2)])
@pytest.mark.parametrize("shortest", [5, 1])  # little padding, and much
def test_a_recurrent_encoder_never_reads_padding(make: Callable[[], BiLSTM | BiGRU], shortest: int) -> None:
    """States, and gradients by the weights, of padded texts are those of every text alone."""
    torch.manual_seed(0)
    encoder = make().double()
    embedded, lengths = torch.randn(4, 7, 5, dtype=torch.float64), [7, shortest, shortest, 6]
    present = torch.arange(7) < torch.tensor(lengths)[:, None]
    got = encoder(embedded, present)
    alone = [
        encoder(row[None, :n], torch.ones(1, n, dtype=torch.bool))[0] for row, n in zip(embedded, lengths, strict=True)
    ]
    for row, own, n in zip(got, alone, lengths, strict=True):
        torch.testing.assert_close(row[:n], own)
        assert not row[n:].any()
    weights = list(encoder.parameters())
    together = torch.autograd.grad(got.square().sum(), weights)
    apart = torch.autograd.grad(torch.stack([own.square().sum() for own in alone]).sum(), weights)
    torch.testing.assert_close(together, apart)
