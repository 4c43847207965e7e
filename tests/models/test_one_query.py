"""One query: weights at the readout, by the piece alone that is read, give what whole passes give; gradients, too."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from tokenizers import processors
from torch import Tensor

from exegete.base.errors import ExegeteError
from exegete.models.contract import Site, query_rows
from exegete.models.huggingface.build import build_from_spec
from exegete.models.huggingface.model import HuggingFace
from exegete.models.huggingface.one_query import logits_of_one
from exegete.models.openings import Pass, opened
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example
from tests.models.architectures import MADE, NO_CLASSIFIER, classifier
from tests.models.tiny import bert, bert_folder, drawn, in_memory, roberta, word_pieces

EQUAL = 1e-6
TEXTS = ("an unbelievably charming movie of plot", "bad plot !", "a dull movie")
TINY: dict[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_attention_heads": 2,
    "num_labels": 2,
    "pad_token_id": 0,
}
BY_SOFTMAX = ("deberta-v2", "mpnet", "roformer", "bloom", "xlm", "squeezebert")


def batch_of(model: HuggingFace) -> Any:
    return model.collate([Example(i, (tuple(text.split()),), 0) for i, text in enumerate(TEXTS)])


def passing(model: HuggingFace) -> tuple[Pass, Tensor, bool]:
    """Texts opened at the readout, the queries that are read, and whether they alone go on."""
    texts = opened(model, batch_of(model))
    assert isinstance(texts, Pass)
    assert texts.begun is not None
    query = torch.zeros(len(TEXTS), dtype=torch.int64) if texts.query is None else texts.query
    return texts, query, texts.begun.one_query


def drawn_weights(texts: Pass, draws: int = 3) -> Tensor:
    noise = torch.rand(len(TEXTS), draws, *texts.weights.shape[1:], generator=torch.Generator().manual_seed(0)).double()
    weights = noise * texts.mask[:, None, None]
    return weights / weights.sum(-1, keepdim=True) * texts.weights.sum(-1)[:, None, :, None]  # with sinks: less than 1


def by_a_whole_pass(model: HuggingFace, texts: Pass, query: Tensor, weights: Tensor) -> Tensor:
    """Logits [text, class] under weights [text, head, key], by a pass in which all is computed."""

    def impose(site: Site) -> Tensor:
        if site.name != model.sites[-1]:
            return site.weights
        here = torch.arange(site.weights.shape[2]) == query[:, None]
        return torch.where(here[:, None, :, None], weights[:, :, None].to(site.weights.dtype), site.weights)

    return model.logits(texts.batch, intervene=impose)


MODELS = tuple(name for name in MADE if name not in NO_CLASSIFIER + BY_SOFTMAX)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_architecture_whose_values_we_multiply_goes_on_with_one_query(name: str) -> None:
    model = classifier(name)
    assert model.proof.narrows
    texts, query, one = passing(model)
    assert one
    weights = drawn_weights(texts).requires_grad_()
    found = texts.logits(weights)
    (slope,) = torch.autograd.grad(found.sin().sum(), weights)
    free = weights.detach().clone().requires_grad_()
    whole = torch.stack([by_a_whole_pass(model, texts, query, draw) for draw in free.unbind(1)], 1).double()
    (expected,) = torch.autograd.grad(whole.sin().sum(), free)
    within = (texts.mask & (query_rows(_reach(model, texts), query).any(1)))[:, None, None]
    large = max(1.0, float(whole.detach().abs().max()))
    assert (found - whole).abs().max() <= EQUAL * large
    assert ((slope - expected) * within).abs().max() <= 1e-5 * max(1.0, float(expected.abs().max()))
    assert (found[:, 0] - texts.own).abs().max() > 1e-4


def _reach(model: HuggingFace, texts: Pass) -> Tensor:
    met: list[Site] = []

    def watch(site: Site) -> Tensor:
        met.append(site)
        return site.weights

    with torch.no_grad():
        model.logits(texts.batch, intervene=watch)
    return met[-1].mask.expand_as(met[-1].weights)


@pytest.mark.parametrize("name", BY_SOFTMAX)
def test_elsewhere_all_queries_go_on(name: str) -> None:
    model = classifier(name)
    assert not model.proof.narrows
    texts, _, one = passing(model)
    assert not one
    assert (texts.own - model.logits(texts.batch)).abs().max() <= EQUAL


@pytest.mark.parametrize("head", ["cls", "mean"])
def test_a_head_of_ours_is_read_from_the_first_piece_or_from_all(head: str) -> None:
    model = build_from_spec(f"hf:{bert_folder()}:head={head}", ("no", "yes"))
    texts, _, one = passing(model)
    assert one == (head == "cls")
    with torch.no_grad():
        assert (texts.own - model.logits(texts.batch)).abs().max() <= EQUAL


@pytest.mark.parametrize("make", [bert, roberta], ids=("bert", "roberta"))
def test_one_piece_of_every_text_is_computed_again(make: Any) -> None:
    model = in_memory(*make())
    texts, _, _ = passing(model)
    seen: list[int] = []
    layer = model.base.get_submodule(f"{model.base.base_model_prefix}.encoder.layer.1.output")
    handle = layer.register_forward_hook(lambda module, given, found: seen.append(found.shape[0] * found.shape[1]))
    texts.logits(drawn_weights(texts))
    handle.remove()
    assert seen == [3 * len(TEXTS)]


def narrowed_and_whole(model: HuggingFace, batch: Batch) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Logits and their slope by the embeddings of words, by a pass that ends in one query and by a whole one.

    The embeddings are not those of the texts: whatever looks these up again computes something else.
    """
    noise = torch.Generator().manual_seed(0)

    def derived(whole: bool) -> tuple[Tensor, Tensor]:
        embedded = model.embed(batch).detach()
        embedded += torch.randn(embedded.shape, generator=noise.manual_seed(0), dtype=embedded.dtype)
        embedded.requires_grad_()
        if whole:
            logits = model.trace(batch, embedded=embedded, keep=()).logits
        else:
            logits = logits_of_one(model, batch, embedded)
        (slope,) = torch.autograd.grad(logits.sin().sum(), embedded)
        return logits.detach(), slope

    return derived(False), derived(True)


def assert_equal(model: HuggingFace, batch: Batch | None = None) -> None:
    (logits, slope), (expected, steep) = narrowed_and_whole(model, batch_of(model) if batch is None else batch)
    assert (logits - expected).abs().max() <= EQUAL * max(1.0, float(expected.abs().max()))
    assert (slope - steep).abs().max() <= 1e-5 * max(1.0, float(steep.abs().max()))
    assert steep.abs().max() > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_architecture_predicts_the_same_by_the_query_alone_that_is_read(name: str) -> None:
    assert_equal(classifier(name))


@pytest.mark.parametrize("make", [bert, roberta], ids=("bert", "roberta"))
def test_a_prediction_computes_one_piece_of_the_last_layer(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = in_memory(*make())
    assert_equal(model)
    seen: list[int] = []

    def counting(forward: Any) -> Any:
        def counted(states: Tensor, *more: Any) -> Any:
            seen.append(states.shape[0] * states.shape[1])
            return forward(states, *more)

        return counted

    for number in (0, 1):
        part = model.base.get_submodule(f"{model.base.base_model_prefix}.encoder.layer.{number}.output")
        monkeypatch.setattr(part, "forward", counting(part.forward))
    batch = batch_of(model)
    pieces = model.pieces(batch).real.numel()
    whole = model.logits(batch)
    assert seen == [pieces, pieces]  # few pieces: not worth a second start
    seen.clear()
    monkeypatch.setattr("exegete.models.huggingface.model.MANY", 1)
    assert torch.allclose(model.logits(batch), whole, atol=EQUAL)
    assert seen == [pieces, len(TEXTS)]
    seen.clear()
    model.logits(batch, intervene=lambda site: site.weights)
    assert seen == [pieces, pieces]  # an intervention sees all queries of all sites


def without_symbols() -> Any:
    """A tokenizer that writes nothing around texts."""
    tokenizer = word_pieces()
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(single="$A", pair="$A $B")
    return tokenizer


def llama(layers: int) -> HuggingFace:
    """A tiny classifier that reads the last word of a text."""
    import transformers

    tokenizer = without_symbols()
    config = transformers.LlamaConfig(**TINY, vocab_size=len(tokenizer), num_hidden_layers=layers)
    return in_memory(drawn(transformers.LlamaForSequenceClassification(config)), tokenizer)


@pytest.mark.parametrize("layers", [1, 2])
def test_a_query_that_is_a_word_is_read_with_the_embedding_that_it_was_given(layers: int) -> None:
    """With a single layer nothing lies below the last site but embeddings."""
    model = llama(layers)
    assert model.query == "last"
    assert model.proof.narrows
    assert_equal(model)


@pytest.mark.parametrize("named", [True, False], ids=("tokenizer", "model"))
def test_a_text_that_holds_the_padding_piece_is_read_as_transformers_does(named: bool) -> None:
    """Its classifiers take the last piece for the last one that is not padding, by its number.

    A tokenizer may know of no padding where the model does.
    """
    model = llama(2)
    if not named:
        model.tokenizer.pad_token = None
    texts = ("a dull [PAD]", "bad plot")
    assert_equal(model, model.collate([Example(i, (tuple(text.split()),), 0) for i, text in enumerate(texts)]))


def test_pairs_empty_texts_and_words_without_pieces_are_read_the_same() -> None:
    pair = build_from_spec(f"hf:{bert_folder()}:head=cls,pair=true", ("no", "yes"))
    texts = [(("a", "dull", "plot"), ("bad",)), (("ok",), ("a", "terrific", "movie"))]
    assert_equal(pair, pair.collate([Example(i, each, 0) for i, each in enumerate(texts)]))
    alone = in_memory(*bert())
    odd = [(), ("\xad", "ok"), ("bad",)]
    assert_equal(alone, alone.collate([Example(i, (each,), 0) for i, each in enumerate(odd)]))


def test_a_model_that_counts_the_pieces_of_a_text_is_not_read_by_one() -> None:
    """ESM makes embeddings larger by the share of mask pieces: one piece alone has another share."""
    import transformers

    tokenizer = without_symbols()
    special: dict[str, Any] = {"mask_token_id": tokenizer.mask_token_id, "position_embedding_type": "rotary"}
    size: dict[str, Any] = TINY | special | {"vocab_size": len(tokenizer), "num_hidden_layers": 1}

    def narrows(counting: bool) -> bool:
        config = transformers.EsmConfig(**size, token_dropout=counting)
        return in_memory(drawn(transformers.EsmForSequenceClassification(config)), tokenizer).proof.narrows

    assert narrows(False)
    assert not narrows(True)


HOOKS = ("forward_hook", "forward_pre_hook", "full_backward_hook", "full_backward_pre_hook")


@pytest.mark.filterwarnings("ignore:For backward hooks to be called", "ignore:Full backward hook is firing")
@pytest.mark.parametrize("kind", HOOKS)
@pytest.mark.parametrize("everywhere", [False, True], ids=("a layer", "all"))
def test_whoever_listens_to_layers_hears_whole_passes(
    kind: str, everywhere: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch.nn.modules import module

    model = in_memory(*bert())
    monkeypatch.setattr("exegete.models.huggingface.model.MANY", 1)
    batch, heard, last = batch_of(model), list[int](), model.base.bert.encoder.layer[1].output

    def listen(part: torch.nn.Module, given: Any, *more: Any) -> None:
        if part is last:
            heard.append(given[0].shape[1])

    add = getattr(module, f"register_module_{kind}") if everywhere else getattr(last, f"register_{kind}")
    handle = add(listen)
    try:
        model.logits(batch, embedded=model.embed(batch).detach().requires_grad_()).sum().backward()
    finally:
        handle.remove()
    assert heard == [model.pieces(batch).real.shape[1]]


def test_in_training_all_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What dropout draws would be other numbers in passes of other sizes."""
    model = in_memory(*bert()).train()
    monkeypatch.setattr("exegete.models.huggingface.model.MANY", 1)
    monkeypatch.setattr("exegete.models.huggingface.model.logits_of_one", None)
    batch = batch_of(model)
    torch.manual_seed(0)
    found = model.logits(batch)
    torch.manual_seed(0)
    assert torch.equal(found, model.trace(batch).logits)


def test_words_of_another_reader_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exegete.models.huggingface.model.MANY", 1)
    one, other = in_memory(*bert()), llama(1)
    with pytest.raises(ExegeteError):
        one.logits(batch_of(other))


@pytest.mark.parametrize("many", [1, 1_000_000], ids=("one query", "whole"))
def test_threads_read_their_own_embeddings(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = in_memory(*bert())
    monkeypatch.setattr("exegete.models.huggingface.model.MANY", many)
    batch = batch_of(model)
    given = [model.embed(batch).detach() * (number / 40) for number in range(40)]
    expected = [model.logits(batch, embedded=each).detach() for each in given]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda each: model.logits(batch, embedded=each).detach(), given))
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("layer", [0, 1], ids=("first pass", "second pass"))
def test_nothing_stays_of_a_pass_that_goes_wrong(layer: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = in_memory(*bert())
    monkeypatch.setattr("exegete.models.huggingface.model.MANY", 1)
    batch = batch_of(model)
    before = model.base(**model.inputs(model.pieces(batch), batch)).logits
    model.logits(batch)

    def wrong(*given: Any) -> None:
        raise OSError("no more")

    with monkeypatch.context() as here:
        here.setattr(model.base.bert.encoder.layer[layer].output.dense, "forward", wrong)
        with pytest.raises(OSError, match="no more"):
            model.logits(batch)
    assert not any("forward" in vars(part) for part in model.base.modules())
    assert torch.equal(model.base(**model.inputs(model.pieces(batch), batch)).logits, before)


def test_a_model_that_reads_other_places_too_is_resumed_with_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pooler that reads more than its gradient at the probe's text shows: the proof finds it."""
    base, tokenizer = bert()
    plain = base.bert.pooler.forward

    def pooled(states: Tensor) -> Tensor:
        own: Tensor = plain(states)
        return own + states[:, 1:2].detach().abs().sum((1, 2))[:, None]

    monkeypatch.setattr(base.bert.pooler, "forward", pooled)
    model = in_memory(base, tokenizer)
    assert model.query == "first"
    assert not model.proof.narrows
    assert not passing(model)[2]
