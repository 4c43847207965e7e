"""Integrated gradients: by hand on polynomials, against captum and a slow loop, and complete."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import pytest
import torch
from captum.attr import IntegratedGradients as Captum
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.importance.baselines import baseline
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import refusal
from exegete.importance.integrated_gradients import IntegratedGradients
from exegete.models.contract import Intervention, Predictor, Trace
from exegete.models.ours.classifier import PoolingClassifier
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import PAD, SPECIAL, UNKNOWN, Vocabulary
from tests.small import SPECS, batch_of, small_model, texts
from tests.toy import Toy

SMOOTH = "average:size=7,hidden=6,scale=1"
KINDS = (SPECS[0], SPECS[4], SPECS[5])  # bilstm, average, cnn


@dataclass(frozen=True)
class Power(Toy):
    """f_1(x) = s (Uᵖ + Σ_t x_t) with U = Σ_t y_t, where token k has the embedding (x, y) = (k, k mod 3); f_0 = −100."""

    power: int
    scale: float = 1.0
    sites: tuple[str, ...] = ()

    def embed(self, batch: Batch) -> Tensor:
        return torch.stack([batch.tokens, batch.tokens % 3], -1).double()

    def trace(
        self,
        batch: Batch,
        *,
        embedded: Tensor | None = None,
        intervene: Intervention | None = None,
        keep: Collection[str] | None = None,
    ) -> Trace:
        del intervene, keep
        x, y = ((self.embed(batch) if embedded is None else embedded) * batch.words[..., None]).unbind(-1)
        f = self.bent(y.sum(-1)) + self.scale * x.sum(-1)
        return Trace(torch.stack([torch.full_like(f, -100), f], -1), {}, {}, {})

    def bent(self, u: Tensor) -> Tensor:
        """What is not linear."""
        return self.scale * u**self.power


@dataclass(frozen=True)
class Kink(Power):
    """f_1(x) = max(0, U − 2.7) + Σ_t x_t: the power is not used."""

    def bent(self, u: Tensor) -> Tensor:
        return (u - 2.7).clamp(min=0)


def tokens(*rows: list[int]) -> Batch:
    width = max(map(len, rows))
    table = torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows])
    there = table != PAD
    return Batch(
        torch.arange(len(rows)),
        table,
        there,
        there,
        there.long() - 1,
        there.long() - 1,
        table[:, 0] * 0,
        Vocabulary(()),
    )


class Found(NamedTuple):
    values: Tensor
    error: Tensor
    forward: list[int]
    backward: list[int]


def explained(importance: IntegratedGradients, model: Predictor, batch: Batch) -> Found:
    scores = importance(model, batch)
    assert scores.signed
    assert scores.error is not None
    assert scores.cost is not None
    return Found(scores.values, scores.error, scores.cost.forward.tolist(), scores.cost.backward.tolist())


def test_a_square_is_shared_in_proportion() -> None:
    # (Σ u)² from 0: ∂/∂u_t = 2aU, whose integral over a is U, so word t gets u_t U. Here u = (1, 2, 0, 2), U = 5.
    batch = tokens([4, 5, 6, 8])
    scores = explained(IntegratedGradients(), Power(2), batch)
    assert scores.values[0].tolist() == pytest.approx([4 + 1 * 5, 5 + 2 * 5, 6 + 0 * 5, 8 + 2 * 5])
    # The right sum with m points: Σ_k 2 (k/m) / m = 1 + 1/m times too much of it.
    coarse = explained(IntegratedGradients(rule="riemann", steps=4, bound=0), Power(2), batch)
    assert coarse.values[0].tolist() == pytest.approx([4 + 5 * 1.25, 5 + 10 * 1.25, 6, 8 + 10 * 1.25])
    assert float(coarse.error[0]) == pytest.approx(25 * 0.25 / (23 + 25))


def test_pieces_are_halved_only_where_they_must() -> None:
    # One point gives 3U²/4 of U³: 25 % short of it. On the pieces from 0 to ½ and from ½ to 1 one point is short by
    # U³/32 each, on all pieces of a length l by U³ l³/4. Where U = 0 the function is linear: one point is exact.
    batch = tokens([4, 5, 7], [6, 6, 9], [5, 5])
    scores = explained(IntegratedGradients(steps=1, bound=0.06), Power(3), batch)
    assert scores.backward == [1 + 2, 1, 1 + 2]  # 64/16 of 80 is within the bound, and 64/16 of 74 too
    assert scores.forward == [1 + 2 + 3, 1 + 2, 1 + 2 + 3]  # points, and the ends of all pieces
    assert scores.error.tolist() == pytest.approx([64 / 16 / (64 + 16), 0, 64 / 16 / (64 + 10)])
    assert scores.values[0].tolist() == pytest.approx([4 + 1 * 15, 5 + 2 * 15, 7 + 1 * 15])
    assert scores.values[1].tolist() == pytest.approx([6, 6, 9])
    fine = explained(IntegratedGradients(steps=2), Power(3), batch)
    assert fine.backward == [2, 2, 2]  # two points are exact
    assert fine.values[0].tolist() == pytest.approx([4 + 1 * 16, 5 + 2 * 16, 7 + 1 * 16])
    fixed = explained(IntegratedGradients(steps=1, bound=0), Power(3), batch)
    assert fixed.backward == [1, 1, 1]
    assert fixed.error.tolist() == pytest.approx([0.25 * 64 / (64 + 16), 0, 0.25 * 64 / (64 + 10)])


def test_only_the_pieces_around_a_kink_are_halved() -> None:
    """A function that is linear on both sides of one kink: no other piece is halved."""
    batch = tokens([4, 5, 7])
    found = explained(IntegratedGradients(steps=2, bound=1e-4), Kink(3), batch)
    assert 20 < found.backward[0] < 2 + 2 * 2 * 14  # halving one piece at a time; all of them, it would be thousands
    assert float(found.error[0]) <= 1e-4
    assert float(found.values[0].sum()) == pytest.approx(16 + 1.3, rel=1e-3)  # Σ x + max(0, U − 2.7)


def test_a_bound_out_of_reach_ends_at_most_and_shows() -> None:
    scores = explained(IntegratedGradients(rule="riemann", steps=2, most=12), Power(2), tokens([4, 5, 7]))
    assert scores.backward == [2 + 4]  # both halves halved would be 14
    assert scores.error.tolist() == pytest.approx([16 / 4 / (16 + 16)])
    assert scores.error[0] > 0.01


def test_a_small_difference_is_measured_against_the_floor() -> None:
    # U² = 16 and Σ x = 16; the right sum of one point takes 2 U². The excess is 16 s, of a gain of 32 s.
    coarse = IntegratedGradients(rule="riemann", steps=1, bound=0)
    for scale, error in ((1.0, 0.5), (1e-3, 0.5), (1e-4, 16e-4 / 0.01)):
        scores = explained(coarse, Power(2, scale), tokens([4, 5, 7]))
        assert scores.error.tolist() == pytest.approx([error])


def slow_riemann(model: PoolingClassifier, e: Example, steps: int, start: Tensor, label: int) -> Tensor:
    """Equation 4 of Bastings & Filippova (2020), one text and one step at a time."""
    batch = batch_of(model, [e])
    x = model.embed(batch).detach()
    total = torch.zeros(x.shape[1])
    for k in range(1, steps + 1):
        between = (start + k / steps * (x - start)).requires_grad_()
        model.trace(batch, embedded=between).logits[0, label].backward()
        assert between.grad is not None
        total += (between.grad * (x - start)).sum(-1)[0] / steps
    return total


@pytest.mark.parametrize("wrap", [False, True])
def test_riemann_against_a_slow_loop(wrap: bool) -> None:
    examples = texts(5)
    model = small_model(SPECS[0], examples, wrap)
    batch = batch_of(model, examples)
    scores = IntegratedGradients(rule="riemann", steps=6, bound=0)(model, batch)
    for i, e in enumerate(examples):
        alone = batch_of(model, [e])
        start = model.embed(alone).detach().masked_fill(alone.words[..., None], 0)
        expected = slow_riemann(model, e, 6, start, int(scores.target.label[i]))[alone.words[0]]
        assert torch.allclose(scores.values[i, batch.words[i]], expected.double(), atol=1e-5)


@pytest.mark.parametrize(("rule", "theirs"), [("legendre", "gausslegendre"), ("riemann", "riemann_right")])
@pytest.mark.parametrize("spec", KINDS)
def test_the_same_as_captum(spec: str, rule: str, theirs: str) -> None:
    examples = texts(6)
    model = small_model(spec, examples, wrap=True)
    batch = batch_of(model, examples)
    embedded, label = model.embed(batch).detach(), model.trace(batch).logits.argmax(-1)
    unknown = model.embedding.weight[UNKNOWN].detach()
    start = torch.where(batch.words[..., None], unknown, embedded)

    def predict(copies: Tensor) -> Tensor:  # captum puts all texts at its first step first
        rows = torch.arange(len(examples)).repeat(len(copies) // len(examples))
        return model.trace(batch.rows(rows), embedded=copies).logits

    expected = Captum(predict).attribute(embedded, start, label, n_steps=20, method=theirs).sum(-1)
    ours = IMPORTANCES.make(f"integrated_gradients:baseline=unknown,rule={rule},steps=20,bound=0")(model, batch)
    assert torch.allclose(ours.values[batch.words], expected[batch.words].double(), atol=1e-4)
    assert expected[batch.words].abs().max() > 0.1


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("name", ["zero", "mean", "unknown", "padding"])
def test_a_baseline_replaces_words_alone(name: str, wrap: bool) -> None:
    examples = texts(5)
    model = small_model(SPECS[0], examples, wrap)
    batch, table = batch_of(model, examples), model.embedding.weight.detach()
    row = {
        "zero": torch.zeros(7),
        "mean": torch.stack([table[k] for k in range(len(SPECIAL), len(model.vocabulary))]).sum(0)
        / len(model.vocabulary.words),
        "unknown": table[1],
        "padding": table[0],
    }[name]
    start = baseline(model, batch, name)  # type: ignore[arg-type]
    assert torch.allclose(start[batch.words], row.expand(int(batch.words.sum()), -1), atol=1e-6)
    assert torch.equal(start[~batch.words], model.embed(batch)[~batch.words])


@pytest.mark.parametrize("settings", ["", "baseline=mean", "baseline=unknown,of=probability", "baseline=padding"])
@pytest.mark.parametrize("spec", [SPECS[0], SMOOTH, SPECS[4], SPECS[5]])
def test_shares_add_up_to_what_the_words_change(spec: str, settings: str) -> None:
    examples = texts(5)
    model = small_model(spec, examples, wrap=True)
    batch = batch_of(model, examples)
    importance = IMPORTANCES.make(f"integrated_gradients:most=32,{settings}")
    scores = importance(model, batch)
    start = baseline(model, batch, importance.baseline)
    f, g = (model.trace(batch, embedded=e).logits.detach().double() for e in (model.embed(batch), start))
    if scores.target.of == "probability":
        f, g = f.softmax(-1), g.softmax(-1)
    gain = (f - g).gather(1, scores.target.label[:, None])[:, 0]
    error = (scores.values.nansum(-1) - gain).abs() / gain.abs().clamp(min=0.01)
    assert (error <= scores.error + 1e-4).all()  # pieces may err in both directions, and theirs don't cancel
    assert ((scores.error < 0.01) | (scores.cost.backward > 16)).all()  # the next halving would have been too many
    if spec in (SPECS[0], SMOOTH):  # ReLU and sparse weights have kinks, for which 32 points are not always enough
        assert error.max() < 0.01
    assert gain.abs().max() > 0.05


def test_a_text_without_words_has_no_shares_and_no_error() -> None:
    examples = (Example(0, ((),), 0), *texts(2))
    model = small_model(SPECS[0], examples)
    scores = explained(IntegratedGradients(), model, batch_of(model, examples))
    assert scores.values[0].isnan().all()
    assert float(scores.error[0]) == 0


def test_a_mean_word_needs_words() -> None:
    importance = IntegratedGradients("mean")
    assert refusal(IntegratedGradients(), Power(2)) is None
    assert "baseline=zero" in str(refusal(importance, Power(2)))
    model = small_model(SPECS[0], ())
    assert "min_df" in str(refusal(importance, model))
    with pytest.raises(UsageError, match="a vocabulary with words: lower the task's min_df"):
        importance(model, batch_of(model, texts(1)))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [("steps=0", "1 <= steps"), ("steps=64,most=8", "steps <= most"), ("bound=-1", "0 or more"), ("of=loss", "logit")],
)
def test_wrong_settings_are_one_sentence(settings: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        IMPORTANCES.make(f"integrated_gradients:{settings}")
