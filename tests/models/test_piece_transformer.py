"""Words outside, pieces inside: weights, sites and states of words against slow loops over pieces; widths; files."""

import copy
import math
from pathlib import Path
from typing import cast

import pytest
import torch
from torch import Tensor
from typer.testing import CliRunner

from exegete.base.errors import UsageError
from exegete.cli import app
from exegete.importance.leave_one_out import LeaveOneOut
from exegete.importance.occlusion import Occlusion
from exegete.models.build import build
from exegete.models.capabilities import Pooling
from exegete.models.contract import Predictor, ReplacedBy, Site
from exegete.models.openings import OpenedPooling, Pass, opened
from exegete.models.ours.piece_transformer import Chunks, Spelled
from exegete.models.settings import MODELS
from exegete.models.spelling import pieces_in_a_row, rewriting, site_on_words, spell_batch
from exegete.tasks import open_words
from exegete.tasks.batching import Batch, collate
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import END, PAD, SPECIAL, START, UNKNOWN
from exegete.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from exegete.training.fit import Fit
from exegete.training.settings import TrainingSettings
from tests.models.spelled_models import FIRST, MEAN, POOLED, SPELLED, sentences, spelled_model, spelled_task
from tests.small import padded

EXAMPLES = (*sentences(7), Example(90, (("a",),), 0), Example(91, (("charming", "", "xyzzy\u200b", "\u200b"),), 1))


def pieces_by_hand(model: Spelled, batch: Batch, text: int) -> list[tuple[int, int]]:
    """(row of the piece, place of its word) of every piece of a text, one by one."""
    found = []
    for place, row in enumerate(batch.tokens[text].tolist()):
        if row in (START, END):
            found.append((row, place))
        elif batch.present[text, place]:
            (word,) = model.vocabulary.spelled([row])
            word, width = word.replace("\u200b", ""), model.settings.width
            chunks = [word[i : i + width] for i in range(0, len(word), width)]
            table = sorted({w[i : i + width] for w in model.vocabulary.words for i in range(0, len(w), width)})
            found += [(len(SPECIAL) + table.index(c) if c in table else UNKNOWN, place) for c in chunks]
    return found


@pytest.mark.parametrize("spec", SPELLED)
def test_a_batch_is_spelled_piece_by_piece(spec: str) -> None:
    model = spelled_model(spec)
    batch = padded(model.collate(EXAMPLES), 1, 2)
    found = pieces_in_a_row(spell_batch(batch, model.vocabulary.spell))
    vectors = found.vectors(model.embed(batch), model.size)
    for text in range(len(EXAMPLES)):
        slow, real = pieces_by_hand(model, batch, text), found.real[text]
        assert list(zip(found.ids[text][real].tolist(), found.word[text][real].tolist(), strict=True)) == slow
        assert real.tolist() == [True] * len(slow) + [False] * (len(real) - len(slow))
        assert (found.word[text][~real] == -1).all()
        torch.testing.assert_close(vectors[text][real], model.embedding.weight[[row for row, _ in slow]])
        assert (vectors[text][~real] == 0).all()
        costs = [sum(place == p for _, p in slow) for place in range(batch.tokens.shape[1])]
        assert batch.cost[text].tolist() == costs


def test_an_unseen_word_is_spelled_from_chunks_that_were_seen() -> None:
    model = spelled_model(POOLED)
    chunks = model.vocabulary
    assert not chunks.knows("xyzzy")
    assert chunks.knows("charming")
    assert chunks.knows("movrming")  # mov of movie, rmi and ng of charming
    assert not chunks.knows("movming")
    rows = chunks.rows(["xyzzy", "movie", "charming"])
    assert chunks.spelled(rows) == ("xyzzy", "movie", "charming")
    assert rows[0] >= open_words.FIRST > max(rows[1:])
    assert chunks.spell(rows[0]) == (UNKNOWN, UNKNOWN)
    assert chunks.spell(PAD) == ()
    assert chunks.rows(["xyzzy"]) == rows[:1]
    other = copy.deepcopy(chunks)
    assert (other == chunks, other.rows(["never", "xyzzy"])[1]) == (True, rows[0])
    assert chunks.rows(["other", "never"])[1] == other.rows(["never"])[0]  # equal readers number alike, ever after


def test_two_words_of_one_hash_have_two_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_words, "ROWS", 3)
    monkeypatch.setattr(open_words, "_row", {})
    monkeypatch.setattr(open_words, "_word", {})
    words = ["one", "two", "three"]
    rows = Chunks(()).rows(words)
    assert len({*rows}) == 3
    assert Chunks(()).spelled(rows) == tuple(words)


def test_another_width_is_another_reader() -> None:
    narrow, wide = Chunks(("charming",), width=2), Chunks(("charming",), width=3)
    assert narrow != wide
    assert narrow == Chunks(("charming",), width=2)
    model = spelled_model(POOLED)
    with pytest.raises(UsageError, match="another model's vocabulary"):
        model.trace(collate(EXAMPLES, Chunks(model.vocabulary.words, True, 2)))


def sites(model: Predictor, batch: Batch) -> dict[str, Site]:
    """What an intervention sees."""
    found = {}

    def watch(site: Site) -> Tensor:
        found[site.name] = site
        return site.weights

    model.logits(batch, intervene=watch)
    return found


def over_pieces(model: Spelled, batch: Batch) -> dict[str, Site]:
    """The layers as they are inside: keys are pieces."""
    pieces, found = pieces_in_a_row(spell_batch(batch, model.vocabulary.spell)), {}

    def at(name: str) -> object:
        def hook(scores: Tensor, weights: Tensor, mask: Tensor, project: object) -> Tensor:
            found[name] = Site(name, scores, weights, mask, project, batch)  # type: ignore[arg-type]
            return weights

        return hook

    model.encoder.read(pieces.vectors(model.embed(batch), model.size), pieces.real, at)  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("spec", SPELLED)
@torch.no_grad()
def test_a_site_over_words_against_a_loop_over_pieces(spec: str) -> None:
    """Weights are sums over key pieces, softmax of the words' scores gives them; a trace has means over queries."""
    model = spelled_model(spec)
    batch = model.collate(EXAMPLES)
    outside, inside, trace = sites(model, batch), over_pieces(model, batch), model.trace(batch)
    for name in model.self_attention:
        site, pieces = outside[name], inside[name]
        torch.testing.assert_close(site.project(site.scores, site.mask), site.weights, atol=1e-6, rtol=1e-5)
        for text in range(len(EXAMPLES)):
            owners = [place for _, place in pieces_by_hand(model, batch, text)]
            assert site.query_owner is not None
            assert site.query_owner[text, : len(owners)].tolist() == owners
            for word in range(batch.tokens.shape[1]):
                keys = [k for k, owner in enumerate(owners) if owner == word]
                assert bool(site.mask[text, 0, : len(owners), word].all()) is bool(keys)
                slow = sum((pieces.weights[text, :, :, k] for k in keys), torch.zeros(()))
                assert torch.allclose(site.weights[text, :, :, word], slow + 0.0, atol=1e-6)
                for query in range(len(owners)) if keys else ():
                    score = math.log(sum(math.exp(float(pieces.scores[text, 0, query, k])) for k in keys))
                    assert float(site.scores[text, 0, query, word]) == pytest.approx(score, abs=1e-4)
                for other in range(batch.tokens.shape[1]):
                    queries = [q for q, owner in enumerate(owners) if owner == other]
                    mean = sum(float(pieces.weights[text, 0, q, k]) for q in queries for k in keys)
                    expected = mean / max(1, len(queries))
                    assert float(trace.attention[name][text, 0, other, word]) == pytest.approx(expected, abs=1e-6)


@torch.no_grad()
def test_states_are_means_and_a_word_without_pieces_has_none() -> None:
    model = spelled_model(POOLED)
    assert isinstance(model, Pooling)
    batch = model.collate(EXAMPLES)
    pieces = pieces_in_a_row(spell_batch(batch, model.vocabulary.spell))
    inside = model.encoder(pieces.vectors(model.embed(batch), model.size), pieces.real)
    encoded = model.encode(batch)
    for text in range(len(EXAMPLES)):
        owners = torch.tensor([place for _, place in pieces_by_hand(model, batch, text)])
        for place in range(batch.tokens.shape[1]):
            own = inside[text, : len(owners)][owners == place]
            expected = own.mean(0) if len(own) else torch.zeros(inside.shape[-1])
            torch.testing.assert_close(encoded.states[text, place], expected)
            assert bool(encoded.mask[text, place]) == (bool(batch.words[text, place]) and len(own) > 0)
    empty = model.collate([Example(0, (("", "\u200b"),), 0)])  # nothing of it can be seen
    assert not model.trace(empty).logits.isnan().any()
    assert (model.trace(empty).attention["attention"] == 0).all()


@pytest.mark.parametrize("spec", SPELLED)
@torch.no_grad()
def test_the_very_same_weights_leave_a_site_as_it_was(spec: str) -> None:
    model = spelled_model(spec)
    batch = model.collate(EXAMPLES)
    plain = model.logits(batch)
    assert torch.equal(model.logits(batch, intervene=lambda site: site.weights), plain)
    again = model.logits(batch, intervene=lambda site: site.weights.clone())  # to pieces and back
    torch.testing.assert_close(again, plain)


@torch.no_grad()
def test_weights_go_back_in_their_old_shares_or_in_equal_ones() -> None:
    model = spelled_model(POOLED)
    batch = model.collate(EXAMPLES[:3])
    pieces, inside = pieces_in_a_row(spell_batch(batch, model.vocabulary.spell)), over_pieces(model, batch)["encoder.0"]
    gone = inside.weights.clone()
    gone[..., 1:3] = 0  # a word of the first text among them has lost its weight
    for weights in (inside.weights, gone):
        given = torch.rand(site_on_words(inside, pieces).weights.shape)

        def other(site: Site, given: Tensor = given) -> Tensor:
            return given.where(site.mask, 0.0)

        hook = rewriting("encoder.0", batch, pieces, other)
        assert hook is not None
        found = hook(inside.scores, weights, inside.mask, inside.project)
        for text in range(3):
            owners = [place for _, place in pieces_by_hand(model, batch, text)]
            for key, word in enumerate(owners):
                own = [k for k, owner in enumerate(owners) if owner == word]
                for query in range(len(owners)):
                    before = float(weights[text, 1, query, own].sum())
                    share = float(weights[text, 1, query, key]) / before if before > 0 else 1 / len(own)
                    expected = float(given[text, 1, query, word]) * share
                    assert float(found[text, 1, query, key]) == pytest.approx(expected, abs=1e-6)
            assert (found[text, :, len(owners) :] == 0).all()
            assert (found[text, :, :, len(owners) :] == 0).all()


@pytest.mark.parametrize("by", ["zero", "unknown", "padding", "mean"])
@torch.no_grad()
def test_a_replaced_word_keeps_its_width(by: ReplacedBy) -> None:
    model = spelled_model(POOLED)
    batch = model.collate(EXAMPLES)
    gone = batch.words & (torch.arange(batch.tokens.shape[1]) % 2 == 0)
    found = model.replaced(batch, gone, by).unflatten(-1, (-1, model.size))
    whole = model.embed(batch).unflatten(-1, (-1, model.size))
    table = model.embedding.weight
    other = {"zero": 0 * table[0], "unknown": table[UNKNOWN], "padding": table[PAD], "mean": table[4:].mean(0)}[by]
    for text, place in batch.present.nonzero().tolist():
        n = int(batch.cost[text, place])
        expected = other.expand(n, -1) if gone[text, place] else whole[text, place, :n]
        torch.testing.assert_close(found[text, place, :n], expected)
        assert (found[text, place, n:] == 0).all()


@pytest.mark.parametrize("spec", [POOLED, FIRST, MEAN])
@torch.no_grad()
def test_occlusion_is_not_deletion(spec: str) -> None:
    """A zeroed word leaves its places behind: the words after it stay where they were."""
    model = spelled_model(spec)
    batch = model.collate(EXAMPLES[:7])
    zeroed, deleted = (
        importance(model, batch).values[batch.words] for importance in (Occlusion(), LeaveOneOut(of="logit"))
    )
    assert float((zeroed - deleted).abs().median()) > 1e-2
    (text,) = (e for e in EXAMPLES[:7] if len(e) == max(map(len, EXAMPLES[:7])))
    one = model.collate([text])
    scores = LeaveOneOut(of="logit")(model, one).values[one.words].tolist()
    label = int(model.logits(one).argmax())
    for place, score in enumerate(scores):
        rest = model.collate([Example(0, ((*text.words[:place], *text.words[place + 1 :]),), 0)])
        slow = float(model.logits(one)[0, label] - model.logits(rest)[0, label])
        assert score == pytest.approx(slow, abs=1e-5)
    embedded = model.embed(one)
    for place, score in zip(
        one.words[0].nonzero()[:, 0].tolist(), Occlusion()(model, one).values[one.words], strict=True
    ):
        blank = embedded.clone()
        blank[0, place] = 0
        slow = float(model.logits(one)[0, label] - model.logits(one, embedded=blank)[0, label])
        assert float(score) == pytest.approx(slow, abs=1e-5)


def test_what_looks_alike_when_it_is_gone() -> None:
    chunks = spelled_model(POOLED).vocabulary
    one, same, longer, nothing = torch.tensor(chunks.rows(["bad", "of", "movie", "\u200b"]))
    for by in ("zero", "unknown"):
        gone = chunks.without(torch.stack([one, same, longer, nothing]), by)
        assert gone[0] == gone[1]
        assert len({*gone.tolist()}) == 3
        assert (gone <= 0).all()  # no row of any word


@torch.no_grad()
def test_the_query_that_is_read_is_opened_and_no_other() -> None:
    model = spelled_model(FIRST)
    batch = model.collate(EXAMPLES)
    found, trace = opened(model, batch), model.trace(batch)
    assert isinstance(found, Pass)
    assert model.readout is not None
    torch.testing.assert_close(found.weights, trace.attention["encoder.1"][:, :, 0].double(), atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(found.own, trace.logits.double(), atol=1e-5, rtol=1e-5)
    assert torch.equal(found.removable, batch.words & (batch.cost > 0))
    assert (found.mask & ~found.removable).sum(-1).tolist() == [2] * len(EXAMPLES)  # the wrappers
    uniform = found.mask.double() / found.mask.sum(-1, keepdim=True)

    def impose(site: Site) -> Tensor:
        weights = site.weights.clone()
        if site.name == "encoder.1":
            weights[:, :, 0] = uniform[:, None].float()
        return weights

    expected = model.logits(batch, intervene=impose)
    given = uniform[:, None, None].expand(-1, 1, 2, -1)
    torch.testing.assert_close(found.logits(given)[:, 0], expected.double(), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(found.logits(given)[:, 0], found.own, atol=1e-3)


@torch.no_grad()
def test_every_query_is_opened_where_all_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    model = spelled_model(MEAN)
    batch = model.collate(EXAMPLES)
    found = opened(model, batch)
    assert found.weights.shape[1] == 2 * pieces_in_a_row(spell_batch(batch, model.vocabulary.spell)).ids.shape[1]
    torch.testing.assert_close(found.own, model.logits(batch).double(), atol=1e-5, rtol=1e-5)
    monkeypatch.setattr(
        "exegete.models.openings.TOKENS", batch.tokens.shape[1]
    )  # text by text: shorter ones are narrower
    torch.testing.assert_close(found.own, model.logits(batch).double(), atol=1e-5, rtol=1e-5)
    pooled = spelled_model(POOLED)
    assert isinstance(opened(pooled, pooled.collate(EXAMPLES)), OpenedPooling)


@pytest.mark.parametrize("spec", [POOLED, FIRST, MEAN])
def test_trained_kept_and_read_again_with_an_unseen_word(spec: str, tmp_path: Path) -> None:
    task = spelled_task()
    model = cast(Spelled, build(spec, task))
    before = [p.detach().clone() for p in model.parameters()]
    Fit(model, task, TrainingSettings(epochs=1, metric="accuracy", lr=0.01), 0).run()
    assert all(not torch.equal(p, old) for p, old in zip(model.attention_parameters(), before, strict=False))
    save_checkpoint(tmp_path / "kept", Checkpoint(model.eval(), "sentences", "", 0, {}, {}))
    again = load_checkpoint(tmp_path / "kept").model
    examples = [*task.split("test")[:4], Example(99, (("charmingly", "movie", "xyzzy"),), 0)]
    with torch.no_grad():
        assert torch.equal(again.logits(again.collate(examples)), model.logits(model.collate(examples)))
    assert again.fingerprint() == model.fingerprint()
    assert again.reader == model.reader


def test_by_name_from_the_command_line(tmp_path: Path) -> None:
    data = tmp_path / "reviews.csv"
    rows = [f"{' '.join(e.words)},{'good' if e.label else 'bad'}" for e in sentences(60, seed=3)]
    data.write_text("\n".join(["text,label", *rows]), encoding="utf8")
    out = tmp_path / "model"
    spec = "spelled:size=4,hidden=4,inner=8"
    done = CliRunner().invoke(
        app,
        ["train", "--task", f"file:{data}", "--model", spec, "--out", str(out), "--training", "epochs=1", "--quiet"],
    )
    assert done.exit_code == 0, done.output
    asked = ["explain", "a charmingly dull movie", "--model", str(out), "--with", "attention,gradient,leave_one_out"]
    done = CliRunner().invoke(app, [*asked, "--json"])
    assert done.exit_code == 0, done.output
    assert "charmingly" in done.stdout


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("spelled:vectors=glove", "leave vectors out"),
        ("spelled:pool=first,wrap=false", "reads the start symbol"),
        ("spelled:pool=mean,projection=sparsemax", "projection can't be set with pool=mean"),
        ("spelled:pool=last", "pool"),
    ],
)
def test_settings_that_do_not_fit(spec: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        MODELS.make(spec)
