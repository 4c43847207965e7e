"""The adversary's objective: its value by hand, its cache, sparse bases, and what training with it does."""

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.measures.divergence import jsd
from exegete.models.build import build
from exegete.models.contract import Trace
from exegete.models.ours.classifier import SITE, PoolingClassifier
from exegete.tasks.batching import Batch, collate
from exegete.tasks.example import Example
from exegete.training.adversary import FLOOR, Adversary, AgainstBase, readout_of, real_keys
from exegete.training.fit import Fit
from exegete.training.objectives import OBJECTIVES
from exegete.training.settings import TrainingSettings
from tests.models.own_models import GENERAL, own, written
from tests.models.spelled_models import MEAN, sentences, spelled_model, spelled_task
from tests.small import SPECS, pooling, small_model, small_task, texts

TASK = small_task()
TEXTS = texts(12, seed=3)
LAM = 0.3


def pair(spec: str, wrap: bool = False) -> tuple[PoolingClassifier, PoolingClassifier]:
    """A base, and another model of its kind."""
    base = small_model(spec, TEXTS, wrap)
    other = small_model(spec, TEXTS, wrap)
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return base, other


@torch.no_grad()
def slowly(base: PoolingClassifier, other: PoolingClassifier, lam: float, halved: bool = False) -> float:
    """TVD − λ KL straight from the definition, one text at a time, no batch, no padding."""
    losses: list[float] = []
    for example in TEXTS:
        batch = collate([example], base.vocabulary)
        a, b = (model.trace(batch) for model in (other, base))
        p, q = a.logits[0].double().softmax(-1).tolist(), b.logits[0].double().softmax(-1).tolist()
        tvd = sum(abs(x - y) for x, y in zip(p, q, strict=True)) / 2
        kl = 0.0
        for place, word in enumerate(batch.words[0].tolist()):
            mine, theirs = (float(t.attention[SITE][0, 0, 0, place]) for t in (a, b))
            if word and mine > 0:
                kl += mine * math.log(mine / max(theirs, FLOOR))
        losses.append((tvd / 2 if halved else tvd) - lam * kl)
    return sum(losses) / len(losses)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("wrap", [False, True])
def test_the_loss_by_hand(spec: str, wrap: bool) -> None:
    base, other = pair(spec, wrap)
    loss = Adversary(LAM).bound(base, TASK)
    batch = collate(TEXTS, base.vocabulary)  # of many lengths: padded
    with torch.no_grad():
        assert float(loss(other.trace(batch), batch)) == pytest.approx(slowly(base, other, LAM), abs=1e-5)


def test_legacy_halves_the_tvd_alone() -> None:
    base, other = pair(SPECS[0])
    batch = collate(TEXTS, base.vocabulary)
    with torch.no_grad():
        trace = other.trace(batch)
        halved = float(Adversary(LAM, legacy=True).bound(base, TASK)(trace, batch))
        doubled = float(Adversary(2 * LAM).bound(base, TASK)(trace, batch))
    assert halved == pytest.approx(slowly(base, other, LAM, halved=True), abs=1e-5)
    assert halved == pytest.approx(doubled / 2, abs=1e-6)  # their λ does what ours does at 2λ


def test_more_than_two_classes() -> None:
    labels = ("a", "b", "c")
    base, other = (small_model(SPECS[0], TEXTS, labels=labels) for _ in range(2))
    with torch.no_grad():
        other.decoder.bias.add_(torch.tensor([2.0, 0.0, -1.0]))
    batch = collate(TEXTS, base.vocabulary)
    with torch.no_grad():
        assert float(Adversary(LAM).bound(base, TASK)(other.trace(batch), batch)) == pytest.approx(
            slowly(base, other, LAM), abs=1e-5
        )


def test_the_base_runs_once_per_text_and_what_is_kept_is_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    base, other = pair(SPECS[0])
    loss = Adversary(LAM).bound(base, TASK)
    runs: list[int] = []
    own = base.trace

    def counted(batch: Batch) -> Trace:
        runs.append(len(batch.ids))
        return own(batch)

    monkeypatch.setattr(base, "trace", counted)
    first = collate(TEXTS, base.vocabulary)
    again = collate(TEXTS[::-1][:5], base.vocabulary)  # another batch, another padding
    with torch.no_grad():
        before = float(loss(other.trace(first), first))
        kept = float(loss(other.trace(again), again))
        assert runs == [len(TEXTS)]
        assert float(loss(other.trace(first), first)) == before
        fresh = float(Adversary(LAM).bound(base, TASK)(other.trace(again), again))
    assert kept == pytest.approx(fresh, abs=1e-6)


def test_the_same_text_with_other_ids_is_the_same_text() -> None:
    base, _ = pair(SPECS[0])
    loss = Adversary(LAM).bound(base, TASK)
    for number in (1, 2):
        batch = collate([Example(number, (("a", "b"),), 0)], base.vocabulary)
        loss(base.trace(batch), batch)
    assert len(loss.known) == 1


def test_a_sparse_base_gives_a_finite_loss_and_finite_gradients() -> None:
    sparse = "bilstm:size=7,hidden=6,scale=1,projection=sparsemax"
    base, other = pair(sparse)
    batch = collate(TEXTS, base.vocabulary)
    assert bool((base.trace(batch).attention[SITE][:, 0, 0][batch.words] == 0).any())
    loss = Adversary(1.0).bound(base, TASK)(other.trace(batch), batch)
    loss.backward()
    assert bool(loss.isfinite())
    assert abs(loss.item()) <= math.log(1 / FLOOR) + 1
    assert all(bool(p.grad.isfinite().all()) for p in other.parameters() if p.grad is not None)


def test_real_keys_are_the_words() -> None:
    base, _ = pair(SPECS[0], wrap=True)
    batch = collate(TEXTS, base.vocabulary)
    assert torch.equal(real_keys(base.trace(batch), SITE), batch.words)


def test_the_divergence_of_several_heads_is_their_mean(tmp_path: Path) -> None:
    """Two models with two heads: written slowly, text by text and head by head."""
    spec = written(tmp_path, GENERAL)
    base, other = own(spec), own(spec)
    for parameter in other.parameters():
        parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)) * 0.5)
    batch = collate(TEXTS, base.vocabulary)
    loss, slow = Adversary(LAM).bound(base, TASK), 0.0
    for row in range(len(batch.ids)):
        one = batch.rows(torch.tensor([row]), int(batch.lengths[row]))
        traces = other.trace(one), base.trace(one)
        a, b = (trace.attention["pool"][0, :, 0].tolist() for trace in traces)
        p, q = (trace.logits[0].softmax(-1).tolist() for trace in traces)
        kl = [sum(x * math.log(x / y) for x, y in zip(a[h], b[h], strict=True)) for h in range(2)]
        slow += sum(abs(x - y) for x, y in zip(p, q, strict=True)) / 2 - LAM * sum(kl) / 2
    assert float(loss(other.trace(batch), batch)) == pytest.approx(slow / len(batch.ids), abs=1e-5)


def test_queries_that_are_padding_do_not_count() -> None:
    """A text has the same loss alone, beside longer ones, and from what was stored of it in either way."""
    base, other = (spelled_model(MEAN) for _ in range(2))
    with torch.no_grad():
        other.encoder.layers[-1].get_parameter("attention.query.weight").mul_(-1)
    examples = sentences(5, seed=8)
    batch, objective = other.collate(examples), Adversary(2.0).bound(base, spelled_task())
    assert batch.ragged
    for fresh in (objective, Adversary(2.0).bound(base, spelled_task())):
        alone = [fresh(other.trace(one), one) for one in (other.collate([e]) for e in examples)]
        assert torch.allclose(objective(other.trace(batch), batch), torch.stack(alone).mean(), atol=1e-5)


@torch.no_grad()
def test_word_weights_are_the_same_alone_and_beside_longer_texts() -> None:
    model, examples = spelled_model(MEAN), sentences(5, seed=8)
    batch, readout = model.collate(examples), readout_of(model)
    together = model.trace(batch).word_weights(readout, batch)
    assert together is not None
    for row, example in enumerate(examples):
        one = model.collate([example])
        alone = model.trace(one).word_weights(readout, one)
        assert alone is not None
        assert torch.allclose(together[row, : len(example)], alone[0], atol=1e-6)
        assert alone.sum() == pytest.approx(1, abs=1e-5)


def test_a_site_that_is_not_there_is_refused() -> None:
    base, other = pair(SPECS[0])
    batch = collate(TEXTS, base.vocabulary)
    trace = other.trace(batch)
    with pytest.raises(UsageError, match="none of that name"):
        Adversary(LAM).bound(base, TASK)(trace._replace(attention={}), batch)


def test_a_model_without_pooling_is_refused() -> None:
    with pytest.raises(UsageError, match="LastState has none"):
        Adversary(LAM).bound(build("bilstm:size=4,hidden=3,attention=none", TASK), TASK)


def test_a_base_with_other_words_is_refused() -> None:
    """Its rows are other words: the base would answer about a text that nobody wrote."""
    train = TASK.split("train")
    base, other = small_model(SPECS[0], train[:3]), small_model(SPECS[0], train)
    assert base.vocabulary != other.vocabulary
    against, batch = Adversary(LAM).bound(base, TASK), other.collate(train[:3])
    with pytest.raises(UsageError, match="another model's vocabulary"):
        against(other.trace(batch), batch)
    with pytest.raises(UsageError, match="another model's vocabulary"):
        base.trace(batch)
    assert torch.isfinite(against(base.trace(base.collate(train[:3])), base.collate(train[:3])))


@pytest.mark.parametrize("lam", [-1, math.nan, math.inf])
def test_wrong_settings(lam: float) -> None:
    with pytest.raises(UsageError, match="lam is 0 or above"):
        Adversary(lam)


SPEC = "bilstm:size=8,hidden=8,scale=1"
FAST = TrainingSettings(epochs=4, patience=9, lr=0.02, metric="accuracy")


@pytest.fixture(scope="module")
def base() -> PoolingClassifier:
    model = pooling(SPEC, TASK)
    Fit(model, TASK, FAST, 0).run()
    return model


def adversary(base: PoolingClassifier, lam: float, frozen: bool = False) -> PoolingClassifier:
    model = pooling(SPEC, TASK, 1)
    if frozen:
        model.load_state_dict(base.state_dict())
    loss: AgainstBase = OBJECTIVES.make(f"adversary:lam={lam}").bound(base, TASK)
    settings = FAST.model_copy(update={"metric": "loss"})
    Fit(model, TASK, settings, 1, None, loss, "attention" if frozen else "all").run()
    return model


def apart(base: PoolingClassifier, other: PoolingClassifier) -> tuple[float, float]:
    """Mean JSD and TVD on test texts."""
    batch = collate(TASK.split("test"), base.vocabulary)
    with torch.no_grad():
        a, b = base.trace(batch), other.trace(batch)
    nan = torch.where(batch.words, 0.0, torch.nan)
    weights: list[Tensor] = [t.attention[SITE][:, 0, 0] + nan for t in (a, b)]
    changed = (a.logits.softmax(-1) - b.logits.softmax(-1)).abs().sum(-1) / 2
    return float(jsd(weights[0], weights[1]).mean()), float(changed.mean())


def test_a_large_lam_drives_attention_away_and_a_small_one_predictions_together(base: PoolingClassifier) -> None:
    near, far = (apart(base, adversary(base, lam)) for lam in (0.0, 1.0))
    assert far[0] > near[0] + 0.2
    assert near[1] < far[1]


def test_a_frozen_adversary_moves_attention_alone(base: PoolingClassifier) -> None:
    model = adversary(base, 1.0, frozen=True)
    own = {id(p) for p in model.attention_parameters()}
    moved = {name for name, p in model.named_parameters() if id(p) in own}
    theirs = dict(base.named_parameters())
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, theirs[name]) == (name not in moved), name
