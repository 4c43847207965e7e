"""Pair: the whole forward pass against a slow one, texts alone and in batches, candidates, settings."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.models.build import build
from exegete.models.capabilities import Encoded
from exegete.models.ours.pair import IMPOSSIBLE, Pair
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import PAD
from exegete.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from exegete.training.evaluation import evaluate
from exegete.training.fit import Fit
from exegete.training.settings import TrainingSettings
from tests.models.slow_pair import LABELS, ODD, slow
from tests.small import PAIRS, batch_of, pair_task, pairs, small_model

SITE = "attention"


def a_pair(spec: str, examples: tuple[Example, ...], wrap: bool = False) -> Pair:
    model = small_model(spec, examples, wrap, LABELS)
    assert isinstance(model, Pair)
    return model


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("spec", PAIRS)
def test_the_forward_pass_is_that_of_the_papers_word_by_word(spec: str, wrap: bool) -> None:
    known = pairs(6, candidates=True)
    examples = (*known, *ODD)
    model = a_pair(spec, known, wrap)
    batch = batch_of(model, examples)
    with torch.no_grad():
        trace = model.trace(batch)
    for row, e in enumerate(examples):
        logits, alpha = slow(model, e)
        assert trace.logits[row].tolist() == pytest.approx(logits, abs=1e-5)
        assert trace.attention[SITE].shape[1:3] == (1, 1)
        assert trace.attention[SITE][row, 0, 0, batch.words[row, : trace.attention[SITE].shape[-1]]].tolist() == (
            pytest.approx(alpha, abs=1e-5)
        )
    assert trace.logits[: len(known)].std(0).min() > 0.05, "texts must be told apart, or nothing was tested"


@pytest.mark.parametrize("spec", PAIRS)
def test_every_draw_of_weights_is_decoded_in_float64(spec: str) -> None:
    examples = pairs(4, candidates=True)
    model = a_pair(spec, examples)
    batch = batch_of(model, examples)
    with torch.no_grad():
        encoded = model.encode(batch).to(torch.float64)
        for draws in (2, 20):  # fewer and more than keys: two ways to compute the same
            drawn = torch.rand(4, draws, encoded.mask.shape[1], dtype=torch.float64) * encoded.mask[:, None]
            logits = model.decode(encoded, drawn)
            assert logits.dtype == torch.float64
            for row, e in enumerate(examples):
                by_hand, _ = slow(model, e, drawn[row, 1, : len(e)].tolist())
                assert logits[row, 1].tolist() == pytest.approx(by_hand, abs=2e-6)


def wider(batch: Batch, left: int, right: int) -> Batch:
    """More padding on both sides, and more room for candidates."""

    def more(column: Tensor, fill: int | bool) -> Tensor:
        return torch.nn.functional.pad(column, (left, right), value=fill)

    candidates = None if batch.candidates is None else torch.nn.functional.pad(batch.candidates, (0, 2), value=-1)
    return Batch(
        batch.ids, more(batch.tokens, PAD), more(batch.present, False), more(batch.words, False),
        more(batch.part, -1), more(batch.sentence, -1), batch.label, batch.reader, candidates,
    )  # fmt: skip


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("spec", PAIRS)
def test_a_pair_is_the_same_alone_in_a_batch_and_padded(spec: str, wrap: bool) -> None:
    known = pairs(7, candidates=True)
    examples = (*known, *ODD)
    model = a_pair(spec, known, wrap)
    batch = batch_of(model, examples)
    with torch.no_grad():
        whole, padded = model.trace(batch), model.trace(wider(batch, 2, 3))
        assert torch.allclose(whole.logits, padded.logits, atol=1e-5)
        for row, e in enumerate(examples):
            alone = model.trace(batch_of(model, [e]))
            keys = alone.attention[SITE].shape[-1]
            assert torch.allclose(whole.logits[row], alone.logits[0], atol=1e-5)
            assert torch.allclose(whole.attention[SITE][row, ..., :keys], alone.attention[SITE][0], atol=1e-5)


@pytest.mark.parametrize("wrap", [False, True])
def test_owners_are_words_of_the_passage_whatever_is_explained(wrap: bool) -> None:
    for explained in (0, 1):
        examples = pairs(5, explained=explained)
        model = a_pair(PAIRS[0], examples, wrap)
        batch = batch_of(model, examples)
        trace = model.trace(batch)
        owner = trace.owner[SITE]
        assert torch.equal(owner >= 0, (batch.part == 0) & (batch.sentence >= 0))
        for row, e in enumerate(examples):
            assert owner[row][owner[row] >= 0].tolist() == list(range(wrap, len(e.texts[0]) + wrap))
        assert trace.states[SITE].shape[:2] == trace.attention[SITE].shape[::3]


def test_both_texts_have_tables_of_their_own_unless_they_share_one() -> None:
    examples = pairs(3)
    own, one = a_pair(PAIRS[0], examples), a_pair(PAIRS[2], examples)
    assert len(own.tables) == 2
    assert len(one.tables) == 1
    batch = batch_of(own, examples)
    question = batch.part == 1
    assert torch.equal(own.embed(batch)[question], own.tables[1](batch.tokens)[question])
    assert torch.equal(own.embed(batch)[~question], own.tables[0](batch.tokens)[~question])
    assert not torch.equal(own.tables[0].weight, own.tables[1].weight)
    assert all(bool((table.weight[PAD] == 0).all()) for table in own.tables)


def test_vectors_fill_both_tables(tmp_path: Path) -> None:
    file = tmp_path / "vectors.txt"
    file.write_text("kitchen 1 2 3\na 4 5 6\n")
    model = build(f"pair:hidden=4,vectors={file}", pair_task(12))
    for table in model.tables:
        assert table.weight[model.vocabulary.index["kitchen"]].tolist() == [1, 2, 3]


def test_impossible_classes_have_no_probability_no_gradient_and_finite_logits() -> None:
    examples = pairs(6, candidates=True)
    model = a_pair(PAIRS[0], examples)
    batch = batch_of(model, examples)
    embedded = model.embed(batch).detach().requires_grad_()
    logits = model.trace(batch, embedded=embedded).logits
    allowed = torch.tensor([[not e.candidates or c in e.candidates for c in range(3)] for e in examples])
    assert bool((logits.softmax(-1)[~allowed] == 0).all())
    assert torch.equal(logits == IMPOSSIBLE, ~allowed)
    (gradient,) = torch.autograd.grad(logits.log_softmax(-1)[~allowed].sum() + logits[~allowed].sum(), embedded)
    assert bool(gradient.isfinite().all())
    (nothing,) = torch.autograd.grad(model.trace(batch, embedded=embedded).logits[~allowed].sum(), embedded)
    assert bool((nothing == 0).all())


def test_without_the_question_the_decoder_is_blind_under_uniform_weights() -> None:
    """Two questions about one passage: only `reads=both` can answer them differently with the same weights."""
    passage = ("a", "b", "c")
    examples = (Example(0, (passage, ("d",)), 0), Example(1, (passage, ("e", "f")), 1))
    for spec, same in ((PAIRS[0], False), (PAIRS[0] + ",reads=context", True)):
        model = a_pair(spec, examples)
        encoded = model.encode(batch_of(model, examples))
        logits = model.decode(encoded, encoded.mask[:, None] / 3.0)[:, 0]
        assert torch.allclose(logits[0], logits[1], atol=1e-6) == same


def test_conditional_encoding_lets_the_passage_into_the_question() -> None:
    examples = (Example(0, (("a", "b"), ("c",)), 0), Example(1, (("d", "e", "f"), ("c",)), 1))
    for spec, same in ((PAIRS[0], True), (PAIRS[0] + ",encoding=conditional", False)):
        model = a_pair(spec, examples)
        query = model.encode(batch_of(model, examples)).query
        assert query is not None
        assert torch.allclose(query[0], query[1], atol=1e-6) == same


def test_rows_and_precision_of_what_is_encoded() -> None:
    examples = pairs(4, candidates=True)
    model = a_pair(PAIRS[0], examples)
    encoded = model.encode(batch_of(model, examples))
    some: Encoded = encoded.rows(torch.tensor([2, 0])).to(torch.float64)
    assert some.query is not None
    assert some.query.dtype == some.states.dtype == some.scores.dtype == torch.float64
    assert encoded.candidates is not None
    assert some.candidates is not None
    assert some.candidates.tolist() == encoded.candidates[[2, 0]].tolist()
    assert some.values is None


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("encoder=cnn,encoding=conditional", "needs encoder=bilstm or encoder=bigru"),
        ("encoder=average,encoding=conditional", "no last state that another could start from"),
        ("encoder=cnn,hidden=3", "hidden is 4 or more"),
        ("attention=none", "attention"),
        ("outputs=one", "outputs"),
        ("reads=question", "reads"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        build(f"pair:{settings}", pair_task(12))


def test_two_classes_have_two_outputs() -> None:
    examples = pairs(4)
    model = small_model(PAIRS[0], examples, labels=("no", "yes"))
    assert not model.one_output
    assert model.trace(batch_of(model, examples)).logits.shape == (4, 2)


@pytest.mark.slow
def test_training_learns_and_a_checkpoint_keeps_it(tmp_path: Path) -> None:
    task = pair_task()
    model = build("pair:size=16,hidden=16,shared=true", task)
    before = evaluate(model, task.split("test"))["accuracy"]
    settings = TrainingSettings(epochs=30, patience=30, lr=1e-2, metric="accuracy", batch=16)
    Fit(model, task, settings, 0).run()
    after = evaluate(model, task.split("test"))["accuracy"]
    assert before is not None
    assert after is not None
    assert after > max(0.9, before)
    folder = tmp_path / "model"
    save_checkpoint(folder, Checkpoint(model, task.name, task.hash, 0, settings.model_dump(), {}))
    again = load_checkpoint(folder).classifier
    batch = batch_of(model, task.split("test"))
    assert torch.equal(again.trace(batch).logits, model.trace(batch).logits)
