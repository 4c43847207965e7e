"""Models without attention: what they read, written out slowly; padding; and what refuses them with a sentence."""

import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.importance.catalogue import IMPORTANCES, computable
from exegete.importance.contract import Importance, refusal
from exegete.models.build import build, make_classifier
from exegete.models.capabilities import Pooling
from exegete.models.ours.classifier import PoolingClassifier
from exegete.models.ours.encoders import CNN, Average, BiGRU, BiLSTM, Identity
from exegete.models.ours.last_state import LastState
from exegete.models.settings import MODELS
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import END, START, fit_vocabulary
from exegete.training.evaluation import evaluate
from exegete.training.fit import Fit
from exegete.training.settings import TrainingSettings
from tests.small import SEPARATING, batch_of, small_task, texts

TEXTS = texts(14)
KINDS = ("bilstm", "bigru", "average", "cnn", "flat:encoder=none")
NEED_WEIGHTS = (
    "attention", "attention_x_gradient", "attention_x_norm", "rollout", "flow", "reading", "lrp", "deeplift",
    "blocking", *SEPARATING,
)  # fmt: skip


def made(kind: str, wrap: bool = False) -> LastState:
    torch.manual_seed(0)
    spec = f"{kind}{',' if ':' in kind else ':'}size=6,hidden=8,scale=1,attention=none"
    model = make_classifier(spec, fit_vocabulary(TEXTS, wrap=wrap), ("no", "yes")).eval().double()
    assert isinstance(model, LastState)
    return model


def final_state(cell: BiLSTM | BiGRU, vectors: list[Tensor], suffix: str) -> Tensor:
    """One direction, step by step, in the order in which the vectors are given; its state after the last."""
    layer = cell.lstm if isinstance(cell, BiLSTM) else cell.gru
    w_ih, w_hh, b_ih, b_hh = (
        getattr(layer, f"{n}_l0{suffix}") for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    hidden = w_hh.shape[1]
    h = c = torch.zeros(hidden, dtype=torch.float64)
    for x in vectors:
        if isinstance(cell, BiLSTM):
            i, f, g, o = (w_ih @ x + b_ih + w_hh @ h + b_hh).split(hidden)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        else:
            (ri, zi, ni), (rh, zh, nh) = (w_ih @ x + b_ih).split(hidden), (w_hh @ h + b_hh).split(hidden)
            r, z = (ri + rh).sigmoid(), (zi + zh).sigmoid()
            h = (1 - z) * (ni + r * nh).tanh() + z * h
    return h


def convolved(encoder: CNN, vectors: list[Tensor], t: int) -> Tensor:
    """The state of one place: every filter over its window, zeros beyond the ends."""
    out = []
    for convolution in encoder.convolutions:
        weight, bias = convolution.weight, convolution.bias  # [filter, size, width]
        assert isinstance(weight, Tensor)
        assert isinstance(bias, Tensor)
        total = bias.clone()
        for k in range(weight.shape[-1]):
            place = t + k - weight.shape[-1] // 2
            if 0 <= place < len(vectors):
                total = total + weight[:, :, k] @ vectors[place]
        out.append(total.relu())
    return torch.cat(out)


def slow(model: LastState, words: tuple[str, ...]) -> list[float]:
    """Logits of one text, by what Jain & Wallace (2019) call the last hidden state."""
    inside = [model.embedding.weight[model.vocabulary.index[w]] for w in words]
    ends = [[model.embedding.weight[row]] if model.vocabulary.wrap else [] for row in (START, END)]
    vectors, first = [*ends[0], *inside, *ends[1]], len(ends[0])
    if isinstance(model.encoder, BiLSTM | BiGRU):
        read = torch.cat(
            [final_state(model.encoder, vectors, ""), final_state(model.encoder, vectors[::-1], "_reverse")]
        )
    elif isinstance(model.encoder, Identity):
        read = torch.stack(inside).sum(0) / len(inside)
    elif isinstance(model.encoder, Average):
        linear = model.encoder.linear
        read = torch.stack([(linear.weight @ x + linear.bias).tanh() for x in inside]).sum(0) / len(inside)
    else:
        assert isinstance(model.encoder, CNN)
        states = [convolved(model.encoder, vectors, first + t) for t in range(len(inside))]
        read = torch.stack([torch.stack([s[d] for s in states]).max() for d in range(len(states[0]))])
    z = float(model.decoder.weight[0] @ read + model.decoder.bias[0])
    return [-z / 2, z / 2]


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_the_decoder_reads_the_last_state(kind: str, wrap: bool) -> None:
    model = made(kind, wrap)
    trace = model.trace(batch_of(model, TEXTS))
    for e, logits in zip(TEXTS, trace.logits, strict=True):
        assert logits.tolist() == pytest.approx(slow(model, e.words), abs=1e-10)
    assert (trace.attention, trace.states, trace.owner) == ({}, {}, {})
    assert float(trace.logits[:, 0].std()) > 0.01  # texts do differ


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_without_words_leaves_the_bias(kind: str) -> None:
    model = made(kind)
    for others in ((), TEXTS[:1]):
        batch = batch_of(model, [Example(0, ((),), 0), *others])
        torch.testing.assert_close(model.trace(batch).logits[0], model.two_sided(model.decoder.bias))


@pytest.mark.parametrize("name", computable())
def test_importances_that_read_weights_refuse_and_the_others_work(name: str) -> None:
    model = made("bilstm").float()
    samples = ":samples=10" if name in ("lime", "kernel_shap", "smoothgrad") else ""
    importance: Importance = IMPORTANCES.make(name + samples)
    reason = refusal(importance, model)
    assert (reason is not None) == (name in NEED_WEIGHTS)
    batch = batch_of(model, TEXTS[:3])
    if reason is None:
        assert torch.equal(importance(model, batch).values.isnan(), ~batch.words)
    else:
        with pytest.raises(UsageError):
            importance(model, batch)


def test_there_is_nothing_to_rewrite() -> None:
    model = made("bilstm")
    batch = batch_of(model, TEXTS)
    assert model.sites == ()
    assert list(model.attention_parameters()) == []

    def never(site: object) -> Tensor:
        raise AssertionError(site)

    assert torch.equal(model.trace(batch, intervene=never).logits, model.trace(batch).logits)
    assert model.readout is None
    assert not isinstance(model, Pooling)


@pytest.mark.parametrize("spec", ["rationale:attention=none", "ladder:attention=none"])
def test_models_that_are_nothing_without_attention(spec: str) -> None:
    with pytest.raises(UsageError, match="tanh"):
        MODELS.make(spec)


def test_it_learns_though_attention_has_no_parameters() -> None:
    task = small_task(longest=5)
    model = build("bilstm:size=8,hidden=8,scale=1,attention=none,projection=sparsegen,lam=0.5", task)
    assert isinstance(model, LastState)
    fit = Fit(model, task, TrainingSettings(epochs=8, patience=8, lr=0.03, metric="accuracy"), 0)
    fit.run()
    assert (evaluate(model, task.split("train"))["accuracy"] or 0) > 0.85
    assert isinstance(build("bilstm:size=8,hidden=8", task), PoolingClassifier)
