"""Models of transformers on words: spelled as their tokenizers cut, read as transformers reads them, and proven."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from exegete.base.errors import ExegeteError, UsageError
from exegete.models.capabilities import Paired, Pooling, Pretrained, SelfAttentive
from exegete.models.contract import Site
from exegete.models.huggingface.attention import NAME, PieceSoftmax
from exegete.models.huggingface.build import build_from_spec, wrap_classifier
from exegete.models.huggingface.labels import class_order
from exegete.models.huggingface.model import HuggingFace, check_lengths
from exegete.models.huggingface.proof import proven
from exegete.models.huggingface.word_pieces import WordPieces, reader_of
from exegete.models.spelling import pieces_in_a_row
from exegete.tasks.example import Example, Task
from tests.models.odd_texts import sentence_pieces
from tests.models.tiny import bert, bert_folder, byte_pieces, in_memory, roberta, saved, word_pieces

TEXTS = ("an unbelievably charming movie of plot", "Bad !", "It's 3.50 (ok)", "naïve über-dull a a a")


def example(*texts: str, number: int = 0) -> Example:
    return Example(number, tuple(tuple(text.split()) for text in texts), 0)


def spelt(reader: WordPieces, model: HuggingFace, *texts: str) -> list[int]:
    pieces = pieces_in_a_row(reader.grid(model.collate([example(*texts)])))
    return [int(piece) for piece in pieces.ids[0][pieces.real[0]]]


def by_transformers(model: Any, tokenizer: Any, *texts: str) -> Tensor:
    with torch.no_grad():
        logits: Tensor = model(**tokenizer(*texts, return_tensors="pt")).logits
    return logits[0]


MAKERS = (bert, roberta, lambda: roberta(prefix=True))


@pytest.fixture(params=range(len(MAKERS)), ids=("bert", "roberta", "roberta, prefixed"))
def parts(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    made: tuple[Any, Any] = MAKERS[request.param]()
    return made


def test_texts_are_spelled_and_predicted_as_by_transformers(parts: tuple[Any, Any]) -> None:
    base, tokenizer = parts
    model = in_memory(*copy.deepcopy(parts))
    assert not model.vocabulary.crossing
    for text in TEXTS:
        assert spelt(model.vocabulary, model, text) == tokenizer(text)["input_ids"]
        with torch.no_grad():
            ours = model.logits(model.collate([example(text)]))[0]
        assert torch.allclose(ours, by_transformers(base, tokenizer, text), atol=1e-6)


def test_pairs_have_the_tokenizers_separators_and_types(parts: tuple[Any, Any]) -> None:
    base, tokenizer = parts
    model = in_memory(*copy.deepcopy(parts), spec="hf:tiny:pair=true")
    assert isinstance(model, Paired)
    batch = model.collate([example(*TEXTS[1:3])])
    given, theirs = model.inputs(model.pieces(batch), batch), tokenizer(*TEXTS[1:3], return_tensors="pt")
    assert set(theirs) <= set(given)
    assert all(theirs[name].equal(given[name]) for name in theirs)
    with torch.no_grad():
        ours = model.logits(batch)[0]
    assert torch.allclose(ours, by_transformers(base, tokenizer, *TEXTS[1:3]), atol=1e-6)


def test_bytes_are_spelled_with_their_space_and_the_first_word_without() -> None:
    model = in_memory(*roberta())
    costs = model.collate([example("bad bad")]).cost
    assert costs.tolist() == [[1, 2, 1, 1]]  # the first is ba · d, the second Ġbad
    assert model.vocabulary.cost(torch.tensor(model.vocabulary.rows(["bad"]))).tolist() == [1]


def test_pieces_across_words_are_noticed_and_count_for_the_word_they_begin_in() -> None:
    model = in_memory(*bert(tokenizer=sentence_pieces()))
    assert model.proof.crossing
    assert "cuts across words" in model.proof.sentence
    batch = model.collate([example("film a")])
    assert batch.cost.tolist() == [[1, 5, 1, 1]]  # ▁ · f · i · l · m▁ are of the first word


def test_a_deleted_first_word_leaves_a_new_first_word() -> None:
    base, tokenizer = roberta()
    model = in_memory(base, tokenizer)
    batch = model.collate([example("so bad")])
    first = batch.words.cumsum(-1) == 1
    without = batch._replace(present=batch.present & ~(first & batch.words), words=batch.words & ~first)
    pieces = pieces_in_a_row(model.vocabulary.grid(without))
    assert pieces.ids[0][pieces.real[0]].tolist() == tokenizer("bad")["input_ids"]


def test_words_that_differ_in_pieces_are_told_apart_once_they_are_gone() -> None:
    reader = reader_of(byte_pieces())
    rows = torch.tensor(reader.rows(["b", "bad", "of", "zoo", "bad"]))
    for by in ("zero", "unknown"):
        gone = reader.without(rows, by).tolist()
        assert len(set(gone)) == 4
        assert gone[1] == gone[4]  # a word has as many pieces as its text gives it: only the same one looks alike
        assert max(gone) < 0
    assert not set(reader.without(rows, "zero").tolist()) & set(reader.without(rows, "unknown").tolist())


def test_a_word_without_pieces_is_no_key() -> None:
    model = in_memory(*bert())
    batch = model.collate([Example(0, (("bad", "\u200b", "movie"),), 0)])
    with torch.no_grad():
        trace = model.trace(batch)
        plain = model.logits(model.collate([example("bad movie")]))
    assert torch.allclose(trace.logits, plain, atol=1e-6)
    assert not trace.attention["encoder.1"][0, :, :, 2].any()
    assert int(batch.cost[0, 2]) == 0


def test_a_word_written_as_a_symbol_is_a_word() -> None:
    model = in_memory(*bert())
    assert spelt(model.vocabulary, model, "<s> bad") == word_pieces()("<s> bad")["input_ids"]


def test_weights_of_words_are_summed_over_keys_and_averaged_over_queries() -> None:
    base, tokenizer = bert()
    model = in_memory(copy.deepcopy(base), tokenizer)
    text = "unbelievably bad"
    encoded = tokenizer(text, return_tensors="pt")
    base.set_attn_implementation("eager")
    with torch.no_grad():
        own = base(**encoded, output_attentions=True).attentions[1][0]  # [head, piece, piece]
        ours = model.trace(model.collate([example(text)])).attention["encoder.1"][0]
    places = [0 if w is None and i == 0 else 3 if w is None else w + 1 for i, w in enumerate(encoded.word_ids(0))]
    for query in range(4):
        for key in range(4):
            rows = [i for i, place in enumerate(places) if place == query]
            columns = [i for i, place in enumerate(places) if place == key]
            assert torch.allclose(ours[:, query, key], own[:, rows][:, :, columns].sum(-1).mean(-1), atol=1e-6)


@pytest.mark.parametrize(("pooling", "query"), [("cls", "first"), ("mean", "every")])
def test_the_query_that_is_read_is_found(pooling: str, query: str) -> None:
    import transformers

    from tests.models.tiny import SMALL, drawn

    tokenizer = word_pieces()
    more: dict[str, Any] = {"classifier_pooling": pooling, "num_labels": 2, **SMALL}
    config = transformers.ModernBertConfig(vocab_size=len(tokenizer), pad_token_id=0, **more)
    model = in_memory(drawn(transformers.ModernBertForSequenceClassification(config)), tokenizer)
    assert model.readout is not None
    assert model.readout.query == query


def test_a_language_models_classifier_reads_its_last_piece() -> None:
    import transformers

    from tests.models.tiny import drawn

    tokenizer = byte_pieces()
    more: dict[str, Any] = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 62, "num_labels": 2}
    config = transformers.GPT2Config(vocab_size=len(tokenizer), pad_token_id=1, **more)
    base = drawn(transformers.GPT2ForSequenceClassification(config))
    model = in_memory(copy.deepcopy(base), tokenizer)
    assert model.readout is not None
    assert (model.readout.query, model.sites) == ("last", ("decoder.0", "decoder.1"))
    batch = model.collate([example(text, number=i) for i, text in enumerate(TEXTS)])
    with torch.no_grad():
        together = model.logits(batch)
    for text, logits in zip(TEXTS, together, strict=True):
        assert torch.allclose(logits, by_transformers(base, tokenizer, text), atol=1e-5)


def test_the_proof_says_how_attention_is_reached() -> None:
    model = in_memory(*bert())
    assert model.proof.way == "interface"
    assert model.proof.same < 1e-5
    assert set(model.proof.moved) == set(model.sites)
    assert min(model.proof.moved.values()) > 1e-3
    assert "reached by interface" in model.proof.sentence


def test_a_model_whose_weights_nobody_reads_is_refused() -> None:
    model = in_memory(*bert())
    with torch.no_grad():
        model.base.classifier.weight.zero_()
    with pytest.raises(ExegeteError, match="the same under all weights at encoder"):
        proven(model)


def test_a_model_that_computes_otherwise_when_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from exegete.models.huggingface import attention

    model = in_memory(*bert())
    monkeypatch.setattr(attention, "_capped_and_placed", lambda scores, more: scores * 2)
    with pytest.raises(ExegeteError, match="computes something else"):
        proven(model)


def test_a_model_that_reads_its_padding_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = in_memory(*bert())
    monkeypatch.setattr(
        type(model),
        "inputs",
        lambda self, pieces, batch: {"input_ids": pieces.ids, "attention_mask": pieces.real * 0 + 1},
    )
    with pytest.raises(ExegeteError, match="reads its padding"):
        proven(model)


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("sinks", [None, torch.tensor([0.5, -1.0, 2.0])])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_weights_in_the_place_of_scores_are_the_same_bits(heads: int, sinks: Tensor | None, dtype: torch.dtype) -> None:
    """With keys that are hidden, and rows that may look at nothing."""
    torch.manual_seed(0)
    scores = (8 * torch.randn(4, 3, 5, 5)).to(dtype)
    mask = torch.rand(4, heads, 5, 5) < 0.7
    mask[1, :, 2], mask[2] = False, True
    project = PieceSoftmax(sinks)
    assert torch.equal(project(scores.clone(), mask), project.spending(scores.clone(), mask))


def test_scores_that_need_a_gradient_are_not_spent() -> None:
    scores = torch.randn(1, 2, 3, 3, requires_grad=True)
    PieceSoftmax().spending(scores, torch.ones(1, 1, 3, 3, dtype=torch.bool)).square().sum().backward()
    assert scores.grad is not None
    assert scores.grad.abs().sum() > 0


def test_an_intervention_sees_scores_as_they_were() -> None:
    """What it may look at is not spent: log-sum-exps of scores give the weights once more."""
    model = in_memory(*bert())
    batch = model.collate([Example(0, (("a", "good", "film"),), 0), Example(1, (("dull",),), 0)])
    seen: list[bool] = []

    def look(site: Site) -> Tensor:
        again = site.scores.masked_fill(~site.mask, -torch.inf).softmax(-1).nan_to_num()
        seen.append(bool(torch.allclose(again, site.weights, atol=1e-6)))
        return site.weights

    model.logits(batch, intervene=look)
    assert seen
    assert all(seen)


def test_transformers_uses_the_model_as_before() -> None:
    base, tokenizer = bert()
    before, modes = base.config._attn_implementation, [part.training for part in base.modules()]
    own = by_transformers(base, tokenizer, TEXTS[0])
    model = wrap_classifier(base, tokenizer)

    def fail(site: Site) -> Tensor:
        raise ArithmeticError(site.name)

    with pytest.raises(ArithmeticError):
        model.logits(model.collate([example(TEXTS[0])]), intervene=fail)
    assert base.config._attn_implementation == before != NAME
    assert [part.training for part in base.modules()] == modes
    assert torch.equal(by_transformers(base, tokenizer, TEXTS[0]), own)


def test_heads_have_the_capabilities_they_promise() -> None:
    folder = bert_folder()
    pooled, first = build_from_spec(f"hf:{folder}:head=attention"), build_from_spec(f"hf:{folder}:head=cls")
    assert isinstance(pooled, Pooling)
    assert not isinstance(first, Pooling)
    assert isinstance(first, SelfAttentive)
    assert isinstance(first, Pretrained)
    assert first.readout is not None
    assert first.readout.query == "first"
    assert pooled.sites[-1] == "attention"


def test_lower_layers_and_what_is_below_are_frozen() -> None:
    model = build_from_spec(f"hf:{bert_folder()}:head=cls,frozen=1")
    still = {name for name, p in model.named_parameters() if not p.requires_grad}
    assert all(name.startswith(("base.embeddings.", "base.encoder.layer.0.")) for name in still)
    assert {
        name for name, _ in model.named_parameters() if name.startswith(("base.emb", "base.encoder.layer.0."))
    } == still
    with pytest.raises(UsageError, match="leaves nothing to train"):
        build_from_spec(f"hf:{bert_folder()}:head=cls,frozen=2")


def test_queries_and_keys_decide_weights() -> None:
    model = build_from_spec(f"hf:{bert_folder()}:head=cls")
    own = {id(p) for p in model.attention_parameters()}
    names = {name for name, p in model.named_parameters() if id(p) in own}
    assert names == {
        f"base.encoder.layer.{layer}.attention.self.{part}.{kind}"
        for layer in (0, 1)
        for part in ("query", "key")
        for kind in ("weight", "bias")
    }


@pytest.mark.parametrize(
    ("theirs", "given", "order"),
    [
        (("NEGATIVE", "Positive"), "", (0, 1)),
        (("positive", "negative"), "", (1, 0)),
        (("LABEL_0", "LABEL_1"), "positive/negative", (1, 0)),
    ],
)
def test_labels_are_matched_by_name_or_as_told(theirs: tuple[str, ...], given: str, order: tuple[int, ...]) -> None:
    assert class_order(theirs, ("negative", "positive"), given, "it") == order


def test_unnamed_classes_are_numbers() -> None:
    assert class_order(("LABEL_0", "LABEL_1"), ("0", "1"), "", "it") == (0, 1)


def test_other_labels_are_refused_with_what_to_write() -> None:
    with pytest.raises(UsageError, match="labels=bad/good"):
        class_order(("LABEL_0", "LABEL_1"), ("bad", "good"), "", "it")
    with pytest.raises(UsageError, match="names 3"):
        class_order(("a", "b"), ("a", "b"), "a/b/c", "it")


def test_classes_are_put_in_the_tasks_order() -> None:
    folder = bert_folder()
    plain, turned = build_from_spec(f"hf:{folder}"), build_from_spec(f"hf:{folder}", ("yes", "no"))
    batch = plain.collate([example(TEXTS[0])])
    with torch.no_grad():
        assert torch.equal(plain.logits(batch)[:, [1, 0]], turned.logits(batch))
        assert torch.equal(plain.relabelled(("yes", "no")).logits(batch), turned.logits(batch))
    assert plain.fingerprint() != turned.fingerprint()


def test_a_text_that_is_too_long_is_named_and_never_cut() -> None:
    model = in_memory(*bert())
    long = example(" ".join(["bad"] * 63), number=17)
    said = r"has 65 pieces \(63 words\), and hf:tiny reads 64 pieces at most: .*truncate=true"
    with pytest.raises(ExegeteError, match=f"the text that begins 'bad bad bad bad bad' {said}"):
        model.logits(model.collate([example("ok"), long]))
    task = Task("long", ("no", "yes"), {"train": [long], "dev": [example("ok")], "test": [example("ok"), long]}, "")
    with pytest.raises(ExegeteError, match=f"row 18 of test {said}.*max_length=62"):
        check_lengths(model, task)
    check_lengths(model, replace(task, splits=dict(task.splits) | {"test": [example(" ".join(["bad"] * 62))]}))


def test_a_long_text_of_train_counts_only_where_something_is_trained() -> None:
    long = example(" ".join(["bad"] * 63))
    task = Task("long", ("no", "yes"), {"train": [long], "dev": [example("ok")], "test": [example("ok")]}, "")
    check_lengths(in_memory(*bert()), task)
    with pytest.raises(ExegeteError, match="row 1 of train"):
        check_lengths(in_memory(*bert(), spec="hf:tiny:tune=true"), task)


@pytest.mark.parametrize("words", [(63,), (200,), (40, 40), (5, 100), (100, 5), (33, 90)])
def test_long_texts_are_cut_as_transformers_cuts_them(words: tuple[int, ...], parts: tuple[Any, Any]) -> None:
    base, tokenizer = parts
    pair = ",pair=true" if len(words) == 2 else ""
    model = in_memory(*copy.deepcopy(parts), spec=f"hf:tiny:truncate=true{pair}")
    texts = [" ".join(TEXTS[1].split() * 40)[: 6 * count] for count in words]
    batch = model.collate([example(*texts)])
    pieces = model.pieces(batch)
    theirs = tokenizer(*texts, truncation=True, return_tensors="pt")
    assert pieces.ids.tolist() == theirs["input_ids"].tolist()
    with torch.no_grad():
        assert torch.allclose(model.logits(batch), base(**theirs).logits, atol=1e-5)


def test_positions_after_the_row_of_padding_count_less() -> None:
    base, tokenizer = roberta()
    tokenizer.model_max_length = int(1e30)
    assert in_memory(base, tokenizer).limit == 62  # 64 rows, two of them before the first place


def test_the_fingerprint_knows_tokenizer_weights_and_precision(tmp_path: Path) -> None:
    base, tokenizer = bert()
    folder = saved(base, tokenizer, tmp_path / "one")
    one = build_from_spec(f"hf:{folder}").fingerprint()
    assert one == build_from_spec(f"hf:{saved(base, tokenizer, tmp_path / 'two')}").fingerprint()
    assert (
        one
        != build_from_spec(f"hf:{saved(*bert(tokenizer=word_pieces(lower=False)), tmp_path / 'three')}").fingerprint()
    )
    assert one != build_from_spec(f"hf:{folder}:dtype=bfloat16").fingerprint()


def test_half_precision_is_close_and_opt_in() -> None:
    folder = bert_folder()
    batch_of = [example(text, number=i) for i, text in enumerate(TEXTS)]
    whole, half = build_from_spec(f"hf:{folder}"), build_from_spec(f"hf:{folder}:dtype=bfloat16")
    assert whole.dtype == torch.float32
    with torch.no_grad():
        one, other = (model.logits(model.collate(batch_of)) for model in (whole, half))
    assert other.dtype == torch.bfloat16
    assert not torch.equal(one, other.float())
    assert torch.allclose(one, other.float(), atol=0.2)


def test_a_word_is_unknown_only_where_nothing_of_it_is_spelled() -> None:
    """A clause of Chinese is one word, and one rare character of it makes no unknown word of all."""
    reader = reader_of(word_pieces())
    assert [reader.knows(word) for word in ("good", "good电", "电影")] == [True, True, False]
