"""The planner of erased texts: each removal against the text written by hand, and each different text run once."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.importance import erasure
from exegete.importance.erased_texts import write
from exegete.importance.erasure import Removal, erased
from exegete.importance.occlusion import Occlusion
from exegete.importance.omission import word_windows
from exegete.importance.sharing import sharing
from exegete.models.ours.classifier import PoolingClassifier
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import UNKNOWN
from tests.small import SPECS, batch_of, small_model, texts

REMOVALS: tuple[Removal, ...] = ("delete", "zero", "unknown")
BY_NAME = (SPECS[0], SPECS[1], SPECS[4], SPECS[5], "bigru:size=7,hidden=6,scale=1")


def asks(batch: Batch, count: int, share: float = 0.5) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(1)
    rows = torch.randint(len(batch.ids), (count,), generator=draw)
    gone = (torch.rand(count, batch.tokens.shape[1], generator=draw) < share) & batch.words[rows]
    return rows, gone


@torch.no_grad()
def by_hand(model: PoolingClassifier, asked: list[tuple[Example, list[bool]]], by: Removal) -> Tensor:
    """The logits of examples some of whose words are taken out, made unknown, or embedded as zeros, one by one."""
    written, empty = [], {"delete": None, "zero": "a", "unknown": "never seen"}[by]
    for e, gone in asked:
        said = [empty if out else word for word, out in zip(e.words, gone, strict=True)]
        written.append(Example(e.id, (tuple(word for word in said if word is not None),), 0))
    batch = batch_of(model, written)
    embedded = model.embed(batch).clone()
    for i, (_, gone) in enumerate(asked):
        for t, place in enumerate(batch.words[i].nonzero()[:, 0].tolist()):
            if by == "zero" and gone[t]:
                embedded[i, place] = 0
    return model.trace(batch, embedded=embedded).logits.double()


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("by", REMOVALS)
@pytest.mark.parametrize("spec", BY_NAME)
def test_every_removal_is_the_text_written_by_hand(spec: str, by: Removal, wrap: bool) -> None:
    examples = texts(8)
    model = small_model(spec, examples, wrap)
    batch = batch_of(model, examples)
    rows, gone = asks(batch, 40)
    single = word_windows(batch, 1)
    rows = torch.cat([rows, single[0], torch.arange(8), torch.arange(8)])
    gone = torch.cat([gone, single[1], batch.words, torch.zeros_like(batch.words)])  # also all words, and none
    got = erased(model, batch, rows, gone, by)
    assert got.dtype == torch.float64
    assert not got.requires_grad
    asked = [(examples[r], out[batch.words[r]].tolist()) for r, out in zip(rows.tolist(), gone, strict=True)]
    assert torch.allclose(got, by_hand(model, asked, by), atol=5e-6)
    assert (got.amax(0) - got.amin(0)).min() > 1e-2  # the words do matter here, so equal numbers mean something


def test_all_words_deleted_leaves_the_decoders_bias() -> None:
    for wrap in (False, True):
        model = small_model(SPECS[0], texts(3), wrap)
        batch = batch_of(model, texts(3))
        got = erased(model, batch, torch.arange(3), batch.words, "delete")
        assert torch.allclose(got, model.two_sided(model.decoder.bias).detach().double().expand(3, -1))


def counted(model: PoolingClassifier, monkeypatch: pytest.MonkeyPatch) -> list[Batch]:
    """All batches that the model is shown from now on."""
    seen: list[Batch] = []
    logits: Callable[..., Tensor] = model.logits

    def watched(batch: Batch, *, embedded: Tensor | None = None) -> Tensor:
        seen.append(batch)
        return logits(batch, embedded=embedded)

    monkeypatch.setattr(model, "logits", watched)
    return seen


def run(seen: list[Batch]) -> int:
    return sum(len(batch.ids) for batch in seen)


def test_masks_that_leave_the_same_text_are_one_input(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = [Example(0, (("a", "a", "b"),), 0), Example(1, (("a", "b", "new"),), 0)]
    model = small_model(SPECS[4], texts(9))
    batch, seen = batch_of(model, examples), counted(model, monkeypatch)
    rows = torch.tensor([0, 0, 1, 0, 1])
    gone = torch.tensor([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0], [0, 0, 1]]).bool()
    got = erased(model, batch, rows, gone, "delete")
    assert run(seen) == 2  # a b, and a a b
    assert torch.equal(got[0], got[1])
    assert torch.equal(got[0], got[2])
    seen.clear()
    assert batch.tokens[1, 2] == UNKNOWN
    same = erased(model, batch, torch.tensor([1, 1]), torch.tensor([[0, 0, 1], [0, 0, 0]]).bool(), "unknown")
    assert run(seen) == 1
    assert torch.equal(same[0], same[1])


def test_parts_and_wrappers_tell_texts_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = [
        Example(0, (("a", "b"), ("c",)), 0),
        Example(1, (("b", "a"), ("c",)), 0),
        Example(2, (("a",), ("b", "c")), 0),
    ]
    for wrap in (False, True):
        model = small_model(SPECS[4], texts(9), wrap)
        batch, seen = batch_of(model, examples), counted(model, monkeypatch)
        erased(model, batch, torch.arange(3), torch.zeros_like(batch.words), "delete")
        assert run(seen) == 3
        seen.clear()
        b = batch.words & (batch.tokens == model.vocabulary.index["b"])  # the second text is not explained: its b stays
        erased(model, batch, torch.arange(2), b[:2], "delete")  # a | c, twice
        (shown,) = seen
        assert shown.part.tolist() == ([[0, 0, 0, 1, 1, 1]] if wrap else [[0, 1]])
        assert shown.words.tolist() == ([[False, True, False, False, False, False]] if wrap else [[True, False]])
        assert shown.sentence.tolist() == ([[-1, 0, -1, -1, 1, -1]] if wrap else [[0, 1]])
        with pytest.raises(ValueError, match="only words can be erased"):
            erased(model, batch, torch.tensor([2]), (batch.part[2:] == 1) & batch.present[2:], "delete")


def test_candidates_tell_texts_apart_too() -> None:
    model = small_model(SPECS[4], texts(9))
    twins = [Example(i, (("a", "b"),), 0, candidates=some) for i, some in enumerate([(0,), (1,), (0,)])]
    batch = batch_of(model, twins)
    written = write(batch, torch.arange(3), torch.zeros_like(batch.words), "delete")
    assert written.keys[0] == written.keys[2] != written.keys[1]
    assert written.batch(torch.tensor([1, 0]))[0].candidates is not None
    assert written.batch(torch.tensor([1, 0]))[0].candidates.tolist() == [[1], [0]]  # type: ignore[union-attr]


def test_passes_hold_one_length_unless_there_are_few_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = texts(300)
    model = small_model(SPECS[4], examples)
    batch, seen = batch_of(model, examples), counted(model, monkeypatch)
    monkeypatch.setattr(erasure, "TOKENS", 100)
    monkeypatch.setattr(erasure, "CHUNK", 2000)  # several chunks
    rows, gone = asks(batch, 500, 0.2)
    got = erased(model, batch, rows, gone, "delete")
    assert all(shown.tokens.numel() <= 100 for shown in seen)
    assert all(len(shown.ids) <= 32 for shown in seen if shown.ragged)
    monkeypatch.undo()
    assert torch.allclose(got, erased(model, batch, rows, gone, "delete"), atol=1e-6)


@pytest.mark.parametrize("spec", [SPECS[0], SPECS[5]])
def test_neither_order_nor_batch_matters(spec: str) -> None:
    examples = texts(12)
    model = small_model(spec, examples).double()
    batch = batch_of(model, examples)
    rows, gone = asks(batch, 60, 0.3)
    for by in REMOVALS:
        got = erased(model, batch, rows, gone, by)
        order = torch.randperm(60, generator=torch.Generator().manual_seed(2))
        assert torch.allclose(erased(model, batch, rows[order], gone[order], by), got[order], atol=1e-9)
        for i in range(0, 60, 7):
            e = examples[rows[i]]
            alone = erased(model, batch_of(model, [e]), torch.tensor([0]), gone[i : i + 1, : len(e)], by)
            assert torch.allclose(alone[0], got[i], atol=1e-9)


def test_inside_a_block_nothing_is_run_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = texts(9)
    model = small_model(SPECS[0], examples)
    batch, seen = batch_of(model, examples), counted(model, monkeypatch)
    rows, gone = asks(batch, 50)
    with sharing():
        first = erased(model, batch, rows[:30], gone[:30], "zero")
        before = run(seen)
        with sharing():  # joins the outer block
            assert torch.equal(erased(model, batch, rows[:30], gone[:30], "zero"), first)
        assert run(seen) == before
        both = erased(model, batch, rows, gone, "zero")
        assert torch.equal(both[:30], first)
        different = {
            (batch.tokens[r].masked_fill(g, -1)[batch.present[r]]).numpy().tobytes()
            for r, g in zip(rows, gone, strict=True)
        }
        assert run(seen) == len(different)
        Occlusion()(model, batch)
        after = run(seen)
        Occlusion(of="probability")(model, batch)
        assert run(seen) == after
    erased(model, batch, rows, gone, "zero")
    assert run(seen) == after + len(different)  # let go at the end of the block


def test_what_failed_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = texts(9)
    model = small_model(SPECS[4], examples)
    batch = batch_of(model, examples)
    rows, gone = asks(batch, 50)
    expected = erased(model, batch, rows, gone, "delete")
    logits, calls = model.logits, []

    def failing(batch: Batch, *, embedded: Tensor | None = None) -> Tensor:
        calls.append(batch)
        if len(calls) == 2:
            raise RuntimeError("out of memory")
        return logits(batch, embedded=embedded)

    monkeypatch.setattr(model, "logits", failing)
    monkeypatch.setattr(erasure, "TOKENS", 20)
    with sharing():
        with pytest.raises(RuntimeError, match="out of memory"):
            erased(model, batch, rows, gone, "delete")
        assert torch.allclose(erased(model, batch, rows, gone, "delete"), expected, atol=1e-6)


def test_two_models_and_changed_weights_share_nothing() -> None:
    examples = texts(6)
    one, other = (small_model(spec, examples) for spec in (SPECS[0], SPECS[4]))
    batch = batch_of(one, examples)
    rows, gone = asks(batch, 20)
    apart = [erased(model, batch, rows, gone, "delete") for model in (one, other)]
    with sharing():
        together = [erased(model, batch, rows, gone, "delete") for model in (one, other)]
        assert all(torch.equal(a, b) for a, b in zip(apart, together, strict=True))
        with torch.no_grad():
            one.decoder.bias.add_(1)
        moved = erased(one, batch, rows, gone, "delete")
    assert torch.allclose(moved, apart[0] + torch.tensor([-0.5, 0.5]), atol=1e-6)


@pytest.mark.parametrize("spec", SPECS[:2])
def test_single_deletions_reuse_states_where_most_are_asked_for(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = [e for e in texts(40) if len(e) > 3]
    model = small_model(spec, examples)
    batch, seen = batch_of(model, examples), counted(model, monkeypatch)
    rows, gone = word_windows(batch, 1)
    reused = erased(model, batch, rows, gone, "delete")
    every, nothing = torch.arange(len(batch.ids)), torch.zeros_like(batch.words)
    both = erased(model, batch, torch.cat([every, rows]), torch.cat([nothing, gone]), "delete")
    assert not seen  # nor is a whole text run, where its deletions are
    assert (both[len(every) :] - reused).abs().max() < 5e-6
    assert (both[: len(every)] - erased(model, batch, every, nothing, "delete")).abs().max() < 5e-6
    assert run(seen) > 0  # asked for alone it is
    seen.clear()
    few = (batch.words.cumsum(-1) == 1)[rows] & gone  # the first words only: too few for reuse
    few = few.any(-1)
    literal = erased(model, batch, rows[few], gone[few], "delete")
    assert run(seen) > 0
    assert (literal - reused[few]).abs().max() < 5e-6


def test_wrong_asks_are_refused() -> None:
    model = small_model(SPECS[0], texts(2), wrap=True)
    batch = batch_of(model, texts(2))
    rows, nothing = torch.arange(2), torch.zeros_like(batch.words)
    with pytest.raises(ValueError, match="only words"):
        erased(model, batch, rows, ~nothing, "delete")
    with pytest.raises(ValueError, match="gone is bool"):
        erased(model, batch, rows[:1], nothing, "delete")
    with pytest.raises(UsageError, match="did you mean 'delete'"):
        erased(model, batch, rows, nothing, "delet")  # type: ignore[arg-type]
    assert erased(model, batch, rows[:0], nothing[:0], "zero").shape == (0, 2)


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("spec", [SPECS[0], "bilstm:size=5,hidden=4,attention=dot,projection=sparsemax"])
def test_another_word_in_the_place_of_each_is_the_text_written_by_hand(spec: str, wrap: bool) -> None:
    """Of lengths that differ, with another word for every text; nothing is left of the word that stood there."""
    examples = texts(9)
    model = small_model(spec, examples, wrap)
    batch = batch_of(model, examples)
    vocabulary = sorted({word for e in examples for word in e.words})
    others = [vocabulary[e.id % len(vocabulary)] for e in examples]
    rows = torch.tensor([batch.reader.rows([word])[0] for word in others])
    got = model.deletions(batch, rows)  # type: ignore[operator]
    odd = batch.words & (torch.arange(batch.tokens.shape[1]) % 2 == 1)
    odd[0] = False  # of one text nothing is asked
    some = model.deletions(batch, rows, odd).without  # type: ignore[operator]
    assert some.isnan().any(-1).equal(~odd)
    torch.testing.assert_close(some[odd], got.without[odd])
    for i, (e, other) in enumerate(zip(examples, others, strict=True)):
        places = batch.words[i].nonzero()[:, 0].tolist()
        for t, place in enumerate(places):
            written = Example(e.id, ((*e.words[:t], other, *e.words[t + 1 :]),), 0)
            torch.testing.assert_close(got.without[i, place], model.logits(batch_of(model, [written]))[0])
        torch.testing.assert_close(got.whole[i], model.logits(batch_of(model, [e]))[0])
    assert got.without.isnan().any(-1).equal(~batch.words)
