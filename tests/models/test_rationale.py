"""The rationale model: what is not selected is invisible, whatever is done to it."""

from pathlib import Path

import pytest
import torch

from exegete.importance.attention import Attention
from exegete.importance.leave_one_out import LeaveOneOut
from exegete.models.build import build, make_classifier
from exegete.models.ours.classifier import SITE, Classifier
from exegete.models.ours.hardkuma import HardKuma
from exegete.models.ours.rationale import RationaleClassifier
from exegete.tasks.batching import collate
from exegete.tasks.example import Example
from exegete.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from exegete.training.evaluation import evaluate
from exegete.training.fit import Fit
from exegete.training.settings import TrainingSettings
from tests.small import batch_of, padded, small_task, texts, vocabulary

SPEC = "rationale:size=7,hidden=6,scale=1,share=0.4"
EXAMPLES = texts(16)


def made(spec: str = SPEC, wrap: bool = False) -> RationaleClassifier:
    """Untrained, but with gates that differ from word to word: shut, open and between."""
    torch.manual_seed(0)
    model = make_classifier(spec, vocabulary(EXAMPLES, wrap), ("no", "yes")).eval()
    assert isinstance(model, RationaleClassifier)
    with torch.no_grad():
        for parameter in (*model.encoder.parameters(), *model.scorer.parameters(), *model.decoder.parameters()):
            parameter.mul_(3)
        model.selector.linear.weight.mul_(25)
        model.selector.linear.bias.copy_(torch.tensor([-1.0, 0.3]))
    return model


def shut(model: RationaleClassifier) -> None:
    """Make the selector select nothing."""
    with torch.no_grad():
        model.selector.linear.weight.zero_()
        model.selector.linear.bias.copy_(torch.tensor([-2.0, 5.0]))


def test_the_model_selects_some_words_and_not_others() -> None:
    model = made()
    batch = batch_of(model, EXAMPLES)
    z = model.gates(batch, model.embed(batch))[batch.words]
    assert bool((z == 0).any())
    assert bool((z == 1).any())
    assert bool(((z > 0) & (z < 1)).any())
    assert torch.equal(model.selected(batch)[batch.words], z > 0)


@pytest.mark.parametrize("wrap", [False, True])
def test_unselected_words_are_invisible(wrap: bool) -> None:
    """With the gates held fixed, any other embedding of an unselected word gives the same states and logits."""
    model = made(wrap=wrap)
    batch = batch_of(model, EXAMPLES)
    with torch.no_grad():
        embedded = model.embed(batch)
        gates = model.gates(batch, embedded)
        other = torch.where((batch.words & (gates == 0))[..., None], 17.0 + 3 * embedded, embedded)
        before, after = model.read(batch, embedded, gates), model.read(batch, other, gates)
    assert not torch.equal(other, embedded)
    assert all(
        torch.equal(getattr(before, name), getattr(after, name)) for name in ("states", "scores", "mask", "values")
    )
    moved = torch.where((gates > 0)[..., None], 17.0 + 3 * embedded, embedded)
    assert not torch.allclose(model.read(batch, moved, gates).states, before.states)


@pytest.mark.parametrize("wrap", [False, True])
def test_attention_lies_on_selected_words_alone(wrap: bool) -> None:
    model = made(wrap=wrap)
    batch = batch_of(model, EXAMPLES)
    selected = model.selected(batch)
    weights = model.trace(batch).attention[SITE][:, 0, 0]
    assert not bool(selected[~batch.words].any())
    assert bool((weights[selected] > 0).all())
    assert weights[~selected].abs().sum() == 0
    some = selected.any(-1)
    assert (weights.sum(-1)[some] - 1).abs().max() < 1e-5
    scores = Attention()(model, batch).values
    assert torch.equal(scores[batch.words] > 0, selected[batch.words])


def test_nothing_selected_leaves_the_bias() -> None:
    model = made()
    shut(model)
    batch = batch_of(model, EXAMPLES)
    assert not bool(model.selected(batch).any())
    trace = model.trace(batch)
    assert trace.attention[SITE].abs().sum() == 0
    assert torch.allclose(trace.logits, model.two_sided(model.decoder.bias).expand_as(trace.logits), atol=1e-6)
    gradient = torch.autograd.grad(trace.logits[:, 1].sum(), model.decoder.weight)[0]
    assert bool(gradient.isfinite().all())


def test_without_words_the_bias_decides() -> None:
    model = made()
    logits = model.trace(collate([Example(0, ((),), 0), *EXAMPLES[:2]], model.vocabulary)).logits
    assert torch.allclose(logits[0], model.two_sided(model.decoder.bias), atol=1e-6)


def test_deletion_runs_the_selector_again() -> None:
    """The way that reuses a BiLSTM's states would leave the selection as it was."""
    model = made()
    e = next(e for e in EXAMPLES if len(e) == 9)
    batch = batch_of(model, [e])
    whole = model.trace(batch).logits[0]
    scores = LeaveOneOut(of="logit")(model, batch).values[0]
    for t in range(len(e)):
        words = e.words[:t] + e.words[t + 1 :]
        without = model.trace(batch_of(model, [Example(0, (words,), 0)])).logits[0]
        assert scores[t].item() == pytest.approx((whole - without)[whole.argmax()].item(), abs=1e-5)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9, 0.999])
def test_training_begins_with_the_share_that_is_asked_for(share: float) -> None:
    model = make_classifier(f"rationale:share={share}", vocabulary(EXAMPLES), ("no", "yes"))
    assert isinstance(model, RationaleClassifier)
    batch = batch_of(model, EXAMPLES)
    with torch.no_grad():
        expected = model.selector(model.embed(batch), batch.present).selected[batch.words]
    assert expected.mean().item() == pytest.approx(share, abs=0.04)


def test_the_penalty_is_the_augmented_lagrangian_of_the_expected_share() -> None:
    model = made("rationale:size=7,hidden=6,scale=1,share=0.4,strength=3,rate=0.5")
    batch = batch_of(model, EXAMPLES)
    distribution = model.selector(model.embed(batch), batch.present)
    means = [
        sum(1 - HardKuma(a, b).off.item() for a, b in zip(distribution.a[i, :n], distribution.b[i, :n], strict=True))
        / n
        for i, n in enumerate(batch.lengths.tolist())
    ]
    excess = sum(means) / len(means) - 0.4
    assert model.penalty() == 0.0  # nothing was seen
    model.train()
    multiplier = 0.0
    for _ in range(2):
        model.trace(batch)
        found = model.penalty()
        assert isinstance(found, torch.Tensor)
        assert found.item() == pytest.approx(multiplier * excess + 3 / 2 * excess**2, abs=1e-5)
        assert bool(torch.autograd.grad(found, model.selector.linear.weight)[0].abs().sum() > 0)
        multiplier += 0.5 * excess
        assert model.multiplier.item() == pytest.approx(multiplier, abs=1e-5)
    model.eval()
    model.trace(batch)
    assert model.penalty() == 0.0


def test_gates_are_drawn_in_training_only() -> None:
    model = made()
    batch = batch_of(model, EXAMPLES)
    embedded = model.embed(batch)
    assert torch.equal(model.gates(batch, embedded), model.gates(batch, embedded))
    model.train()
    assert not torch.equal(model.gates(batch, embedded), model.gates(batch, embedded))


def _fitted(epochs: int, texts: int) -> Fit:
    task = small_task(texts)
    model = build("rationale:size=12,hidden=12,share=0.3", task, seed=0)
    return Fit(model, task, TrainingSettings(epochs=epochs, patience=40, lr=0.01, metric="accuracy"), seed=0)


@pytest.mark.slow
def test_it_learns_which_word_matters() -> None:
    fit = _fitted(15, 120)
    fit.run()
    model, test = fit.model, fit.task.split("test")
    assert isinstance(model, RationaleClassifier)
    assert evaluate(model, test)["accuracy"] > 0.9  # type: ignore[operator]
    batch = batch_of(model, test)
    selected = model.selected(batch)
    deciding = batch.tokens == model.vocabulary.index["a"]
    assert selected[deciding].double().mean() > 0.9
    assert selected[batch.words].double().mean() < 0.5


def test_an_interrupted_training_gives_the_same_weights() -> None:
    whole, first, second = _fitted(2, 20), _fitted(1, 20), _fitted(2, 20)
    whole.run()
    first.run()
    second.resume(first.state)
    second.run()
    weights = whole.model.state_dict()
    assert "multiplier" in weights
    assert all(torch.equal(tensor, second.model.state_dict()[name]) for name, tensor in weights.items())


def test_a_checkpoint_brings_the_same_model_back(tmp_path: Path) -> None:
    model = made()
    save_checkpoint(tmp_path / "kept", Checkpoint(model, "small", "", 0, {}, {}))
    back = load_checkpoint(tmp_path / "kept").model
    assert isinstance(back, RationaleClassifier)
    batch = batch_of(model, EXAMPLES)
    assert torch.equal(model.trace(batch).logits, back.trace(batch).logits)


def test_other_names_are_plain_classifiers() -> None:
    for spec in ("bilstm:size=7,hidden=6", "average:size=7,hidden=6", "cnn:size=7,hidden=8"):
        torch.manual_seed(3)
        model = make_classifier(spec, vocabulary(EXAMPLES), ("no", "yes"))
        torch.manual_seed(3)
        plain = Classifier(spec, vocabulary(EXAMPLES), ("no", "yes"))
        assert isinstance(model, Classifier)
        assert all(torch.equal(a, b) for a, b in zip(model.parameters(), plain.parameters(), strict=True))


def test_more_padding_changes_nothing() -> None:
    model = made()
    batch = batch_of(model, EXAMPLES)
    assert torch.allclose(model.trace(batch).logits, model.trace(padded(batch, 0, 3)).logits, atol=1e-6)
