"""Value zeroing, ALTI, GlobEnc and contributions against layers taken apart by hand, and who is refused."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.importance.alti import Alti, own_share
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contribution import Contribution
from exegete.importance.globenc import GlobEnc, given_norms
from exegete.importance.value_zeroing import ValueZeroing
from exegete.models.huggingface import decomposition
from exegete.models.huggingface.model import HuggingFace
from exegete.models.separable import Apart, Separable
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example
from tests.importance import slow_layers as slow
from tests.models.architectures import classifier
from tests.small import SPECS, batch_of, small_model, texts

TEXTS = ("an unbelievably charming movie of plot", "bad", "terrific \u200b movie of a bad plot")
EXAMPLES = tuple(Example(i, (tuple(text.split(" ")),), 0) for i, text in enumerate(TEXTS))
BY_HAND = {"value_zeroing": slow.value_zeroing, "alti": slow.alti, "globenc": slow.globenc}
MODELS = {"bert": slow.bert, "gpt2": slow.gpt2}


def layers_of(model: HuggingFace, batch: Batch, name: str) -> tuple[list[slow.Layer], slow.Words, int]:
    """By hand: layers, the pieces of every word, and the word whose state is read."""
    pieces = model.pieces(batch)
    words = [(pieces.word[0] == place).nonzero()[:, 0].tolist() for place in range(batch.tokens.shape[1])]
    with torch.no_grad():
        layers = MODELS[name](model.base, pieces.ids[0])
    return layers, words, 0 if name == "bert" else int(pieces.word[0, -1])


def close(got: Tensor, wanted: Tensor, batch: Batch) -> None:
    torch.testing.assert_close(
        got[0].double(), wanted.where(batch.words[0], torch.nan), atol=1e-9, rtol=1e-6, equal_nan=True
    )


@pytest.mark.parametrize("method", BY_HAND)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("e", EXAMPLES)
def test_layers_followed_by_hand(name: str, e: Example, method: str) -> None:
    model = classifier(name, torch.float64)
    batch = model.collate([e])
    layers, words, query = layers_of(model, batch, name)
    with torch.no_grad():
        matrices = [slow.of_words(BY_HAND[method](layer, words), words) for layer in layers]
    scores = IMPORTANCES.make(method)(model, batch)
    close(scores.values, slow.rolled(matrices, query), batch)
    assert not scores.signed
    assert float(scores.values.nansum()) < 1  # symbols have the rest


@pytest.mark.parametrize("by", ["norm", "alignment"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("e", EXAMPLES)
def test_contributions_by_hand(name: str, e: Example, by: str) -> None:
    model = classifier(name, torch.float64)
    batch = model.collate([e])
    layers, words, query = layers_of(model, batch, name)
    with torch.no_grad():
        wanted = slow.of_words(slow.contribution(layers[-1], words, by), words)[query]
    close(IMPORTANCES.make(f"contribution:by={by}")(model, batch).values, wanted, batch)
    assert by == "norm" or float(wanted.sum()) == pytest.approx(1)


def test_own_share_is_the_diagonal_of_all_layers() -> None:
    model = classifier("bert", torch.float64)
    batch = model.collate(EXAMPLES)
    got = own_share(model, batch)
    for row, e in enumerate(EXAMPLES):
        alone = model.collate([e])
        layers, words, _ = layers_of(model, alone, "bert")
        with torch.no_grad():
            matrices = [slow.of_words(slow.alti(layer, words), words) for layer in layers]
        wanted = torch.stack([slow.rolled(matrices, place)[place] for place in range(len(words))])
        close(got[row : row + 1, : len(words)], wanted, alone)
    assert bool((got[batch.words] < 1).all())


@pytest.mark.parametrize("at", ["attention", "block", "layer"])
@pytest.mark.parametrize("name", ["bert", "distilbert", "electra", "albert", "modernbert", "llama", "deberta-v2"])
def test_what_words_give_sums_to_the_state(name: str, at: Apart) -> None:
    model = classifier(name)
    assert isinstance(model, Separable)
    batch = model.collate(EXAMPLES[:1])
    with torch.no_grad():
        copies = decomposition._Text(model, batch, at).copies(torch.arange(batch.tokens.shape[1]))
    assert len(copies) == 2
    for whole, without, nothing in copies:
        total = (whole - without).sum(0) + nothing[0]
        assert torch.allclose(total, whole[0], atol=1e-4 * float(whole.abs().max()))
        assert float((whole - without).abs().max()) > 1e-3


def test_the_copy_with_all_words_is_the_model_as_it_is() -> None:
    model = classifier("roberta")
    batch = model.collate(EXAMPLES[:1])
    with torch.no_grad():
        own = model.base(**model.inputs(model.pieces(batch), batch), output_hidden_states=True).hidden_states[1:]
    for at in ("values", "layer"):
        for copies, state in zip(decomposition._Text(model, batch, at).copies(torch.arange(3)), own, strict=True):
            assert torch.allclose(copies.whole, state, atol=1e-5)


def test_many_passes_give_what_one_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    model = classifier("bert")
    batch = model.collate(EXAMPLES)
    one = model.apart(batch, "layer", given_norms)
    monkeypatch.setattr(decomposition, "PIECES", 40)
    many = model.apart(batch, "layer", given_norms)
    torch.testing.assert_close(one.layers, many.layers, atol=1e-6, rtol=1e-5)
    assert (many.passes > one.passes).any()


@pytest.mark.parametrize("method", [Alti, GlobEnc, ValueZeroing, Contribution])
def test_who_can_not_be_taken_apart_is_told_why(method: Callable[[], Alti]) -> None:
    xlm, ours = classifier("xlm"), small_model(SPECS[0], texts(2))
    with pytest.raises(UsageError, match="whose layers are no modules of their own"):
        method()(xlm, xlm.collate(EXAMPLES))
    with pytest.raises(UsageError, match="use it on hf"):
        method()(ours, batch_of(ours, texts(2)))


@pytest.mark.parametrize("name", ["olmo2", "gpt_neox"])
def test_blocks_of_another_order_are_refused(name: str) -> None:
    assert "in an order of their own" in str(Alti().refuses(classifier(name)))
    assert GlobEnc().refuses(classifier(name)) is None


def test_nothing_stays_on_the_model() -> None:
    model = classifier("bert")
    batch = model.collate(EXAMPLES)
    own = model.logits(batch)
    Alti()(model, batch)
    assert torch.equal(model.logits(batch), own)
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
